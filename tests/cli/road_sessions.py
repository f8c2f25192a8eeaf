"""Sessions that came to be in every way, and models of every format behind a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recollect.codecs.wire_protocol import Wire
from recollect.codecs.wires import WIRES
from recollect.entries import Body, Entry, Message, Request, Text, ToolCall
from recollect.profiles import WireName, find_profile
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, model, result, user
from tests.cli.model_server import ENV
from tests.cli.runner import Cli
from tests.models.server import Server, http
from tests.transcripts.file_builders import (
    gemini_file,
    model_record,
    server_call,
    server_file,
    server_record,
    tool_call,
    user_record,
)

FORMATS: tuple[WireName, ...] = ("openai", "anthropic", "gemini")
GEMINI = gemini_file(
    user_record("m1", "Where is the limiter?"),
    model_record("m2", "I look.", toolCalls=[tool_call("c1", "def limit(): ...")]),
    model_record("m3", "In a.py."),
)
PROMPT = "What is in a.py?"
HISTORY_SERVER = server_file(
    server_record("user", "How busy is it?"),
    server_record("assistant", "I measure.", server_call()),
    server_record("assistant", "Three percent."),
)


def wire_of(name: WireName) -> Wire:
    return WIRES[name].build("m", find_profile("m"))


def says(*said: str | ToolCall, wire: WireName = "openai") -> bytes:
    """A reply of texts and calls in this format."""
    parts = tuple(Text(text=one) if isinstance(one, str) else one for one in said)
    made = Message(role="model", parts=parts, finish="stop")
    return http(b"".join(wire_of(wire).encode_stream(made)))


def import_value(cli: Cli, folder: Path, value: Any, format_name: str = "") -> str:
    """The id of the session that this file becomes."""
    file = folder / "session-1.json"
    file.write_text(json.dumps(value, ensure_ascii=False))
    chosen = ("--from", format_name) if format_name else ()
    cli.ok("import", str(file), *chosen)
    return only_session(cli)


def only_session(cli: Cli) -> str:
    (session,) = cli.ok("sessions", "--all", "--json").json
    return str(session["id"])


def reads(times: int, lines: int = 40) -> list[Body]:
    """A conversation in which one file is read so often, whole."""
    found: list[Body] = [user("Watch a.py.")]
    for number in range(times):
        use = call("read_file", id=f"r{number}", absolute_path="a.py")
        found += [
            Message(role="model", parts=(use,)),
            result(use, f"# version {number}\n" + "value = 1\n" * lines),
            model(f"Seen {number}."),
            user(f"Again, {number}."),
        ]
    return found


def requests(cli: Cli, session: str) -> list[Entry]:
    """The requests in a session's path."""

    async def work(store: SqliteStore) -> tuple[Entry, ...]:
        return await store.path(session)

    return [entry for entry in cli.write(work) if isinstance(entry.body, Request)]


def sent_text(on: Server, number: int = -1) -> str:
    return on.asked[number].body.decode()


def all_messages(on: Server, number: int, wire: WireName) -> list[Any]:
    """The system instructions and the messages of a request, in any format."""
    body = json.loads(on.asked[number].body)
    if wire == "openai":
        return list(body["messages"])
    if wire == "anthropic":
        return [body["system"], *body["messages"]]
    return [body["systemInstruction"], *body["contents"]]


def check_agreement(
    cli: Cli, on: Server, session: str, prompt: str = PROMPT, cwd: Path | None = None
) -> None:
    """Look at the next request in every way, send it, and look at it again."""
    before = len(on.asked)
    shown = cli.ok("context", session, "--prompt", prompt, "--json", env=ENV, cwd=cwd).json
    encoded = cli.ok("encode", session, "--prompt", prompt, env=ENV, cwd=cwd).out.encode()
    assert len(on.asked) == before
    cli.ok("-r", session, "-p", prompt, env=ENV, cwd=cwd)
    assert len(on.asked) > before
    assert on.asked[-1].body == encoded
    sent = requests(cli, session)[-1]
    assert isinstance(sent.body, Request)
    assert sent.body.tokens == shown["next_request"]["tokens"]
    again = cli.ok("encode", session, "--at", sent.id, env=ENV, cwd=cwd).out.encode()
    assert again == encoded
    then = cli.ok("context", session, "--at", sent.id, "--json", env=ENV, cwd=cwd).json
    assert then["tokens"] == sent.body.tokens
