"""`recollect encode`: the bytes that would be sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recollect.entries import Message, Text, Thought, entry_to_json
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, model, result, user
from tests.cli.model_server import ENV, server
from tests.cli.runner import Cli
from tests.models.server import HELLO, http

GREP = call("grep", pattern="x")
WIRES = ["gemini", "openai", "anthropic"]


def talk(cli: Cli) -> str:
    session, _ = cli.session(
        [
            Message(role="system", parts=(Text(text="be brief"),)),
            user("find x"),
            Message(role="model", parts=(Thought(text="hm"), GREP), model="claude-opus-4"),
            result(GREP, "found it"),
            model("it is in a.py"),
            user("and y?"),
        ]
    )
    return session.id


@pytest.mark.parametrize("to", WIRES)
def test_stdout_carries_the_request_and_nothing_else(cli: Cli, to: str) -> None:
    done = cli.ok("encode", talk(cli), "--to", to)
    body = json.loads(done.out)
    assert body["contents" if to == "gemini" else "messages"]
    assert not done.out.endswith("\n")
    assert "be brief" in done.out
    assert "found it" in done.out


def test_the_bytes_are_those_that_were_sent(cli: Cli) -> None:
    wanted = "[generation]\ntemperature = 0.3\nmax_output = 77\n"
    with server(cli, http(HELLO), more=wanted) as found:
        first = cli.ok("ask", "one", "--json", env=ENV).json["session_id"]
        cli.ok("ask", "two", "--session", first, env=ENV)
    requests = [entry["id"] for entry in shown(cli, first) if entry["body"]["kind"] == "request"]
    for request, asked in zip(requests, found.asked, strict=True):
        again = cli.ok("encode", first, "--to", "openai", "--model", "mine", "--at", request)
        assert again.out.encode() == asked.body


def shown(cli: Cli, session: str) -> list[dict[str, Any]]:
    async def work(store: SqliteStore) -> list[dict[str, Any]]:
        return [entry_to_json(entry) for entry in await store.path(session)]

    return cli.write(work)


@pytest.mark.parametrize("to", WIRES)
def test_text_tools_have_no_native_call_in_them(cli: Cli, to: str, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"name": "grep", "parameters": {"type": "object"}}]))
    done = cli.ok("encode", talk(cli), "--to", to, "--text-tools", "--tools", str(tools))
    for native in ("functionCall", "tool_calls", "tool_use", "functionDeclarations", '"tools"'):
        assert native not in done.out
    assert "tool_call" in done.out
    assert "**grep**" in done.out


FORMS = [
    [{"type": "function", "function": {"name": "grep", "parameters": {"type": "object"}}}],
    [{"name": "grep", "input_schema": {"type": "object"}}],
    [{"functionDeclarations": [{"name": "grep", "parameters": {"type": "object"}}]}],
    {"tools": [{"name": "grep"}]},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("to", WIRES)
def test_tools_may_be_written_in_any_providers_form(
    cli: Cli, to: str, form: object, tmp_path: Path
) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(form))
    done = cli.ok("encode", talk(cli), "--to", to, "--tools", str(tools))
    assert '"name":"grep"' in json.dumps(json.loads(done.out)["tools"], separators=(",", ":"))


def test_everything_not_sent_as_stored_is_reported(cli: Cli) -> None:
    session = talk(cli)
    short = cli.ok("encode", session, "--to", "openai")
    assert "1 thought (--trace lists them)" in short.err
    told = cli.ok("encode", session, "--to", "openai", "--trace").err
    assert "a thought of 2 characters in message 4 is left out: another model's" in told


def test_an_earlier_request_can_be_shown_again(cli: Cli) -> None:
    session, entries = cli.session([user("one"), model("two"), user("three")])
    body = cli.ok("encode", session.id, "--to", "openai", "--at", entries[0].id).out
    assert [m["content"] for m in json.loads(body)["messages"]] == ["one"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[", "the tools are not JSON"),
        ("7", "the tools are not a JSON list"),
        ("[{}]", "item 1 is not a tool; give it at least a name"),
        ('[{"name":"a"},{"name":"a"}]', "two tools have the name 'a'"),
    ],
)
def test_invalid_tools_are_refused(cli: Cli, text: str, sentence: str, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(text)
    failed = cli("encode", talk(cli), "--to", "openai", "--tools", str(tools))
    assert (failed.code, failed.out) == (1, "")
    assert sentence in failed.err


def test_the_format_is_the_models_own_unless_it_is_named(cli: Cli) -> None:
    assert "max_tokens" in cli.ok("encode", talk(cli)).out  # Anthropic's: claude-opus-4 replied
    assert cli("encode", "feed", "--to", "openai").code == 1
    assert cli("encode", talk(cli), "--to", "cobol").code == 2
