"""With `validate` and `strict_roles` a request must follow the provider's own rules."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from recollect.profiles import WireName
from recollect.testing import ProviderServer
from recollect.testing.request_checks import find_role_violation, find_violation

USER = {"role": "user", "content": "hi"}


def openai(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [USER, *messages], **fields}


def calls(*ids: str, arguments: str = "{}", name: str = "t") -> dict[str, Any]:
    made = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_ in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def answer(id_: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": "x"}


def anthropic(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 1, "messages": [USER, *messages], **fields}


def use(id_: str = "a", given: object = None, name: str = "t") -> dict[str, Any]:
    input_ = {} if given is None else given
    block = {"type": "tool_use", "id": id_, "name": name, "input": input_}
    return {"role": "assistant", "content": [block]}


def used(*ids: str, before: str = "") -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "tool_result", "tool_use_id": id_} for id_ in ids]
    text = [{"type": "text", "text": before}] if before else []
    return {"role": "user", "content": [*text, *blocks]}


def gemini(*contents: tuple[str, list[dict[str, Any]]], **fields: Any) -> dict[str, Any]:
    given = [("user", [{"text": "hi"}]), *contents]
    return {"contents": [{"role": role, "parts": parts} for role, parts in given], **fields}


CALL = ("model", [{"functionCall": {"name": "t", "args": {}}}])
RESPONSE = ("user", [{"functionResponse": {"name": "t", "response": {}}}])
VALID: list[tuple[WireName, dict[str, Any]]] = [
    ("openai", openai()),
    ("openai", openai(calls("a", "b"), answer("b"), answer("a"), USER)),
    ("anthropic", anthropic(use(), used("a"))),
    ("gemini", gemini(CALL, RESPONSE)),
]
INVALID: list[tuple[WireName, dict[str, Any], str]] = [
    ("openai", {"messages": []}, "at least one message"),
    ("openai", openai(calls("a")), "the calls a have no tool message"),
    ("openai", openai(calls("a"), USER), "messages[2]: the calls a have no tool message"),
    ("openai", openai(answer("a")), "messages[1]: a tool message must answer a call"),
    ("openai", openai(calls("a", "a"), answer("a")), "an id of its own"),
    ("openai", openai(calls("a", arguments="{,"), answer("a")), "not a JSON object: '{,'"),
    ("openai", openai(calls("a", arguments="[]"), answer("a")), "not a JSON object: '[]'"),
    ("openai", openai(calls("a", name="a.b/c"), answer("a")), "'a.b/c' does not match"),
    ("openai", openai({"role": "assistant", "content": ""}), "a message of assistant needs"),
    (
        "openai",
        openai(tools=[{"type": "function", "function": {"name": "server.tool/x"}}]),
        "tools[0].function.name: the name 'server.tool/x' does not match",
    ),
    ("anthropic", {"messages": [USER]}, "max_tokens"),
    ("anthropic", {"messages": [], "max_tokens": 1}, "at least one message"),
    ("anthropic", anthropic(use()), "`tool_use` without `tool_result`"),
    ("anthropic", anthropic(use(), USER), "messages.2: `tool_use` without"),
    ("anthropic", anthropic(used("a")), "messages.1: `tool_result` without `tool_use`"),
    ("anthropic", anthropic(use(), used("a", before="x")), "come first in their message"),
    ("anthropic", anthropic(use(given=[1]), used("a")), "must be an object"),
    ("anthropic", anthropic(use(name="a.b"), used("a")), "'a.b' does not match"),
    ("anthropic", anthropic(tools=[{"name": "a b"}]), "tools.0.name"),
    ("anthropic", anthropic({"role": "assistant", "content": []}, USER), "must have content"),
    (
        "anthropic",
        anthropic({"role": "assistant", "content": [{"type": "text", "text": " "}]}),
        "must not be empty or blank",
    ),
    ("gemini", {"contents": []}, "contents: is not specified"),
    ("gemini", gemini(CALL), "have no function responses"),
    ("gemini", gemini(CALL, ("user", [{"text": "x"}])), "1 function calls before it, 0"),
    ("gemini", gemini(RESPONSE), "0 function calls before it, 1"),
    ("gemini", gemini(("model", [])), "contents[1].parts: must not be empty"),
    ("gemini", {"contents": [{"role": "model", "parts": CALL[1]}]}, "after a turn of the user"),
    (
        "gemini",
        gemini(("model", [{"functionCall": {"name": "t", "args": [1]}}]), RESPONSE),
        "must be an object",
    ),
    ("gemini", gemini(tools=[{"functionDeclarations": [{"name": "1a"}]}]), "'1a' does not match"),
]
SYSTEM = {"role": "system", "content": "x"}
ASSISTANT = {"role": "assistant", "content": "x"}
ROLES: list[tuple[WireName, dict[str, Any], str]] = [
    ("openai", {"messages": [SYSTEM, USER, ASSISTANT, USER]}, ""),
    ("openai", openai(calls("a"), answer("a"), answer("b"), ASSISTANT), ""),
    ("openai", openai(USER), "messages[1]: conversation roles must alternate, and user follows"),
    ("openai", openai(ASSISTANT, ASSISTANT), "and assistant follows assistant"),
    ("openai", openai(SYSTEM), "must be at the beginning"),
    ("openai", {"messages": [ASSISTANT]}, "must begin with the user, not with assistant"),
    ("anthropic", anthropic(USER), "messages[1]: conversation roles must alternate"),
    ("gemini", gemini(RESPONSE), "contents[1]: conversation roles must alternate"),
]


@pytest.mark.parametrize(("format_", "request_"), VALID)
def test_a_valid_request_has_no_violation(format_: WireName, request_: dict[str, Any]) -> None:
    assert find_violation(format_, request_) == ""


@pytest.mark.parametrize(("format_", "request_", "match"), INVALID)
def test_a_violation_is_named_with_its_place(
    format_: WireName, request_: dict[str, Any], match: str
) -> None:
    assert match in find_violation(format_, request_)


@pytest.mark.parametrize(("format_", "request_", "match"), ROLES)
def test_roles_must_alternate(format_: WireName, request_: dict[str, Any], match: str) -> None:
    found = find_role_violation(format_, request_)
    assert match in found if match else found == ""


def test_the_server_refuses_such_a_request_and_keeps_its_line() -> None:
    with ProviderServer("openai", ["one"], validate=True, strict_roles=True) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
        answers = []
        for body in (openai(calls("a")), openai(USER), openai()):
            connection.request("POST", "/chat/completions", json.dumps(body))
            answers.append(connection.getresponse().read().decode())
        connection.close()
    assert "have no tool message" in answers[0]
    assert "must alternate" in answers[1]
    assert "one" in answers[2]
    assert [request.decoded is None for request in server.requests] == [True, True, False]
