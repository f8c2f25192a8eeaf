"""OpenAI's messages in history-server files are read as what they are, and written as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.runner import Cli
from tests.cli.session_files import messages_of, only_session, server_file

PIXEL = "iVBORw0KGgo="
CALL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}


def imported(cli: Cli, folder: Path, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    file = server_file(folder / "chat.json", messages)
    cli.ok("import", str(file))
    session = only_session(cli)["id"]
    written = cli.ok("export", session, "--to", "history-server", "-o", "-").json
    assert written == json.loads(file.read_bytes())
    return messages_of(cli, session)


def test_a_tools_message_is_the_result_of_its_call(cli: Cli, tmp_path: Path) -> None:
    _, called, answer, _ = imported(
        cli,
        tmp_path,
        {"role": "user", "content": "What is here?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"role": "assistant", "content": "One file."},
    )
    assert called["parts"] == [
        {"type": "call", "id": "c1", "name": "ls", "arguments": '{"path": "."}'}
    ]
    (result,) = answer["parts"]
    assert (result["type"], result["call_id"], result["name"]) == ("result", "c1", "ls")
    assert result["content"] == [{"type": "text", "text": "a.py"}]
    shown = cli.ok("show", only_session(cli)["id"]).out
    assert 'ls(path=".")' in shown
    assert shown.count("\nuser  ") == 2


def test_results_without_an_id_answer_the_calls_they_follow(cli: Cli, tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = [
        {"tool_name": name, "arguments": {}} for name in ("ls", "cat", "ls")
    ]
    found = imported(
        cli,
        tmp_path,
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "function", "name": "cat", "content": "text"},
        {"role": "function", "name": "ls", "content": "first"},
        {"role": "tool", "content": "second"},
    )
    made = [part["id"] for part in found[0]["parts"]]
    answered = [message["parts"][0]["call_id"] for message in found[1:]]
    assert answered == [made[1], made[0], made[2]]
    assert found[3]["parts"][0]["name"] == "ls"


def test_a_result_that_stands_in_its_call_and_in_a_message_counts_once(
    cli: Cli, tmp_path: Path
) -> None:
    call = CALL | {"result": "a.py", "status": "success"}
    found = imported(
        cli,
        tmp_path,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
    )
    assert sum(part["type"] == "result" for each in found for part in each["parts"]) == 1


def test_a_developers_message_is_the_systems(cli: Cli, tmp_path: Path) -> None:
    found = imported(
        cli,
        tmp_path,
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
    )
    assert [message["role"] for message in found] == ["system", "user"]
    assert only_session(cli)["title"] == "Hello"


def test_a_list_of_parts_keeps_its_texts_images_and_what_nobody_knows(
    cli: Cli, tmp_path: Path
) -> None:
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/b.jpg", "detail": "low"}},
        {"type": "hologram", "depth": 3},
        "a bare text",
        7,
    ]
    (found,) = imported(cli, tmp_path, {"role": "user", "content": content})
    kinds = [part["type"] for part in found["parts"]]
    assert kinds == ["text", "data", "file", "chat", "text", "chat"]
    assert found["parts"][1]["mime"] == "image/png"
    assert found["parts"][2]["uri"] == "https://example.org/b.jpg"
    assert only_session(cli)["title"] == "What is this?"


def test_blocks_of_anthropics_are_calls_and_results(cli: Cli, tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}
    done = {"type": "tool_result", "tool_use_id": "t1", "content": "text"}
    found = imported(
        cli,
        tmp_path,
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [done]},
    )
    (result,) = found[1]["parts"]
    assert (result["call_id"], result["name"]) == ("t1", "read")


@pytest.mark.parametrize("role", ["narrator", None, 7])
def test_an_unknown_role_is_kept_as_context_and_named(
    cli: Cli, tmp_path: Path, role: object
) -> None:
    messages = [{"role": "user", "content": "Hello"}, {"role": role, "content": "It rained."}]
    file = server_file(tmp_path / "chat.json", messages)
    done = cli.ok("import", str(file))
    assert "message 2 has the role" in done.err
    assert str("null" if role is None else role) in done.err
    session = only_session(cli)
    assert session["title"] == "Hello"
    assert messages_of(cli, session["id"])[1]["context"] == "aside"
    written = cli.ok("export", session["id"], "--to", "history-server", "-o", "-").json
    assert written == json.loads(file.read_bytes())


def test_a_result_without_its_call_is_said(cli: Cli, tmp_path: Path) -> None:
    file = server_file(tmp_path / "chat.json", [{"role": "tool", "content": "a.py"}])
    assert "but not the call" in cli.ok("import", str(file)).err


def test_a_chat_of_every_role_can_be_sent_to_every_provider(cli: Cli, tmp_path: Path) -> None:
    imported(
        cli,
        tmp_path,
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is here?"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a.py"}]},
    )
    for wire in ("gemini", "openai", "anthropic"):
        body = cli.ok("encode", only_session(cli)["id"], "--to", wire).out
        for word in ("Be brief.", "What is here?", "a.py"):
            assert word in body
