"""Entries in a few words: who speaks, what an edit did, a whole entry in one line.

`summarize` is sanitized; the other texts are as they were stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import assert_never

from recollect.display.display_text import one_line, pluralize
from recollect.entries import (
    Body,
    Compaction,
    Elide,
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
from recollect.store.output_notes import OutputPart, output_part
from recollect.text import format_size
from recollect.view.edit_reasons import with_handles


def role_of(body: Body) -> str:
    """Who speaks in an entry, or which kind of entry it is, in one word."""
    if isinstance(body, Message):
        # the program's words are sent as the user's
        return "context" if body.role == "user" and body.context else str(body.role)
    if output_part(body) is not None:
        return "output"
    if isinstance(body, Note):
        return "note" if body.level == "info" else body.level
    return "unknown" if isinstance(body, UnknownBody) else str(body.__struct_config__.tag)


def describe_edit(body: Body) -> str:  # noqa: C901 - one case per kind
    """Any entry but a message, in a sentence."""
    match body:
        case Message():
            return ""
        case Note(text=text):
            part = output_part(body)
            return text if part is None else f"{describe_output(part)}: {text[:500]}"
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


def describe_output(part: OutputPart) -> str:
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


def describe_attachment(part: InlineData | FileRef | Unknown) -> str:
    match part:
        case InlineData(mime=mime, data=data):
            return f"[{one_line(mime)}, {format_size(len(data))}]"
        case FileRef(mime=mime, uri=uri):
            return f"[{one_line(mime)} {one_line(uri)}]"
        case Unknown(data=data):
            return f"[a part unknown to this version: {one_line(data[:200])}]"
        case _:
            assert_never(part)


def format_arguments(text: str) -> str:
    """Arguments as in Python, `path="a.py", limit=3`; unchanged if they are no JSON object."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(values, dict):
        return text
    return ", ".join(f"{key}={format_argument(value)}" for key, value in values.items())


def format_argument(value: object) -> str:
    if isinstance(value, str) and "\n" in value:
        return f'"""\n{value}\n"""'
    return json.dumps(value, ensure_ascii=False)


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
            return f"{name}({format_arguments(arguments[:5_000])[:300]})"
        case ToolResult(name=name, content=content):
            texts = (
                c.text[:300] if isinstance(c, Text) else describe_attachment(c) for c in content
            )
            return f"→ {name}: {' '.join(texts)}"
        case InlineData() | FileRef() | Unknown():
            return describe_attachment(part)
        case _:
            assert_never(part)
