"""Reads of one file under several spellings of its path supersede each other, as one file's do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.provider import ENV, provider
from tests.cli.runner import Cli
from tests.cli.session_files import CLAUDE_ID, GEMINI_ID, only_session

SPELLINGS = [
    "C:\\proj\\a.py",
    "c:\\proj\\a.py",
    "c:/proj/a.py",
    "C:/proj/a.py",
    "C:\\proj\\.\\a.py",
    "c:\\proj\\lib\\..\\a.py",
    "\\\\?\\C:\\proj\\a.py",
    "C:\\proj\\a.py",
]
KEPT = 5  # reads of one file


def content(number: int) -> str:
    return f"# version {number}\n" + "".join(f"line_{n} = {number}\n" for n in range(300))


def claude_reads(file: Path, paths: Sequence[str], cwd: str) -> Path:
    """A session of Claude Code that reads these files, one after the other."""
    messages: list[tuple[str, Any]] = [("user", "Read it.")]
    for number, path in enumerate(paths):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": path}}
        text = "".join(f"{n:6}→{line}\n" for n, line in enumerate(content(number).splitlines(), 1))
        gave = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
        messages += [("assistant", [use]), ("user", [gave])]
    lines = []
    for number, (role, said) in enumerate(messages):
        message: dict[str, Any] = {"role": role, "content": said}
        if role == "assistant":
            message |= {"id": f"m{number}", "type": "message", "model": "claude-sonnet-4-5"}
        record = {
            "type": role,
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            "sessionId": CLAUDE_ID,
            "cwd": cwd,
            "timestamp": f"2025-01-01T10:00:{number:02}.000Z",
            "message": message,
        }
        lines.append(json.dumps(record))
    file.write_text("\n".join(lines) + "\n")
    return file


def gemini_reads(file: Path, paths: Sequence[str], cwd: str) -> Path:
    """A session of Gemini CLI that reads these files, one after the other."""
    time = "2025-01-01T10:00:00.000Z"
    messages: list[dict[str, Any]] = [
        {"id": "m", "timestamp": time, "type": "user", "content": "Read it."}
    ]
    for number, path in enumerate(paths):
        response = {
            "id": f"c{number}",
            "name": "read_file",
            "response": {"output": content(number)},
        }
        call = {
            "id": f"c{number}",
            "name": "read_file",
            "args": {"absolute_path": path},
            "result": [{"functionResponse": response}],
            "status": "success",
            "timestamp": time,
        }
        reply = {"id": f"m{number}", "timestamp": time, "type": "gemini", "content": ""}
        messages.append({**reply, "toolCalls": [call]})
    about = {"sessionId": GEMINI_ID, "projectHash": "h", "startTime": time, "lastUpdated": time}
    file.write_text(json.dumps({**about, "directories": [cwd], "messages": messages}))
    return file


WRITERS = [claude_reads, gemini_reads]


def versions(request: str) -> list[int]:
    """Which reads a request still carries."""
    return [number for number in range(len(SPELLINGS)) if f"# version {number}" in request]


def imported(cli: Cli, file: Path) -> str:
    cli.ok("import", str(file))
    session: str = only_session(cli)["id"]
    return session


def encoded(cli: Cli, session: str) -> str:
    return cli.ok("encode", session, "--to", "gemini", "-m", "gemini-2.5-pro", "--prompt", "on").out


@pytest.mark.parametrize("write", WRITERS)
def test_a_drive_in_any_spelling_is_one_file(cli: Cli, tmp_path: Path, write: Any) -> None:
    session = imported(cli, write(tmp_path / "s.jsonl", SPELLINGS, "C:\\proj"))
    newest = list(range(len(SPELLINGS) - KEPT, len(SPELLINGS)))
    assert versions(encoded(cli, session)) == newest
    shown = cli.ok("context", session, "-m", "gemini-2.5-pro").out
    assert "the next request would leave out: superseded-read" in shown
    assert shown.count("superseded-read  c:/proj/a.py") == 1
    with provider(cli, "gemini", ["Done."]) as server:
        cli.ok("-r", session, "-p", "Go on.", env=ENV)
    assert versions(server.requests[0].body.decode()) == newest
    left_out = cli.ok("context", session).out
    assert left_out.count("read of c:/proj/a.py lines 1-301 before") == len(SPELLINGS) - KEPT


@pytest.mark.parametrize("write", WRITERS)
def test_two_posix_paths_that_differ_in_case_are_two_files(
    cli: Cli, tmp_path: Path, write: Any
) -> None:
    paths = ["/A/x.py", "/a/x.py"] * (len(SPELLINGS) // 2)
    session = imported(cli, write(tmp_path / "s.jsonl", paths, "/"))
    assert versions(encoded(cli, session)) == list(range(len(SPELLINGS)))
    with provider(cli, "gemini", ["Done."]) as server:
        cli.ok("-r", session, "-p", "Go on.", env=ENV)
    assert versions(server.requests[0].body.decode()) == list(range(len(SPELLINGS)))
