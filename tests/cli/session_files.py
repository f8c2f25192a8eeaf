"""Session files of other programs, as tests of the command line need them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.cli.runner import Cli

CLAUDE_ID = "258c7280-ae70-4798-800f-63464d01a85d"
GEMINI_ID = "0f3a9c21-1111-4222-8333-444444444444"


def gemini_file(
    file: Path, contents: Sequence[object], *, id_: str = GEMINI_ID, **header: Any
) -> Path:
    """Messages of the user and the model in turn; a tuple is a message of the user, too."""
    messages = []
    for number, content in enumerate(contents):
        kind = "gemini" if isinstance(content, dict) else "user"
        value = content["reply"] if isinstance(content, dict) else content
        time = f"2025-01-01T10:00:{number:02}.000Z"
        messages.append({"id": f"m{number}", "timestamp": time, "type": kind, "content": value})
    start = "2025-01-01T10:00:00.000Z"
    about = {"sessionId": id_, "projectHash": "h", "startTime": start, "lastUpdated": start}
    file.write_text(json.dumps({**about, **header, "messages": messages}))
    return file


def claude_file(
    file: Path, contents: Sequence[object], *, id_: str = CLAUDE_ID, cwd: Path | str = "/p"
) -> Path:
    """Records of the user, one after the other; an object is added to its record."""
    lines = []
    for number, content in enumerate(contents):
        more = content if isinstance(content, dict) else {"content": content}
        record = {
            "type": "user",
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            "sessionId": id_,
            "cwd": str(cwd),
            "timestamp": f"2025-01-01T10:{number // 60 % 60:02}:{number % 60:02}.000Z",
            "message": {"role": "user", "content": more["content"]},
        }
        lines.append(json.dumps(record | {k: v for k, v in more.items() if k != "content"}))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")
    return file


def server_file(file: Path, messages: Sequence[Any], *, id_: str = "abc123-def456") -> Path:
    timed = [
        {"timestamp": f"2025-01-01T10:{number // 60 % 60:02}:{number % 60:02}"} | message
        for number, message in enumerate(messages)
    ]
    about = {"session_id": id_, "created_at": "2025-01-01T10:00:00"}
    file.write_text(json.dumps({**about, "updated_at": "2025-01-01T10:00:00", "messages": timed}))
    return file


def only_session(cli: Cli) -> dict[str, Any]:
    (found,) = cli.ok("sessions", "--all", "--json").json
    assert isinstance(found, dict)
    return found


def messages_of(cli: Cli, session: str) -> list[dict[str, Any]]:
    shown = cli.ok("show", session, "--json").json["entries"]
    return [entry["body"] for entry in shown if entry["body"]["kind"] == "message"]
