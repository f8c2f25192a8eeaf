"""A client that knows only the seed's types, and never says HELLO, holds a conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.agent.exchange import message_text
from recollect.entries import Message
from recollect.testing import ProviderLine, call, says
from tests.server.hubs import scripted_provider
from tests.server.nplt.nplt_servers import RunningServer, running_server
from tests.server.nplt.seed_client import (
    CLEAR_REQUEST,
    CLIENT_UDP_PORT,
    HISTORY_REQUEST,
    MODEL_SWITCH,
    SESSION_DELETE,
    SESSION_LIST,
    SESSION_NEW,
    SESSION_SWITCH,
    SeedClient,
)


def stored_answers(server: RunningServer, session: str) -> list[str]:
    """What models said in a session."""
    entries = server.call(lambda: server.hub.store.path(session))
    bodies = [entry.body for entry in entries]
    return [message_text(b) for b in bodies if isinstance(b, Message) and b.role == "model"]


def short_id(text: str) -> str:
    return text.rsplit(" ", 1)[-1]


def test_a_chat_is_streamed_and_the_stored_answer_is_the_shown_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = ["Hello, 世界.", "Again."]
    with (
        scripted_provider(tmp_path / "home", monkeypatch, script),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        assert short_id(client.welcome)
        assert client.chat("Hi.") == "Hello, 世界."
        assert client.thoughts[-1]["type"] == "stream_start"
        page = client.history()
        assert page["session_id"].endswith(short_id(client.welcome))
        assert page["message_count"] == 2
        said = [(message["role"], message["content"]) for message in page["messages"]]
        assert said == [("user", "Hi."), ("assistant", "Hello, 世界.")]
        assert stored_answers(server, page["session_id"]) == ["Hello, 世界."]
        assert client.chat("And?") == "Again."
        assert client.history()["message_count"] == 4


def test_the_first_session_is_listed_from_the_beginning_and_stored_with_its_first_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["Hello."]),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
        SeedClient(server.port) as other,
    ):
        first = short_id(client.welcome)
        assert f"* {first}" in client.request(SESSION_LIST)
        assert first not in other.request(SESSION_LIST)
        client.chat("What is up?")
        listed = client.request(SESSION_LIST)
        assert f"* {first}  What is up?" in listed
        assert f"  {first}  What is up?" in other.request(SESSION_LIST)


def test_sessions_are_made_switched_cleared_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["One.", "Two.", "Three."]),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        client.chat("first")
        first = client.history()["session_id"]
        client.request(SESSION_NEW)
        client.chat("second")
        second = client.history()["session_id"]
        assert second != first
        assert "first" in client.request(SESSION_SWITCH, {"session_id": first[:18]})
        assert client.history()["session_id"] == first
        client.request(SESSION_SWITCH, {"session_id": second[-8:]})
        assert client.history()["messages"][0]["content"] == "second"
        assert second[-8:] in client.request(CLEAR_REQUEST)
        assert client.history()["messages"] == []
        client.chat("third")
        gone = client.request(SESSION_DELETE, {"session_id": second})
        assert second[-8:] in gone
        listed = client.request(SESSION_LIST)
        assert first[-8:] in listed
        assert second[-8:] not in listed
        refused = client.request(SESSION_SWITCH, {"session_id": second})
        assert "trash" in refused
        assert client.history()["messages"][0]["content"] == "third"


def test_deleting_the_current_session_begins_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["One.", "Two."]),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        client.chat("first")
        first = client.history()["session_id"]
        client.request(SESSION_DELETE, {"session_id": first})
        assert client.chat("second") == "Two."
        assert client.history()["session_id"] != first


def test_an_imported_session_is_found_by_the_id_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "session_20251231_abc123.json"
    message = {
        "role": "user",
        "content": "帮我查看CPU使用率",
        "timestamp": "2025-12-31T10:00:00",
        "tool_calls": [],
        "metadata": {"from": "another program"},
    }
    called = {
        "tool_name": "sys_monitor",
        "arguments": {"metric": "cpu"},
        "result": "CPU 使用率: 3.0%",
        "status": "success",
        "duration": 0.5,
        "timestamp": "2025-12-31T10:00:02",
    }
    answer = message | {"role": "assistant", "content": "让我查看一下", "tool_calls": [called]}
    value = {
        "session_id": "abc123-def456-0000",
        "messages": [message, answer],
        "created_at": "2025-12-31T10:00:00",
        "updated_at": "2025-12-31T10:05:00",
    }
    file.write_text(json.dumps(value))
    with (
        scripted_provider(tmp_path / "home", monkeypatch, []),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        server.call(lambda: server.hub.runtime.import_file(file))
        client.request(SESSION_SWITCH, {"session_id": "abc123"})
        assert client.history()["messages"] == [message, answer]
        text = client.request(HISTORY_REQUEST, {"format": "text"})
        assert text == "\n\n=== 对话历史 ===\n\n用户: 帮我查看CPU使用率\n\n助手: 让我查看一下\n\n"


def test_the_history_of_an_empty_session_says_so_in_the_seeds_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, []),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        assert client.request(HISTORY_REQUEST, {"format": "text"}) == "暂无对话历史"
        assert client.history()["message_count"] == 0


def test_a_tool_call_is_a_thought_and_its_result_is_in_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: list[ProviderLine] = [
        says("Let me look.", call("list_directory", path=".")),
        "It is empty.",
    ]
    with (
        scripted_provider(tmp_path / "home", monkeypatch, script),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        assert client.chat("What is here?") == "Let me look.\n\nIt is empty."
        kinds = [thought["type"] for thought in client.thoughts]
        assert kinds == ["thinking", "stream_start", "tool_call", "generating"]
        _, looked, said = client.history()["messages"]
        (used,) = looked["tool_calls"]
        assert used["tool_name"] == "list_directory"
        assert used["status"] == "success"
        assert used["result"]
        assert said["content"] == "It is empty."


def test_the_rest_of_the_table_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["Hi."]),
        running_server(tmp_path) as server,
        SeedClient(server.port) as client,
    ):
        assert "UDP" in client.request(CLIENT_UDP_PORT, {"port": 9998})
        assert "mine" in client.request(MODEL_SWITCH, {"model": "mine"})
        assert "unknown model" in client.request(MODEL_SWITCH, {"model": "nothing-like-it"})
        client.send(0x01, "HEARTBEAT")
        assert client.receive().payload == b"HEARTBEAT"
        assert "0x7f" in client.request(0x7F, b"whatever")
        assert client.chat("Still there?") == "Hi."
