"""Outputs of commands in the log: as they came, in notes before the result that shows their ends.

A note holds up to `PART_BYTES` of an output, so that each is indexed and read like any other entry,
and names the parts before it: the newest note of an output leads to all of it, and its handle is
what the result tells the model. Bytes that are not UTF-8 are lone surrogates, so the text gives the
very bytes again. No model is sent a note; `recall` and `show` put the parts together. A view keeps
no text of these notes: the store has it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from recollect.entries import Body, Entry, Note, handle_of, json_text
from recollect.errors import UnknownEntry
from recollect.store.contract import Store

PART_BYTES = 400_000  # of one note; fewer than the characters of an entry that are indexed
_MAX_PARTS = 100
_MAX_RECORD = 20_000  # characters of a note's record that are read


class OutputPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a note says about the part of an output that is its text."""

    call: str  # the call that ran the command
    tool: str
    job: str = ""  # the job's name, if it ran in the background
    before: tuple[str, ...] = ()  # the entries with the earlier parts, in order
    missing: int = 0  # bytes between the part before and this one, which nobody kept


# Appends a note to the log and returns its id; an empty text if nothing is recorded.
AppendNote: TypeAlias = Callable[[Note], Awaitable[str]]


class OutputLog(msgspec.Struct, frozen=True):
    """Where the output of a call goes, and whether the model can recall it."""

    append: AppendNote
    call: str = ""
    tool: str = "run_shell_command"
    recallable: bool = True


class _NoteExtra(msgspec.Struct, frozen=True):
    output: OutputPart


def output_note(came: bytes | str, part: OutputPart) -> Note:
    text = came if isinstance(came, str) else came.decode("utf-8", "surrogateescape")
    return Note(text=text, extra=json_text({"output": msgspec.to_builtins(part)}))


def output_part(body: Body) -> OutputPart | None:
    """What a note says about an output; None for every other entry."""
    if not isinstance(body, Note) or not 0 < len(body.extra) <= _MAX_RECORD:
        return None
    if '"output"' not in body.extra:
        return None
    try:
        found = msgspec.convert(json.loads(body.extra), _NoteExtra).output
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None  # another program's note, or a forged one
    return found if len(found.before) <= _MAX_PARTS else None


def without_output(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries, with the notes' records of outputs but not their text: a session of a hundred
    long outputs need not hold them in memory."""
    return tuple([_without_text(entry) for entry in entries])


def _without_text(entry: Entry) -> Entry:
    body = entry.body
    if type(body) is not Note or not body.extra or output_part(body) is None:
        return entry
    return Entry(entry.id, entry.parent, entry.time, msgspec.structs.replace(body, text=""))


async def read_output_parts(store: Store, session: str, newest: Entry) -> tuple[Entry, ...]:
    """The notes with an output from its beginning to this part, oldest first; those that this
    store does not have are left out."""
    part = output_part(newest.body)
    found: list[Entry] = []
    for name in part.before if part is not None else ():
        try:
            _, entry = await store.entry(name, session=session)
        except UnknownEntry:
            continue
        if output_part(entry.body) is not None:
            found.append(entry)
    return (*found, (await store.entry(newest.id, session=session))[1])


def join_output(parts: Iterable[Entry]) -> str:
    """The text of these parts; where bytes are missing, a line says how many."""
    found: list[str] = []
    for entry in parts:
        part = output_part(entry.body)
        if part is None or not isinstance(entry.body, Note):
            continue
        if part.missing:
            found.append(f"\n[... {part.missing:,} bytes that were not kept ...]\n")
        found.append(entry.body.text)
    return "".join(found)


def whole_output(parts: Sequence[Entry]) -> Entry:
    """The parts as one entry, in place of the newest."""
    newest = parts[-1]
    part = output_part(newest.body)
    assert part is not None
    record = msgspec.to_builtins(msgspec.structs.replace(part, before=(), missing=0))
    note = Note(text=join_output(parts), extra=json_text({"output": record}))
    return Entry(newest.id, newest.parent, newest.time, note)


def job_name(number: int | str) -> str:
    """What the job with a number is called; models also write the number alone."""
    return f"job-{number}"


def find_job_output(entries: Iterable[Entry], job: str) -> str:
    """The handle of the newest note about a job of this name among the entries, newest first."""
    for entry in entries:
        part = output_part(entry.body)
        if part is not None and part.job in (job, job_name(job)):
            return handle_of(entry.id)
    return ""
