"""Whether a request follows the provider's own rules: the other direction of a client's test.

The request is read as JSON and not by our decoders, which forgive what providers refuse. A check
returns the first violation as a sentence with its place, empty if there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from recollect.profiles import WireName

_WORD_64, _WORD_128 = re.compile(r"[a-zA-Z0-9_-]{1,64}"), re.compile(r"[a-zA-Z0-9_-]{1,128}")
_GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")


def find_violation(format_: WireName, request: Any) -> str:
    return next(_CHECKS[format_](request), "")


def find_role_violation(format_: WireName, request: Any) -> str:
    """Servers of small models insist on user, assistant, user, assistant; tools come between."""
    place = "contents" if format_ == "gemini" else "messages"
    before = ""
    for number, item in enumerate(_items(request, place)):
        role = item.get("role", "user")
        if role in ("system", "developer"):
            if number:
                return f"{place}[{number}]: the system message must be at the beginning"
            continue
        if role not in ("tool", "function") and role == before:
            return (
                f"{place}[{number}]: conversation roles must alternate, and {role} follows {role}"
            )
        if not before and role != "user":
            return f"{place}[{number}]: the conversation must begin with the user, not with {role}"
        before = role
    return ""


def _items(value: Any, key: str) -> list[dict[str, Any]]:
    found = value.get(key) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _check_names(named: Iterator[tuple[str, str]], pattern: re.Pattern[str]) -> Iterator[str]:
    for place, name in named:
        if not pattern.fullmatch(name):
            yield f"{place}: the name {name[:80]!r} does not match the pattern ^{pattern.pattern}$"


def _check_openai(request: Any) -> Iterator[str]:
    tools = enumerate(_items(request, "tools"))
    names = ((f"tools[{n}].function.name", _openai_name(tool)) for n, tool in tools)
    yield from _check_names(names, _WORD_64)
    messages = _items(request, "messages")
    if not messages:
        yield "messages: at least one message is required"
    pending: list[str] = []
    for number, message in enumerate(messages):
        place, role = f"messages[{number}]", message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in pending:
                yield f"{place}: a tool message must answer a call of the message before it"
            else:
                pending.remove(message["tool_call_id"])
            continue
        if pending:
            yield f"{place}: the calls {', '.join(pending)} have no tool message before it"
        calls = _items(message, "tool_calls")
        pending = [str(call.get("id", "")) for call in calls]
        if len(set(pending)) < len(pending) or "" in pending:
            yield f"{place}.tool_calls: every call needs an id of its own"
        if not calls and not message.get("content"):
            yield f"{place}: a message of {role} needs content"
        yield from _check_openai_calls(calls, place)
    if pending:
        yield f"messages: the calls {', '.join(pending)} have no tool message"


def _openai_name(item: Mapping[str, Any]) -> str:
    function = item.get("function")
    return str(function.get("name", "")) if isinstance(function, dict) else ""


def _check_openai_calls(calls: Sequence[dict[str, Any]], place: str) -> Iterator[str]:
    for number, call in enumerate(calls):
        where = f"{place}.tool_calls[{number}].function"
        yield from _check_names(iter([(f"{where}.name", _openai_name(call))]), _WORD_64)
        arguments = call.get("function", {}).get("arguments")
        if not _is_json_object(arguments):
            yield f"{where}.arguments: not a JSON object: {str(arguments)[:80]!r}"


def _is_json_object(text: object) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict) if isinstance(text, str) else False
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False


def _check_anthropic(request: Any) -> Iterator[str]:
    if not isinstance(request.get("max_tokens"), int):
        yield "max_tokens: field required"
    tools = enumerate(_items(request, "tools"))
    names = ((f"tools.{n}.name", str(tool.get("name", ""))) for n, tool in tools)
    yield from _check_names(names, _WORD_128)
    messages = _items(request, "messages")
    if not messages:
        yield "messages: at least one message is required"
    pending: list[str] = []
    for number, message in enumerate(messages):
        place = f"messages.{number}"
        blocks = _items(message, "content")
        results = [str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"]
        if missing := [id_ for id_ in pending if id_ not in results]:
            yield f"{place}: `tool_use` without `tool_result` in the next message: {missing}"
        if strays := [id_ for id_ in results if id_ not in pending]:
            yield f"{place}: `tool_result` without `tool_use` in the message before: {strays}"
        pending = [str(b.get("id")) for b in blocks if b.get("type") == "tool_use"]
        if len(set(pending)) < len(pending):
            yield f"{place}: `tool_use` ids must be unique"
        if not message.get("content") and number < len(messages) - 1:
            yield f"{place}: a message must have content"
        yield from _check_blocks(blocks, place)
    if pending:
        yield f"messages: `tool_use` without `tool_result`: {pending}"


def _check_blocks(blocks: Sequence[dict[str, Any]], place: str) -> Iterator[str]:
    seen_other = False
    for number, block in enumerate(blocks):
        where = f"{place}.content.{number}"
        kind = block.get("type")
        if kind == "text" and not str(block.get("text", "")).strip():
            yield f"{where}: text blocks must not be empty or blank"
        if kind == "tool_use":
            yield from _check_names(iter([(f"{where}.name", str(block.get("name")))]), _WORD_128)
            if not isinstance(block.get("input"), dict):
                yield f"{where}.input: must be an object"
        if kind == "tool_result" and seen_other:
            yield f"{where}: `tool_result` blocks come first in their message"
        seen_other = seen_other or kind != "tool_result"


def _check_gemini(request: Any) -> Iterator[str]:
    declared = [
        d for tool in _items(request, "tools") for d in _items(tool, "functionDeclarations")
    ]
    names = ((f"functionDeclarations[{n}]", str(d.get("name"))) for n, d in enumerate(declared))
    yield from _check_names(names, _GEMINI_NAME)
    contents = _items(request, "contents")
    if not contents:
        yield "contents: is not specified"
    calls = 0
    for number, content in enumerate(contents):
        place, parts = f"contents[{number}]", _items(content, "parts")
        if not parts:
            yield f"{place}.parts: must not be empty"
        responses = sum("functionResponse" in part for part in parts)
        if responses != calls:
            yield f"{place}: {calls} function calls before it, {responses} function responses in it"
        calls = sum("functionCall" in part for part in parts)
        if calls and number == 0:
            yield f"{place}: a function call comes after a turn of the user"
        for part in parts:
            args = part.get("functionCall", {}).get("args", {})
            if not isinstance(args, dict):
                yield f"{place}: `args` of a function call must be an object"
    if calls:
        yield f"contents: the last {calls} function calls have no function responses"


_CHECKS: Mapping[WireName, Callable[[Any], Iterator[str]]] = {
    "gemini": _check_gemini,
    "openai": _check_openai,
    "anthropic": _check_anthropic,
}
