"""Names of tools that a provider refuses are sent as others, and come back as they were."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.encoder import encode
from recollect.codecs.tool_names import NAME_RULES, sent_tool_name, with_tool_names
from recollect.codecs.wire_protocol import Declaration, Delta, RequestOptions, Wire
from recollect.codecs.wires import WIRES
from recollect.entries import Message, ToolCall
from recollect.profiles import WireName, find_profile
from recollect.testing import call, result, user

FORMS: tuple[WireName, ...] = ("gemini", "openai", "anthropic")
ODD = (
    "server.tool/x",
    "server tool x",
    "",
    "\0\x1b[31m",
    "工具",
    "9 lives",
    "x" * 10_000,
    "é.b:c-d_e",
)
names = (
    st.sampled_from(ODD) | st.text(max_size=200) | st.from_regex(r"[a-z._/-]{1,80}", fullmatch=True)
)
forms = st.sampled_from(FORMS)


def wire_for(form: WireName, tools: Sequence[Declaration] = ()) -> Wire:
    return with_tool_names(WIRES[form].build("m", find_profile("m")), form, tools)


@given(names, forms)
def test_a_sent_name_is_accepted_and_is_sent_as_itself(name: str, form: WireName) -> None:
    sent = sent_tool_name(name, form)
    assert NAME_RULES[form].accepted.fullmatch(sent)
    assert sent_tool_name(sent, form) == sent
    assert sent == name or not NAME_RULES[form].accepted.fullmatch(name)


@given(st.sets(names, max_size=20), forms)
def test_different_names_are_sent_as_different_ones(some: set[str], form: WireName) -> None:
    assert len({sent_tool_name(name, form) for name in some}) == len(some)


def test_what_gemini_cli_makes_of_a_name_begins_ours() -> None:
    """It has no hash and so cannot tell two long names apart."""
    assert sent_tool_name("myFunction", "gemini") == "myFunction"
    assert sent_tool_name("invalid-name with spaces", "gemini").startswith(
        "invalid-name_with_spaces-x"
    )
    assert sent_tool_name("!@#$%^&*()", "gemini").startswith("__________-x")
    assert len(sent_tool_name("x" * 63, "gemini")) == 63
    for length in (64, 80, 10_000):
        sent = sent_tool_name("x" * length, "gemini")
        assert "x___x" in sent
        assert len(sent) <= 63
    # as two processes and two versions must agree
    assert sent_tool_name("server.tool/x", "openai") == "server_tool_x-xb05431815108"


def decoded(wire: Wire, reply: Message) -> list[Message]:
    """A reply as it comes in one piece, and streamed byte by byte."""
    decoder = wire.stream_decoder()
    deltas: list[Delta] = []
    for byte in b"".join(wire.encode_stream(reply)):
        deltas += decoder.feed(bytes([byte]))
    deltas += decoder.close()
    shown = [delta.name for delta in deltas if delta.name]
    assert shown == [part.name for part in reply.parts if isinstance(part, ToolCall) and part.name]
    return [wire.decode_reply(wire.encode_reply(reply)), decoder.message()]


@given(st.lists(names.filter(bool), min_size=1, max_size=5, unique=True), forms)
def test_replies_have_the_names_that_were_declared(some: list[str], form: WireName) -> None:
    wire = wire_for(form, [Declaration(name=name) for name in some])
    calls = [call(name, id=f"c{n}") for n, name in enumerate(some)]
    made = Message(role="model", parts=tuple(calls), finish="calls")
    sent = [sent_tool_name(name, form) for name in some]
    plain = wire_for(form).decode_reply(wire.encode_reply(made))
    assert [part.name for part in plain.parts if isinstance(part, ToolCall)] == sent
    for message in decoded(wire, made):
        assert [part.name for part in message.parts if isinstance(part, ToolCall)] == some


def declared_in(form: WireName, body: dict[str, Any]) -> list[str]:
    if form == "gemini":
        return [tool["name"] for tool in body["tools"][0]["functionDeclarations"]]
    return [tool.get("function", tool)["name"] for tool in body["tools"]]


@given(st.lists(names.filter(bool), min_size=1, max_size=4, unique=True), forms)
def test_requests_come_back_with_their_own_names(some: list[str], form: WireName) -> None:
    tools = tuple(Declaration(name=name) for name in some)
    wire = wire_for(form, tools)
    calls = [call(name, id=f"c{n}") for n, name in enumerate(some)]
    history = [
        user("go"),
        Message(role="model", parts=tuple(calls)),
        *(result(one, "ok") for one in calls),
    ]
    options = RequestOptions(model="m", tools=tools, tool_choice=some[0])
    encoded = encode(wire, history, options)
    body = json.loads(encoded.body)
    accepted = NAME_RULES[form].accepted
    assert all(accepted.fullmatch(name) for name in declared_in(form, body))
    back = wire.decode_request(encoded.body)
    assert [tool.name for tool in back.options.tools] == some
    if some[0] not in ("auto", "none", "required"):
        assert back.options.tool_choice == some[0]
    found = [p.name for m in back.messages for p in m.parts if isinstance(p, ToolCall)]
    assert found == some
    odd = [name for name in some if sent_tool_name(name, form) != name]
    lines = [fix for fix in encoded.fixes if fix.kind == "name" and fix.message == -1]
    assert len(lines) == len(odd)
    assert all(len(fix.text) < 300 and fix.text.isprintable() for fix in lines)


@pytest.mark.parametrize("form", FORMS)
def test_a_name_is_sent_the_same_whatever_is_declared(form: WireName) -> None:
    odd = call("server.tool/x", id="a")
    message = Message(role="model", parts=(odd,))
    alone = wire_for(form).encode_message(message).data
    for others in (("server.tool/x",), ("server_tool_x", "server.tool/x"), ("server/tool.x",)):
        tools = [Declaration(name=name) for name in others]
        assert wire_for(form, tools).encode_message(message).data == alone


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_tool_cannot_take_the_calls_of_another(form: WireName, reverse: bool) -> None:
    thief = sent_tool_name("bank pay", form)
    tools = [Declaration(name="bank pay", description="ours"), Declaration(name=thief)]
    tools = tools[::-1] if reverse else tools
    wire = wire_for(form, tools)
    encoded = encode(wire, [user("go")], RequestOptions(model="m", tools=tuple(tools)))
    body = json.loads(encoded.body)
    assert declared_in(form, body) == [thief]
    assert "ours" in json.dumps(body["tools"])
    assert any("left out" in fix.text for fix in encoded.fixes)
    reply = Message(role="model", parts=(call("bank pay", id="a"),), finish="calls")
    (part,) = wire.decode_reply(wire.encode_reply(reply)).parts
    assert isinstance(part, ToolCall)
    assert part.name == "bank pay"


@pytest.mark.parametrize("form", FORMS)
def test_ordinary_names_cost_nothing(form: WireName) -> None:
    plain = WIRES[form].build("m", find_profile("m"))
    assert with_tool_names(plain, form, [Declaration(name="read_file")]) is plain
