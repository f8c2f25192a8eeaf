"""Calls and results as text, and back.

A call is the fenced block that the instructions demand; a result begins with a line that names its
tool and call. Nothing in a result or in a user's text is ever parsed as a call. On the way back, a
block is a call only if the next message begins with its results; anything else that looks like a
call stays text, and calls get their ids from their results.

Not carried: signatures, `extra`, and a result's status, duration, time and unknown blocks; blank
texts among several blocks of a result. Texts beside calls come back joined by an empty line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from recollect.codecs.fixes import Fix
from recollect.codecs.text_tools.lenient_json import is_nested_too_deep, parse_strict
from recollect.entries import (
    Content,
    FileRef,
    InlineData,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    json_text,
)

GAP = "\n\n"
_STRING = r"\"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+\""
_CALL = re.compile(
    rf"(?:\A|(?<=\n\n))```json\n\{{\"tool_call\": \{{\"name\": ({_STRING}), "
    r"\"arguments\": ([^\n]*+(?:\n(?!```)[^\n]*+)*)(?<=\}\})\n```(?=\n\n|\Z)"
)
_RESULT = re.compile(
    rf"\[(result of|error from) ({_STRING}), call ({_STRING})"
    r"(?:: ([0-9]{1,6}) parts)?\](?:\n|\Z)"
)


def render_call(call: ToolCall) -> str:
    arguments = call.arguments
    if (
        is_nested_too_deep(arguments)
        or not isinstance(parse_strict(arguments), dict)
        or not _is_embeddable(arguments)
    ):
        arguments = json_text(call.arguments)
    name = json_text(call.name)
    return f'```json\n{{"tool_call": {{"name": {name}, "arguments": {arguments}}}}}\n```'


def render_result(result: ToolResult) -> tuple[Part, ...]:
    word = "error from" if result.is_error else "result of"
    head = f"[{word} {json_text(result.name)}, call {json_text(result.call_id)}"
    blocks = sendable_blocks(result)
    first = blocks[0] if len(blocks) == 1 else None
    if isinstance(first, Text):
        return (Text(text=f"{head}]\n{first.text}"),)
    return (Text(text=f"{head}: {len(blocks)} parts]"), *blocks)


def sendable_blocks(result: ToolResult) -> tuple[Content, ...]:
    """The blocks of a result that can be sent."""
    known = [block for block in result.content if not isinstance(block, Unknown)]
    if len(known) == 1:
        return tuple(known)
    return tuple(b for b in known if not isinstance(b, Text) or b.text.strip())


def render_message(message: Message) -> tuple[Message, tuple[Fix, ...]]:
    """The message with its calls and results as text."""
    if not any(isinstance(part, ToolCall | ToolResult) for part in message.parts):
        return message, ()
    parts: list[Part] = []
    fixes: list[Fix] = []
    words: list[str] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            words.append(render_call(part))
        elif isinstance(part, Text) and message.role == "model":
            words.append(part.text)
        else:
            _flush(words, parts)
            if not isinstance(part, ToolResult):
                parts.append(part)
                continue
            parts += render_result(part)
            lost = sum(isinstance(block, Unknown) for block in part.content)
            if lost:
                line = f"{lost} unknown blocks of the result for {part.call_id!r} are left out"
                fixes.append(Fix("uncarried", 0, line, part.call_id))
    _flush(words, parts)
    return msgspec.structs.replace(message, parts=tuple(parts)), tuple(fixes)


def parse_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with the calls and results that `render_message` made text of."""
    done: list[Message] = []
    for message in messages:
        last = done[-1] if done else None
        results = _leading_results(message) if last and last.role == "model" else []
        restored = _parse_calls(last, results) if last and results else None
        if restored is None or restored[1] == 0:
            done.append(message)
            continue
        done[-1], count = restored
        taken = results[:count]
        rest = message.parts[taken[-1].end :]
        parts = (*(found.result for found in taken), *rest)
        done.append(msgspec.structs.replace(message, parts=parts))
    return tuple(done)


class _RenderedResult(NamedTuple):
    result: ToolResult
    end: int  # the index after its last part


def _leading_results(message: Message) -> list[_RenderedResult]:
    found: list[_RenderedResult] = []
    at, parts = 0, message.parts
    while message.role == "user" and at < len(parts):
        part = parts[at]
        head = _RESULT.match(part.text) if isinstance(part, Text) else None
        if head is None or not isinstance(part, Text):
            break
        name, call_id = parse_strict(head[2]), parse_strict(head[3])
        count = int(head[4]) if head[4] is not None else None
        blocks: tuple[Content, ...] = (Text(text=part.text[head.end() :]),)
        if count is not None:
            if count > len(parts) - at - 1:
                break
            following = parts[at + 1 : at + 1 + count]
            blocks = tuple(b for b in following if isinstance(b, Text | InlineData | FileRef))
        at += 1 + (count or 0)
        result = ToolResult(
            call_id=str(call_id),
            name=str(name),
            content=blocks,
            is_error=head[1] == "error from",
        )
        found.append(_RenderedResult(result, at))
    return found


def _parse_calls(message: Message, results: list[_RenderedResult]) -> tuple[Message, int]:
    """The model's message with its last blocks as calls, and how many results answer them."""
    blocks = [
        (number, match)
        for number, part in enumerate(message.parts)
        if isinstance(part, Text)
        for match in _CALL.finditer(part.text)
    ]
    count = min(len(blocks), len(results))
    chosen = blocks[len(blocks) - count :]
    names = [parse_strict(match[1]) for _, match in chosen]
    if names != [found.result.name for found in results[:count]]:
        return message, 0
    matches: dict[int, list[re.Match[str]]] = {}
    for number, match in chosen:
        matches.setdefault(number, []).append(match)
    parts: list[Part] = []
    answers = iter(results)
    for number, part in enumerate(message.parts):
        if not isinstance(part, Text) or number not in matches:
            parts.append(part)
            continue
        at = 0
        for match in matches[number]:
            _add_text(part.text[at : match.start()], parts)
            result = next(answers).result
            call = ToolCall(
                id=result.call_id, name=result.name, arguments=_parse_arguments(match[2][:-2])
            )
            parts.append(call)
            at = match.end()
        _add_text(part.text[at:], parts)
    return msgspec.structs.replace(message, parts=tuple(parts)), count


def _parse_arguments(text: str) -> str:
    if not text.startswith('"'):
        return text
    value = parse_strict(text)
    return value if isinstance(value, str) else text


def _add_text(text: str, parts: list[Part]) -> None:
    rest = text.removeprefix(GAP).removesuffix(GAP) if text != GAP else ""
    if rest:
        parts.append(Text(text=rest))


def _flush(words: list[str], parts: list[Part]) -> None:
    if words:
        parts.append(Text(text=GAP.join(words)))
        words.clear()


def _is_embeddable(arguments: str) -> bool:
    """Whether the text is strict JSON that does not end the fence around it."""
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return "\n```" not in arguments
