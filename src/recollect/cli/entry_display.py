"""Entries as text: role and time, then messages, thoughts, tool calls and results.

This is where stored text is sanitized.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, assert_never

import click

from recollect.cli.console import paint
from recollect.cli.dates import format_time
from recollect.cli.display_text import Shortened, one_line, pluralize, sanitize, shorten
from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Entry,
    FileRef,
    InlineData,
    Message,
    Note,
    Part,
    Pin,
    Request,
    Restore,
    SettingsEdit,
    Source,
    Text,
    Thought,
    Title,
    ToolCall,
    ToolResult,
    Unknown,
    UnknownBody,
    handle_of,
)
from recollect.execution.command_output import sanitize_all
from recollect.store.output_notes import OutputPart, output_part
from recollect.store.readable_text import NO_OUTPUT
from recollect.text import format_size
from recollect.view.edit_reasons import with_handles

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
    name, colour = _role_and_colour(entry.body)
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


def _role_and_colour(body: Body) -> tuple[str, str]:
    if isinstance(body, Message):
        if body.role == "user" and body.context:  # the program's words, sent as the user's
            return "context", "white"
        return str(body.role), _COLOURS.get(body.role, "white")
    if output_part(body) is not None:
        return "output", "cyan"
    if isinstance(body, Note):
        return "note" if body.level == "info" else body.level, _NOTE_COLOURS.get(body.level, "red")
    kind = body.__struct_config__.tag
    return ("unknown" if isinstance(body, UnknownBody) else str(kind)), "cyan"


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
    yield paint.dim(f"  {_describe_output(part)}")
    if style.full or style.at_length:
        yield from _block(sanitize_all(note.text), "    ", style)
    else:  # the result after it shows its ends
        yield "    " + paint(_LEFT_OUT.format(f"{len(note.text):,} characters"), fg="yellow")


def describe_edit(body: Body) -> str:  # noqa: C901 - one case per kind
    """Any entry but a message, in a sentence."""
    match body:
        case Message():
            return ""
        case Note(text=text):
            part = output_part(body)
            return text if part is None else f"{_describe_output(part)}: {text[:500]}"
        case Title(title=title):
            return f"the title is now {title!r}"
        case Elide(rule=rule, items=items):
            return f"{pluralize(len(items), 'entry')} left out by rule {rule}"
        case Pin(entries=entries):
            return f"{'placed first' if body.first else 'pinned'} {_name_entries(entries)}"
        case Restore(entries=entries):
            return f"undid {_name_entries(entries)}"
        case Compaction():
            return _describe_compaction(body)
        case SettingsEdit(values=values):
            return f"settings {values}"
        case Request(model=model, tokens=tokens):
            return f"sent {tokens:,} tokens to {model or 'a model'}"
        case Source(format=form, name=name, size=count):
            return f"imported from {name} ({form}, {format_size(count)})"
        case UnknownBody(data=data):
            return f"an entry of a kind unknown to this version: {data}"
        case _:
            assert_never(body)


def _describe_output(part: OutputPart) -> str:
    job = f" as {one_line(part.job)}" if part.job else ""
    number = f", part {len(part.before) + 1}" if part.before else ""
    return f"what {one_line(part.tool)} gave{job}, as it came{number}"


def _name_entries(entries: Iterable[str]) -> str:
    return ", ".join(map(handle_of, entries))


def _describe_compaction(body: Compaction) -> str:
    change = f"{body.tokens_before:,} to {body.tokens_after:,} tokens in messages"
    reason = f": {with_handles(body.reason)}" if body.reason else ""
    text = f"\n{body.snapshot}" if body.snapshot else ""
    return f"{body.status.lower()}, {change}{reason}{text}"


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
            yield "  " + paint.dim(_describe_attachment(part))
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
    written = {key: _format_argument(value) for key, value in values.items()}
    count = sum(len(value) > _SHORT_ARGUMENT for value in written.values())
    return ", ".join(f"{k}={_shorten_argument(v, style, count)}" for k, v in written.items())


def _format_argument(value: object) -> str:
    if isinstance(value, str) and "\n" in value:
        return f'"""\n{value}\n"""'
    return json.dumps(value, ensure_ascii=False)


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
            yield "    " + paint.dim(_describe_attachment(item))


def _describe_attachment(part: InlineData | FileRef | Unknown) -> str:
    match part:
        case InlineData(mime=mime, data=data):
            return f"[{one_line(mime)}, {format_size(len(data))}]"
        case FileRef(mime=mime, uri=uri):
            return f"[{one_line(mime)} {one_line(uri)}]"
        case Unknown(data=data):
            return f"[a part unknown to this version: {one_line(data[:200])}]"
        case _:
            assert_never(part)


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


def summarize(body: Body) -> str:
    """An entry in one line."""
    if not isinstance(body, Message):
        return one_line(describe_edit(body))
    return one_line(" ".join(_summarize_part(part) for part in body.parts)[:2_000]) or "(empty)"


def _summarize_part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text[:500]
        case Thought(text=text):
            return f"(thought: {text[:200]})"
        case ToolCall(name=name, arguments=arguments):
            return (
                f"{name}({_format_arguments(arguments[:5_000], TranscriptStyle(full=True))[:300]})"
            )
        case ToolResult(name=name, content=content):
            texts = (
                c.text[:300] if isinstance(c, Text) else _describe_attachment(c) for c in content
            )
            return f"→ {name}: {' '.join(texts)}"
        case InlineData() | FileRef() | Unknown():
            return _describe_attachment(part)
        case _:
            assert_never(part)


def role_of(body: Body) -> str:
    return _role_and_colour(body)[0]
