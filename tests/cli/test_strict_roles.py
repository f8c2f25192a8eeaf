"""Servers that want user and assistant by turns are served, once they have said so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest

from recollect.codecs.text_tools import TextToolsWire
from recollect.entries import Body, Message, Text
from recollect.testing import call, model, result, user
from tests.cli.model_server import ENV, WIRE, messages, server
from tests.cli.road_sessions import only_session, requests, says
from tests.cli.runner import Cli
from tests.models.server import Play, Server, http

Roles = list[dict[str, Any]]
TEXT_WIRE = TextToolsWire(wire=WIRE, tools=())
MISTRAL = (
    "After the optional system message, conversation roles must alternate user and assistant roles "
    "except for tool calls and results."
)
GEMMA = "Conversation roles must alternate user/assistant/user/assistant/..."


def without_system(sent: Roles) -> Roles:
    return sent[1:] if sent and sent[0]["role"] == "system" else sent


def follows_mistral(sent: Roles) -> bool:
    """As its template checks it: messages of tool calls do not count, and nothing but them may
    stand between two of one role; its service also wants an assistant after results."""
    sent = without_system(sent)
    roles = [m["role"] for m in sent]
    if any(pair == ("tool", "user") for pair in pairwise(roles)):
        return False
    spoken = [m["role"] for m in sent if m["role"] != "tool" and "tool_calls" not in m]
    return spoken == (["user", "assistant"] * len(spoken))[: len(spoken)]


def follows_gemma(sent: Roles) -> bool:
    """One system message, then users and assistants by turns; no other role; only text."""
    sent = without_system(sent)
    turns = [m["role"] for m in sent] == (["user", "assistant"] * len(sent))[: len(sent)]
    return turns and all(isinstance(m["content"], str) for m in sent)


@contextmanager
def strict(
    cli: Cli, accepts: Callable[[Roles], bool], error: str, *answers: bytes, more: str = ""
) -> Iterator[Server]:
    """Answers 400 until the roles are in order, then what is next."""
    found: list[Server] = []
    left = list(answers)

    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        good = accepts(json.loads(found[0].asked[-1].body)["messages"])
        refusal = json.dumps({"error": {"message": error, "code": 400}}).encode()
        writer.write(left.pop(0) if good else http(refusal, "400 Bad", "application/json"))
        await writer.drain()

    asked: Play = play
    with server(cli, asked, window=30_000, more=more) as on:
        found.append(on)
        yield on


def text_reply(*parts: Any) -> bytes:
    made = Message(role="model", parts=parts, finish="stop")
    return http(b"".join(TEXT_WIRE.encode_stream(made)))


READ = call("read_file", id="a", absolute_path="a.py")
# an interrupted exchange: results, and then the user again; an instruction in the middle
HISTORY: list[Body] = [
    user("one"),
    user("two"),
    model("I look.", READ),
    result(READ, "x = 1"),
    user("never mind"),
    Message(role="system", parts=(Text(text="be brief"),)),
    model("Yes."),
    model("And more."),
]


def test_a_server_that_wants_roles_to_alternate_is_served_from_its_first_error_on(cli: Cli) -> None:
    (cli.project / "a.py").write_text("x = 1\n")
    with strict(cli, follows_mistral, MISTRAL, says(READ), says("Done."), says("Two.")) as on:
        done = cli.ok("-p", "Look.", env=ENV)
        assert done.out.strip() == "Done."
        assert "roles to alternate" in done.err
        assert len(on.asked) == 3  # refused once, then never again
        roles = [m["role"] for m in messages(on)]
        assert roles == ["system", "user", "assistant", "tool"]
        for request, asked in zip(requests(cli, only_session(cli)), on.asked, strict=True):
            at = ("encode", only_session(cli), "--at", request.id)
            assert cli.ok(*at, env=ENV).out.encode() == asked.body
        cli.ok("-c", "-p", "Again.", env=ENV)


def test_an_imported_like_history_is_put_in_order(cli: Cli) -> None:
    session, _ = cli.session(HISTORY)
    with strict(
        cli, follows_mistral, MISTRAL, says("Done."), more="alternating_roles = true"
    ) as on:
        assert cli.ok("-r", session.id, "-p", "Go on.", env=ENV).out.strip() == "Done."
        assert len(on.asked) == 1  # the setting says it
        assert follows_mistral(messages(on))
        said = json.dumps(messages(on))
        for words in ("one", "two", "I look.", "x = 1", "never mind", "be brief", "And more."):
            assert words in said


def test_a_server_without_a_role_for_tools_gets_them_in_text(cli: Cli) -> None:
    (cli.project / "a.py").write_text("x = 1\n")
    session, _ = cli.session(HISTORY)
    answers = (text_reply(READ), text_reply(Text(text="Done.")))
    with strict(cli, follows_gemma, GEMMA, *answers) as on:
        done = cli.ok("-r", session.id, "-p", "Look.", env=ENV)
        assert done.out.strip() == "Done."
        assert "roles to alternate" in done.err
        assert "in text" in done.err
        assert len(on.asked) == 4
        assert follows_gemma(messages(on))
        assert "x = 1" in messages(on)[-1]["content"]


def test_a_server_that_refuses_whatever_it_gets_is_not_asked_for_ever(cli: Cli) -> None:
    with strict(cli, lambda _: False, GEMMA) as on:
        done = cli("-p", "Look.", env=ENV)
        assert done.code != 0
        assert "must alternate" in done.err
        assert len(on.asked) == 3


@pytest.mark.parametrize("tools", ["native", "text"])
def test_a_setting_says_it_before_any_error(cli: Cli, tools: str) -> None:
    answer = says("Done.") if tools == "native" else text_reply(Text(text="Done."))
    more = f'alternating_roles = true\ntools = "{tools}"\n'
    with strict(cli, follows_gemma, GEMMA, answer, more=more) as on:
        assert cli.ok("-p", "Hello?", env=ENV).out.strip() == "Done."
        assert len(on.asked) == 1
        assert sum(m["role"] == "system" for m in messages(on)) == 1
