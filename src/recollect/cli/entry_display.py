"""Entries as text: role and time, then messages, thoughts, tool calls and results.

This is where stored text is sanitized.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple, assert_never

import click

from recollect.cli.console import paint
from recollect.display.dates import format_time
from recollect.display.display_text import Shortened, one_line, sanitize, shorten
from recollect.display.entry_summary import (
    describe_attachment,
    describe_edit,
    describe_output,
    format_argument,
    role_of,
)
from recollect.entries import (
    Body,
    Entry,
    FileRef,
    InlineData,
    Message,
    Note,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)
from recollect.execution.command_output import sanitize_all
from recollect.store.output_notes import output_part
from recollect.store.readable_text import NO_OUTPUT

_COLOURS = {"user": "green", "model": "blue", "system": "magenta"}
_NAMED_LINES, _NAMED_CHARACTERS = (500, 500), (20_000, 20_000)
_CUT = "; --full shows them"
_LEFT_OUT = f"… {{}}{_CUT}"
_SHORT_ARGUMENT = 80  # characters; always shown
_NOTE_COLOURS = {"info": "cyan", "warning": "yellow", "error": "red"}


class TranscriptStyle(NamedTuple):
    full: bool = False
    marked: str | None = None  # the entry that the user named
    at_length: bool = False  # whether its neighbours are shown like it: shortened if very long
    damaged: frozenset[str] = frozenset()
    calls: Mapping[str, str] = {}  # by id, those that a result names because there are several
    lines: tuple[int, int] = (60, 12)  # of what was said, and of what tools were given and gave
    characters: tuple[int, int] = (6_000, 1_000)


def entry_lines(entry: Entry, short: str, style: TranscriptStyle) -> Iterator[str]:
    """One entry: a line with role and time, then its parts, indented."""
    name, colour = role_of(entry.body), _colour_of(entry.body)
    if entry.id in style.damaged:
        name, colour = "damaged", "red"
    mark = paint("▶ ", fg="yellow", bold=True) if entry.id == style.marked else ""
    about = " · ".join(filter(None, [format_time(entry.time), *_details(entry.body)]))
    yield f"{mark}{paint(name, fg=colour, bold=True)}  {paint.dim(f'{about} · {short}')}"
    if entry.id == style.marked or style.at_length:
        style = style._replace(lines=_NAMED_LINES, characters=_NAMED_CHARACTERS)
    yield from _body_lines(entry.body, style)


def shows_text(entry: Entry, text: str) -> bool:
    """Whether the entry, shown on its own and not in full, has this line in what it shows."""
    part = output_part(entry.body)
    if part is not None and part.before:
        return False  # of the whole output, which is shown then, this part is the middle
    style = TranscriptStyle(at_length=True)
    shown = click.unstyle("\n".join(entry_lines(entry, "", style)))
    return _CUT not in shown or sanitize(text) in shown


def _colour_of(body: Body) -> str:
    if isinstance(body, Message):
        return "white" if body.role == "user" and body.context else _COLOURS.get(body.role, "white")
    if isinstance(body, Note) and output_part(body) is None:
        return _NOTE_COLOURS.get(body.level, "red")
    return "cyan"


def _details(body: Body) -> list[str]:
    if not isinstance(body, Message):
        return []
    finish = "" if body.finish in ("", "stop", "calls") else body.finish
    tokens = ""
    if usage := body.usage:
        tokens = f"{usage.total or usage.input + usage.output:,} tokens"
    return [one_line(body.model), one_line(finish), tokens]


def _body_lines(body: Body, style: TranscriptStyle) -> Iterator[str]:
    if isinstance(body, Message):
        for part in body.parts:
            yield from part_lines(part, style)
        if not body.parts:
            yield paint.dim("  (empty)")
    elif isinstance(body, Note):
        yield from _note_lines(body, style)
    else:
        yield from _block(describe_edit(body), "  ", style, dim=True)


def _note_lines(note: Note, style: TranscriptStyle) -> Iterator[str]:
    part = output_part(note)
    if part is None:
        yield from _block(note.text, "  ", style, long=True)
        return
    yield paint.dim(f"  {describe_output(part)}")
    if style.full or style.at_length:
        yield from _block(sanitize_all(note.text), "    ", style)
    else:  # the result after it shows its ends
        yield "    " + paint(_LEFT_OUT.format(f"{len(note.text):,} characters"), fg="yellow")


def part_lines(part: Part, style: TranscriptStyle) -> Iterator[str]:
    match part:
        case Text(text=text):
            yield from _block(text, "  ", style, long=True)
        case Thought(text=text, subject=subject):
            thought = f"thought: {subject}: {text}" if subject else f"thought: {text}"
            yield from _block(thought, "  ", style, dim=True)
        case ToolCall():
            yield from _call_lines(part, style)
        case ToolResult():
            yield from _result_lines(part, style)
        case InlineData() | FileRef() | Unknown():
            yield "  " + paint.dim(describe_attachment(part))
        case _:
            assert_never(part)


def _call_lines(call: ToolCall, style: TranscriptStyle) -> Iterator[str]:
    text = _format_arguments(call.arguments, style)
    lines = list(_block(text, "", style._replace(full=True)))
    lines[0] = f"{paint(one_line(call.name), fg='cyan')}({lines[0]}"
    lines[-1] += ")"
    yield from (f"  {line}" for line in lines)


def _format_arguments(text: str, style: TranscriptStyle) -> str:
    """Arguments as in Python, `path="a.py", limit=3`, a text with its lines; unchanged if they are
    not a JSON object. Long ones share what may be shown, so that no one hides the next."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return _shorten_argument(text, style, 1)
    if not isinstance(values, dict):
        return _shorten_argument(text, style, 1)
    written = {key: format_argument(value) for key, value in values.items()}
    count = sum(len(value) > _SHORT_ARGUMENT for value in written.values())
    return ", ".join(f"{k}={_shorten_argument(v, style, count)}" for k, v in written.items())


def _shorten_argument(text: str, style: TranscriptStyle, count: int) -> str:
    if style.full or len(text) <= _SHORT_ARGUMENT:
        return text
    lines, characters = max(3, style.lines[1] // count), style.characters[1] // count
    head, left, tail = shorten(text, lines=lines, characters=characters, tail=0.3)
    return f"{head}\n{_LEFT_OUT.format(left)}\n{tail}" if left else head


def _result_lines(result: ToolResult, style: TranscriptStyle) -> Iterator[str]:
    took = "" if result.duration is None else f"{result.duration:.1f} s"
    failed = paint("failed", fg="red") if result.is_error else ""
    about = ", ".join(filter(None, [failed, one_line(result.status), took]))
    called = one_line(style.calls.get(result.call_id, ""))
    name = paint(called or one_line(result.name or result.call_id), fg="cyan")
    yield f"  {paint.dim('→')} {name}{f' ({about})' if about else ''}"
    if not any(not isinstance(item, Text) or item.text.strip() for item in result.content):
        yield paint.dim(f"    {NO_OUTPUT}")
        return
    for item in result.content:
        if isinstance(item, Text):
            yield from _block(item.text, "    ", style)
        else:
            yield "    " + paint.dim(describe_attachment(item))


def _block(
    text: str, indent: str, style: TranscriptStyle, *, long: bool = False, dim: bool = False
) -> Iterator[str]:
    """A sanitized, indented text; if it is shortened, a line says how to see all of it."""
    lines, characters = (at[0] if long else at[1] for at in (style.lines, style.characters))
    cut = Shortened(text)
    if not style.full:
        # what tools print tells most at its end: totals, errors
        cut = shorten(text, lines=lines, characters=characters, tail=0.0 if long else 0.5)
    for line in sanitize(cut.head).split("\n"):
        yield (indent + (paint.dim(line) if dim else line)).rstrip(" ")
    if cut.left:
        yield indent + paint(_LEFT_OUT.format(cut.left), fg="yellow")
    for line in sanitize(cut.tail).split("\n") if cut.tail else ():
        yield (indent + (paint.dim(line) if dim else line)).rstrip(" ")
