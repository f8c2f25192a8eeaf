"""Pages of history always fit a frame, hold each message once, and say what was cut."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Message, Text
from recollect.server.nplt.frames import MAX_PAYLOAD
from recollect.server.nplt.history_pages import json_page, text_page
from recollect.store.contract import Store
from recollect.testing import call, model, result, user
from tests.server.hubs import scripted_provider
from tests.server.nplt.nplt_servers import running_server
from tests.server.nplt.seed_client import HISTORY_REQUEST, SESSION_SWITCH, SeedClient

_TEXTS = st.one_of(st.text(max_size=200), st.text(max_size=20).map(lambda text: text * 5_000))
_CALLS = st.fixed_dictionaries(
    {
        "tool_name": st.text(max_size=20),
        "arguments": st.dictionaries(st.text(max_size=5), _TEXTS, max_size=3),
        "result": _TEXTS,
        "status": st.text(max_size=10),
        "duration": st.floats(0, 10),
        "timestamp": st.text(max_size=30),
    }
)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system"]),
            "content": _TEXTS,
            "timestamp": st.text(max_size=30),
            "tool_calls": st.lists(_CALLS, max_size=4),
            "metadata": st.dictionaries(st.text(max_size=5), _TEXTS, max_size=3),
        }
    ),
    max_size=6,
)


@given(RECORDS, st.integers(0, 5))
def test_every_page_fits_and_the_pages_hold_each_message_once(
    records: list[dict[str, Any]], offset: int
) -> None:
    count, seen, at = len(records) + offset, list[dict[str, Any]](), offset
    while at < count:
        left = records[: count - at]
        page = json_page("f" * 32, count, at, left)
        assert len(page.payload) <= MAX_PAYLOAD
        value = json.loads(page.payload)
        assert len(value["messages"]) == page.taken > 0
        seen = value["messages"] + seen
        at = value.get("next_offset", count)
    assert [each["role"] for each in seen] == [each["role"] for each in records]
    whole = [each for each in seen if "shortened" not in each["metadata"]]
    surrogates = json.loads(json.dumps(records).encode())
    assert all(each in surrogates for each in whole)


@given(RECORDS)
def test_a_page_of_text_fits_too(records: list[dict[str, Any]]) -> None:
    page = text_page(len(records), 0, records)
    assert len(page.payload) <= MAX_PAYLOAD
    assert page.taken > 0 or not records


def test_a_long_history_is_paged_from_the_newest_to_the_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[Message] = []
    for number in range(1_200):
        messages += [user(f"question {number}"), model(f"answer {number} " + "x" * (number % 700))]
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["More."], repeat=True),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        info = server.call(lambda: server.hub.store.create(owner=""))
        server.call(lambda: server.hub.store.append(info.id, messages, parent=None))
        client.request(SESSION_SWITCH, {"session_id": info.id})
        newest = client.history()
        assert newest["message_count"] == 2_400
        assert newest["next_offset"] == 20
        assert newest["messages"][-1]["content"].startswith("answer 1199")
        seen: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page = client.history(offset=offset, limit=400, message_count=2_400)
            seen = [each["content"] for each in page["messages"]] + seen
            if offset == 0:
                client.chat("One more.")  # the pages stay those of the messages before it
            offset = page.get("next_offset")
        assert [text for text in seen if text.startswith("q")] == [
            f"question {number}" for number in range(1_200)
        ]
        assert client.history()["message_count"] == 2_402


def test_a_message_too_large_for_a_frame_is_shortened_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = "start " + "x" * 300_000 + " end"
    read = call("read_file", path="a.txt")
    items = [
        user("read it"),
        model("I look.", read),
        result(read, large),
        Message(role="model", parts=(Text(text=large + "\ud800"),)),
    ]
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["More."]),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        info = server.call(lambda: server.hub.store.create(owner=""))
        server.call(lambda: server.hub.store.append(info.id, items, parent=None))
        client.request(SESSION_SWITCH, {"session_id": info.id})
        page = client.history()
        (only,) = page["messages"]
        assert only["content"].startswith("start")
        assert only["content"].endswith("end\ufffd")
        assert only["metadata"]["shortened"]["bytes"] > 300_000
        page = client.history(offset=page["next_offset"])
        asked, looked = (page["messages"] + [None, None])[:2]
        if looked is None:  # the call and its result alone are too large
            looked = asked
        assert looked["tool_calls"][0]["result"].startswith("start")
        text = client.request(HISTORY_REQUEST, {"format": "text"})
        assert "characters left out" in text


def test_a_rewound_session_is_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["More."]),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        store = server.hub.store
        info = server.call(lambda: store.create(owner=""))
        items = [user("a"), model("b"), user("c"), model("d")]
        added = server.call(lambda: store.append(info.id, items, parent=None))
        client.request(SESSION_SWITCH, {"session_id": info.id})
        assert client.history()["message_count"] == 4
        server.call(lambda: store.rewind(info.id, added[1].id))
        assert client.history()["message_count"] == 2
        server.call(lambda: store.append(info.id, [user("e")], parent=added[1].id))
        assert [m["content"] for m in client.history()["messages"]] == ["a", "b", "e"]


def _messages(name: str, count: int) -> list[Message]:
    """Questions and answers, every third of them with a call and its result."""
    found: list[Message] = []
    for number in range(count):
        found.append(user(f"{name} question {number}"))
        if number % 3 == 0:
            read = call("read_file", path=f"{number}.txt")
            found += [model("", read), result(read, "words")]
        found.append(model(f"{name} answer {number}"))
    return found


def _read_back(client: SeedClient, session: str) -> list[str]:
    """The text of every message, from the newest page back to the first."""
    client.request(SESSION_SWITCH, {"session_id": session})
    (last,) = client.history(limit=1)["messages"]
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = client.history(offset=offset, limit=170)
        seen = [each["content"] for each in page["messages"]] + seen
        offset = page.get("next_offset")
    assert len(seen) == page["message_count"]
    assert last["content"] == seen[-1]
    return [text for text in seen if text]


def _texts(bodies: Sequence[object]) -> list[str]:
    messages = [body for body in bodies if isinstance(body, Message)]
    return [part.text for one in messages for part in one.parts if isinstance(part, Text)]


def test_another_server_counts_only_what_is_new_and_shows_the_same_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items, more = _messages("first", 700), _messages("other", 300)

    async def begin(store: Store) -> str:
        info = await store.create(owner="")
        await store.append(info.id, items, parent=None)
        return info.id

    async def branch(store: Store, session: str) -> list[str]:
        """Another branch from the middle: the counts before it hold for both."""
        path = await store.path(session)
        await store.rewind(session, path[1_199].id)
        await store.append(session, more, parent=path[1_199].id)
        return _texts([*(entry.body for entry in path[:1_200]), *more])

    with scripted_provider(tmp_path / "home", monkeypatch, ["More."]):
        with running_server(tmp_path) as server, SeedClient(server.port) as client:
            session = server.call(lambda: begin(server.hub.store))
            assert _read_back(client, session) == _texts(items)
        with running_server(tmp_path) as other, SeedClient(other.port) as client:
            assert _read_back(client, session) == _texts(items)
            expected = other.call(lambda: branch(other.hub.store, session))
            assert _read_back(client, session) == expected
        with running_server(tmp_path) as third, SeedClient(third.port) as client:
            assert _read_back(client, session) == expected
