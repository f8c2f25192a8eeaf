"""The faults of the system that the seed describes stay away."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from recollect.entries import Message
from recollect.errors import ProviderFailed
from recollect.testing import ProviderLine, faulty, user
from tests.server.hubs import scripted_provider
from tests.server.nplt.nplt_servers import RunningServer, running_server
from tests.server.nplt.seed_client import (
    AGENT_THOUGHT,
    CHAT_TEXT,
    SESSION_LIST,
    SESSION_SWITCH,
    SeedClient,
)

SILENT = faulty("half an ans", end="none", close="silence")


def begin_answer(client: SeedClient, text: str) -> str:
    """Send a message and read the first piece of its answer."""
    client.send(CHAT_TEXT, text)
    while True:
        frame = client.receive()
        if frame.type == CHAT_TEXT:
            return frame.text


def sessions_in_store(server: RunningServer) -> int:
    return len(server.call(server.hub.store.sessions))


def test_one_slow_model_call_stalls_nobody_and_heartbeats_are_answered_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: list[ProviderLine] = [SILENT, "Quick."]
    with (
        scripted_provider(tmp_path / "home", monkeypatch, script),
        running_server(tmp_path) as server,
        SeedClient(server.port) as slow,
        SeedClient(server.port) as quick,
    ):
        begin_answer(slow, "Never ends.")
        assert quick.chat("Hi.") == "Quick."
        slow.send(CHAT_TEXT, "HEARTBEAT")
        while slow.receive().payload != b"HEARTBEAT":
            pass
        assert "Hi." in quick.request(SESSION_LIST)


def test_a_reply_to_a_command_never_falls_into_the_middle_of_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: list[ProviderLine] = [faulty("one two three four five six", piece=4, pause=0.02)]
    with (
        scripted_provider(tmp_path / "home", monkeypatch, script),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        client.send(CHAT_TEXT, "Count.")
        client.send(SESSION_LIST)
        client.send(0x7F, b"?")
        assert client.answer() == "one two three four five six"
        assert "Count." in client.receive().text
        assert "0x7f" in client.receive().text


def test_messages_that_are_sent_at_once_are_answered_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["one", "two", "three"]),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        for text in ("a", "b", "c"):
            client.send(CHAT_TEXT, text)
        assert [client.answer() for _ in range(3)] == ["one", "two", "three"]
        said = [each["content"] for each in client.history()["messages"]]
        assert said == ["a", "one", "b", "two", "c", "three"]


def test_each_connection_has_its_own_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["x"], repeat=True),
        running_server(tmp_path) as server,
        SeedClient(server.port) as one,
        SeedClient(server.port) as two,
    ):
        one.chat("from one")
        two.chat("from two")
        first = one.history()["session_id"]
        assert two.history()["session_id"] != first
        two.request(SESSION_SWITCH, {"session_id": first})
        assert two.history()["messages"][0]["content"] == "from one"
        assert one.history()["session_id"] == first


def test_connections_that_say_nothing_leave_no_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["x"]),
        running_server(tmp_path) as server,
    ):
        for _ in range(20):
            with SeedClient(server.port) as client:
                client.request(SESSION_LIST)
        assert sessions_in_store(server) == 0


def test_a_seed_client_is_told_what_a_retry_voids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: list[ProviderLine] = [
        faulty("half an ans", end="none", close="early"),
        "The whole answer.",
    ]
    with (
        scripted_provider(tmp_path / "home", monkeypatch, script),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        shown = client.chat("Hi.")
        void, _, valid = shown.rpartition("]\n\n")
        assert "void" in void
        assert valid == "The whole answer."
        assert client.history()["messages"][-1]["content"] == valid


def test_an_error_of_the_model_is_one_text_and_the_message_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = ProviderFailed("no such thing", 400)
    with (
        scripted_provider(tmp_path / "home", monkeypatch, [refused, "Better."]),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        assert "no such thing" in client.chat("Hi.")
        assert client.chat("Again?") == "Better."
        said = [each["content"] for each in client.history()["messages"]]
        assert said == ["Hi.", "Again?", "Better."]


def test_an_answer_that_breaks_is_ended_then_explained_and_stored_as_far_as_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = faulty("half an ans", end="none", close="early")
    with (
        scripted_provider(tmp_path / "home", monkeypatch, [broken, broken]),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        shown = client.chat("Hi.")
        assert "error" in client.receive().text
        stored = client.history()["messages"][-1]
        assert stored["metadata"]["finish"] == "interrupted"
        assert shown.endswith(stored["content"])


def test_an_answer_that_is_exactly_heartbeat_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, [faulty("HEARTBEAT", piece=100)]),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        assert client.chat("Say it.") == "HEARTBEAT"


def test_a_long_answer_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "数 ".join(map(str, range(40_000)))
    with (
        scripted_provider(tmp_path / "home", monkeypatch, [faulty(text, piece=150_000)]),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        assert client.chat("Count.") == text


def test_a_run_goes_on_without_its_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def wait(_: object) -> str:
        go_on.wait(30)
        return "Late."

    with (
        scripted_provider(tmp_path / "home", monkeypatch, [wait]),
        running_server(tmp_path) as server,
    ):
        with SeedClient(server.port) as client:
            client.send(CHAT_TEXT, "Take your time.")
            while client.receive().type != AGENT_THOUGHT:
                pass
        go_on.set()
        with SeedClient(server.port) as other:
            while "Take your time." not in (listed := other.request(SESSION_LIST)):
                pass
            short = next(line for line in listed.splitlines() if "Take" in line).split()[0]
            other.request(SESSION_SWITCH, {"session_id": short})
            while len(other.history()["messages"]) < 2:
                pass
            assert other.history()["messages"][-1]["content"] == "Late."


def test_a_run_is_cancelled_with_its_client_where_the_server_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, [SILENT]),
        running_server(tmp_path, cancel_on_disconnect=True) as server,
    ):
        with SeedClient(server.port) as client:
            begin_answer(client, "Never ends.")
        with SeedClient(server.port) as other:
            while server.hub.counts.cancelled == 0:
                other.send(CHAT_TEXT, "HEARTBEAT")
                other.receive()
            listed = other.request(SESSION_LIST)
            short = next(line for line in listed.splitlines() if "Never" in line).split()[0]
            other.request(SESSION_SWITCH, {"session_id": short})
            assert other.history()["messages"][-1]["metadata"]["finish"] == "interrupted"


def test_a_writer_that_was_first_sends_the_answer_into_a_fork_and_the_client_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def wait(_: object) -> str:
        entered.set()
        go_on.wait(30)
        return "From the fork."

    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["One.", wait, "Three."]),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        client.chat("first")
        before = client.history()["session_id"]
        client.send(CHAT_TEXT, "second")
        assert entered.wait(30)
        store = server.hub.store
        head = server.call(lambda: store.session(before)).head
        server.call(lambda: store.append(before, [user("another machine")], parent=head))
        go_on.set()
        assert client.answer() == "From the fork."
        assert "another client wrote" in client.receive().text
        page = client.history()
        assert page["session_id"] != before
        assert page["messages"][-1]["content"] == "From the fork."
        assert client.chat("third") == "Three."
        assert client.history()["session_id"] == page["session_id"]
        bodies = [entry.body for entry in server.call(lambda: store.path(before))]
        assert [b for b in bodies if isinstance(b, Message)][-1] == user("another machine")
