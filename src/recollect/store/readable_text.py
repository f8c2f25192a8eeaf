"""What an entry says, as text that a person or a model can read.

The arguments of a call are written out, so that the lines of a file that was written are lines
again. Results of the tools that return history, and calls of them, say nothing new and are left
out: a search must not find its own echo.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from recollect.entries import (
    Body,
    Compaction,
    Content,
    Entry,
    FileRef,
    Message,
    Note,
    Part,
    Text,
    Thought,
    Title,
    ToolCall,
    ToolResult,
)
from recollect.store.output_notes import output_part
from recollect.text import one_line
from recollect.toolkinds import find_command, parse_arguments

HISTORY_TOOLS = ("recall", "search_history")
NO_OUTPUT = "(no output)"  # of a call that gave nothing
_SPEAKS = (Text, Thought)
_MAX_NAME = 60
_MANY_LINES = 4  # escaped line breaks, for each real one


def returns_history(name: str) -> bool:
    """Whether a tool of this name returns history: ours, also behind a server's prefix."""
    for separator in ("__", ".", "/", ":"):
        name = name.rsplit(separator, 1)[-1]
    return name in HISTORY_TOOLS


def is_echo(part: Part) -> bool:
    return isinstance(part, ToolCall | ToolResult) and returns_history(part.name)


class PartText(NamedTuple):
    part: Part | None  # of a message; of a command's output, a result without the text
    text: str


def readable_text(body: Body) -> str:
    """The text of an entry without echoes; empty for an entry that says nothing."""
    return "\n".join(part.text for part in readable_parts(body))


def readable_parts(body: Body) -> tuple[PartText, ...]:
    """The text of each part that says something; of other entries than messages, one text."""
    if isinstance(body, Message):
        own = (PartText(part, _part_text(part)) for part in body.parts if not is_echo(part))
        return tuple(one for one in own if one.text)
    said = _text_of_record(body)
    if said and (part := output_part(body)) is not None:
        return (PartText(ToolResult(call_id=part.call, name=part.tool), said),)
    return (PartText(None, said),) if said else ()


def _text_of_record(body: Body) -> str:
    if isinstance(body, Note):
        return body.text
    if isinstance(body, Title):
        return body.title
    if isinstance(body, Compaction):
        # the entries that our own snapshot replaced are found themselves
        return body.snapshot if body.trigger == "import" else ""
    return ""


def _part_text(part: Part | Content) -> str:
    if isinstance(part, _SPEAKS):
        return part.text
    if isinstance(part, ToolCall):
        return f"{part.name} {readable_arguments(part.arguments)}"
    if isinstance(part, ToolResult):
        return _unescape_lines("\n".join(filter(None, map(_part_text, part.content))))
    if isinstance(part, FileRef):
        return part.uri
    return ""


def _unescape_lines(text: str) -> str:
    """The lines of what a program printed in one line, escaped, such as the output of a hook."""
    escaped = text.count("\\n")
    if escaped < _MANY_LINES or escaped < _MANY_LINES * text.count("\n"):
        return text
    return text.replace("\\n", "\n").replace("\\t", "\t")


def readable_arguments(arguments: str) -> str:
    """The arguments of a call, one after the other, with their line breaks; unchanged if they are
    not a JSON object."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    if not isinstance(values, dict):
        return arguments
    written = [(key, _value_text(value)) for key, value in values.items()]
    blocks = [f"{k}:\n{v}\n" if "\n" in v else f"{k}: {v}" for k, v in written]
    return "\n".join(blocks) if any("\n" in block for block in blocks) else ", ".join(blocks)


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def call_line(call: ToolCall, most: int) -> str:
    """A call in one line; of a command, the command alone."""
    command = find_command(parse_arguments(call.arguments) or {})
    text = command or readable_arguments(call.arguments)
    return f"{one_line(call.name, _MAX_NAME)}: {one_line(text, most)}"


def result_line(result: ToolResult, most: int) -> str:
    """What a call gave in one line; empty if it only repeats history."""
    if is_echo(result):
        return ""
    said = one_line(_part_text(result)[: 4 * most + 4_000], most)
    if said:
        return said
    return "(no text)" if any(not isinstance(item, Text) for item in result.content) else NO_OUTPUT


def calls_of(entry: Entry) -> tuple[ToolCall, ...]:
    parts = entry.body.parts if isinstance(entry.body, Message) else ()
    return tuple(part for part in parts if isinstance(part, ToolCall))


def results_of(entry: Entry) -> tuple[ToolResult, ...]:
    parts = entry.body.parts if isinstance(entry.body, Message) else ()
    return tuple(part for part in parts if isinstance(part, ToolResult))
