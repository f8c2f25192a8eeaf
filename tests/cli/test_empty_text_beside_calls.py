"""A call and its result are sent whatever empty text, blank or thought stands beside the call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.codecs.encoder import encode
from recollect.codecs.wire_protocol import RequestOptions
from recollect.codecs.wires import WIRES
from recollect.entries import Message, Part, Text, Thought, ToolCall, ToolResult, Unknown
from recollect.profiles import WireName, find_profile
from recollect.view.curation import CurationPolicy, DropPolicy, ValidityCheck
from recollect.view.view import View
from tests.cli.model_server import ENV, server
from tests.cli.road_sessions import FORMATS, says
from tests.cli.runner import Cli
from tests.session.test_session import in_store
from tests.tools.calls import view as view_of

FORMS: tuple[WireName, ...] = ("gemini", "openai", "anthropic")
CALL = ToolCall(id="c1", name="weather", arguments='{"city":"B"}')
BESIDE: dict[str, tuple[Part, ...]] = {
    "nothing": (CALL,),
    "empty": (Text(text=""), CALL),
    "empty after": (CALL, Text(text="")),
    "blank": (Text(text=" \n\t"), CALL),
    "invisible": (Text(text="\u200b\u2060\ufeff"), CALL),
    "thought": (Thought(text="hm"), CALL),
    "empty thought": (Thought(text=""), Text(text=""), CALL),
    "unknown": (Unknown(data="{}"), Text(text=""), CALL),
    "no id": (Text(text=""), ToolCall(id="", name="weather", arguments="{}")),
}
RESULT = ToolResult(call_id="c1", name="weather", content=(Text(text="rain"),))


def sent_calls(form: WireName, body: Any) -> tuple[int, int]:
    """How many calls and results a request has."""
    text = json.dumps(body)
    words = {
        "openai": ('"tool_calls": [', '"role": "tool"'),
        "anthropic": ('"type": "tool_use"', '"type": "tool_result"'),
        "gemini": ('"functionCall": {', '"functionResponse": {'),
    }[form]
    return text.count(words[0]), text.count(words[1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("validity", ["strict", "any_part"])
@pytest.mark.parametrize("dropping", ["keep_user", "drop_pair"])
@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("before", [(), (Message(role="model", parts=(Text(text=""),)),)])
def test_the_call_and_its_result_are_sent(
    form: WireName,
    validity: ValidityCheck,
    dropping: DropPolicy,
    beside: tuple[Part, ...],
    before: tuple[Message, ...],
) -> None:
    ids = {part.id for part in beside if isinstance(part, ToolCall)}
    answered = Message(
        role="user", parts=(ToolResult(call_id=ids.pop(), name="weather", content=RESULT.content),)
    )
    asked = recollect.user("Umbrella?")
    log = view_of(asked, *before, Message(role="model", parts=beside), answered)
    view = View.fold(log.entries, policy=CurationPolicy(validity, dropping))
    wire = WIRES[form].build("m", find_profile("m"))
    body = json.loads(encode(wire, view, RequestOptions(model="m")).body)
    assert sent_calls(form, body) == (1, 1)
    assert "rain" in json.dumps(body)
    assert "Umbrella?" in json.dumps(body)
    assert "interrupted" not in json.dumps(body)


OPENAI_REPLY = {
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": "{}"},
                    }
                ],
            },
        }
    ]
}
ANTHROPIC_REPLY = {
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "c1", "name": "weather", "input": {}},
    ],
    "stop_reason": "tool_use",
}
GEMINI_PARTS = [{"text": ""}, {"functionCall": {"id": "c1", "name": "weather", "args": {}}}]
GEMINI_REPLY = {
    "candidates": [{"content": {"role": "model", "parts": GEMINI_PARTS}, "finishReason": "STOP"}]
}
GIVEN = (
    ("append_openai", OPENAI_REPLY),
    ("append_openai", OPENAI_REPLY["choices"][0]["message"]),
    ("append_anthropic", ANTHROPIC_REPLY),
    ("append_anthropic", {"role": "assistant", "content": ANTHROPIC_REPLY["content"]}),
    ("append_gemini", GEMINI_REPLY),
    ("append_gemini", {"role": "model", "parts": GEMINI_PARTS}),
)


@pytest.mark.parametrize(("append", "item"), GIVEN)
def test_what_an_sdk_returned_is_sent_in_every_format(
    tmp_path: Path, append: str, item: dict[str, Any]
) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        await session.append(recollect.user("Umbrella?"))
        await getattr(session, append)(item)
        await session.append(Message(role="user", parts=(RESULT,)))
        for form in FORMS:
            assert sent_calls(form, session.messages(form)) == (1, 1)

    in_store(tmp_path, story)


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("validity", ["strict", "any_part"])
def test_a_run_goes_on_after_a_call_beside_empty_text(
    cli: Cli, wire: WireName, validity: str
) -> None:
    listed = ToolCall(id="c1", name="list_directory", arguments="{}")
    answers = (says("", listed, wire=wire), says("Done.", wire=wire))
    more = f'wire = "{wire}"\n[context]\nvalidity = "{validity}"\n'
    with server(cli, *answers, more=more, window=30_000) as on:
        assert cli.ok("-p", "Look.", env=ENV).out.strip() == "Done."
        assert sent_calls(wire, json.loads(on.asked[1].body)) == (1, 1)


@pytest.mark.parametrize("wire", FORMATS)
def test_an_imported_call_beside_empty_text_is_sent(
    cli: Cli, wire: WireName, tmp_path: Path
) -> None:
    call = {
        "id": "c1",
        "name": "weather",
        "args": {"city": "B"},
        "result": [
            {"functionResponse": {"id": "c1", "name": "weather", "response": {"output": "rain"}}}
        ],
        "status": "success",
    }
    time = "2026-01-02T03:04:05.000Z"
    asked = {"id": "m1", "timestamp": time, "type": "user", "content": "Umbrella?"}
    answer = {"id": "m2", "timestamp": time, "type": "gemini", "content": "", "toolCalls": [call]}
    record = {
        "sessionId": "s1",
        "projectHash": "p",
        "startTime": time,
        "lastUpdated": time,
        "messages": [asked, answer],
    }
    file = tmp_path / "session-2026-01-02T03-04-s1.json"
    file.write_text(json.dumps(record))
    cli.ok("import", str(file))
    with server(cli, says("Done.", wire=wire), more=f'wire = "{wire}"\n', window=30_000) as on:
        (session,) = cli.ok("sessions", "--all", "--json").json
        cli.ok("-r", session["id"], "-p", "And now?", env=ENV)
        assert sent_calls(wire, json.loads(on.asked[0].body)) == (1, 1)
        assert "rain" in on.asked[0].body.decode()
