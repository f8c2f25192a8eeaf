"""Carries out `write_file` and `replace`: a file changes as a whole or not at all.

`context.before_change` backs a file up before it changes. Only the content that was read is
replaced: a file that somebody else changed meanwhile is left alone. A file keeps its encoding, its
byte order mark and its line breaks (`workspace/text_format.py`, `line_endings.py`), and `replace`
touches nothing outside the text it replaces (`text_edit.py`). Lines that stand for text which was
left out are refused. The answer is a unified diff; when a text is not found, it shows the nearest
passage.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import NamedTuple

from recollect.tools.diff import unified_diff
from recollect.tools.ignored_files import refuse_hidden
from recollect.tools.line_endings import dominant_ending, normalize
from recollect.tools.omission_placeholder import first_new_omission
from recollect.tools.resolve_path import quote, resolve_path
from recollect.tools.safe_open import MAX_BYTES, read_content, write_content
from recollect.tools.secret_access import is_secret_file, refuse_secret
from recollect.tools.text_edit import EditPlan, apply_edits, plan_edit
from recollect.tools.tool import ToolContext, ToolFailed
from recollect.workspace.text_format import (
    UNKNOWN_BYTE,
    DecodedText,
    NotInEncoding,
    TextFormat,
    decode_bytes,
)

_ENDING_NAMES = {"\r\n": "CRLF", "\r": "CR"}
_BYTE_ORDER_MARK = "\ufeff"


class PlannedChange(NamedTuple):
    """What a call would make of a file; nothing is written yet."""

    path: Path  # the real one
    before: bytes | None  # None: there is no file
    old: DecodedText | None  # None: there was no text
    data: bytes  # what is to be in it
    ignored: tuple[str, ...] = ()  # differences that were ignored to find the text

    def diff(self) -> str:
        if self.data == self.before:
            return "(it has this content already)"
        new = decode_bytes(self.data)
        if new is None:
            return "(the new content is not text)"
        old = "" if self.old is None else normalize(self.old.shown)
        diff = unified_diff(old, normalize(new.shown), quote(self.path))
        return diff or "(only line breaks changed)"


async def write_file(file_path: str, content: str, context: ToolContext) -> str:
    path, before, old, data, _ = change = await plan_write(file_path, content, context)
    if before == data:
        return f"{quote(path)} has this content already; nothing was written"
    await _write(change, context)
    context.shown.note_written(data)  # the model knows it
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    size = f"{lines:,} lines, {len(data):,} bytes{_describe_kept(old, content)}"
    if before is None:
        return f"Created {quote(path)} ({size}).{_mention_note(file_path, context)}"
    if old is None:
        was = "there was nothing in it" if not before else "the old content was not text"
        return f"Wrote {quote(path)} ({size}); {was}."
    return f"Wrote {quote(path)} ({size}):\n{await asyncio.to_thread(change.diff)}"


async def edit_file(
    file_path: str,
    old_string: str,
    new_string: str,
    expected_replacements: int,
    context: ToolContext,
) -> str:
    change = await plan_replace(file_path, old_string, new_string, expected_replacements, context)
    if change.before is None:
        return await write_file(file_path, new_string, context)
    # what was a secret stays one: this call alone was approved
    kept = context.approved and await asyncio.to_thread(is_secret_file, context, change.path)
    await _write(change, context)
    if not kept:
        context.shown.note_written(change.data)
    times = "once" if expected_replacements == 1 else f"{expected_replacements} times"
    ignored = f", ignoring {' and '.join(change.ignored)}" if change.ignored else ""
    diff = await asyncio.to_thread(change.diff)
    return f"Replaced {times} in {quote(change.path)}{ignored}:\n{diff}"


async def _write(change: PlannedChange, context: ToolContext) -> None:
    await context.before_change(change.path)
    await asyncio.to_thread(
        write_content, context.roots, str(change.path), change.data, expected=change.before
    )


# --- what a call would do ----------------------------------------------------------------------


async def plan_write(file_path: str, content: str, context: ToolContext) -> PlannedChange:
    before, path = await asyncio.to_thread(_read_before, context, context.locate(file_path))
    old, data = await asyncio.to_thread(_prepare_content, content, before or b"", path)
    return PlannedChange(path, before, old, data)


async def plan_replace(
    file_path: str,
    old_string: str,
    new_string: str,
    expected_replacements: int,
    context: ToolContext,
) -> PlannedChange:
    before, path = await asyncio.to_thread(_read_before, context, context.locate(file_path))
    if before is None and not old_string:
        return await plan_write(file_path, new_string, context)
    if before is None:
        raise ToolFailed(
            f"{quote(path)} does not exist; write_file makes new files, and so does replace with "
            "an empty old_string"
        )
    _refuse_omissions(new_string, old_string, "new_string", path)
    old = await asyncio.to_thread(_decode_to_edit, before, path)
    plan = await asyncio.to_thread(
        plan_edit, old.text, old_string, new_string, expected_replacements, quote(path)
    )
    data = await asyncio.to_thread(_encode_edits, old, plan, new_string, path)
    return PlannedChange(path, before, old, data, plan.ignored)


def _read_before(context: ToolContext, path: str) -> tuple[bytes | None, Path]:
    """The content now (None: no file) and the real path; never through a link."""
    roots = context.roots
    if path.endswith(("/", "/.")):
        raise ToolFailed(f"{quote(path)} names a folder; name the file")
    with resolve_path(roots, path, follow=False) as resolved:
        real, exists = resolved.path, resolved.info is not None
    refuse_hidden(roots, path, real)
    if exists:  # the result shows what was there
        refuse_secret(context, path, real)
    return (read_content(roots, str(real)).data if exists else None), real


def _refuse_omissions(new: str, old: str, what: str, path: Path) -> None:
    found = first_new_omission(new, old, str(path))
    if found is None:
        return
    is_edit = what == "new_string"
    remedy = (
        "write out everything that is to stand there, and name less in old_string to leave the "
        "rest alone"
        if is_edit
        else "write out everything that is to be in the file, or change only some lines of it with "
        "replace"
    )
    raise ToolFailed(
        f"line {found.line} of {what} stands for text that was left out: {quote(found.text)}. "
        f"Nothing was written; {remedy}. If the line itself is meant, it may stand where "
        f"{'old_string' if is_edit else 'the file'} has it already, inside a string of several "
        "lines (Python, JavaScript, TypeScript, Go), or in a code block of Markdown"
    )


def _prepare_content(content: str, before: bytes, path: Path) -> tuple[DecodedText | None, bytes]:
    """What a file's text was (None: there was none) and the bytes that are to be in it."""
    old = decode_bytes(before) if before else None
    _refuse_omissions(content, "" if old is None else old.text, "content", path)
    return old, _encode_content(content, old, path)


def _decode_to_edit(before: bytes, path: Path) -> DecodedText:
    old = decode_bytes(before)
    if old is None or old.format.is_broken:
        why = "binary" if old is None else f"damaged {old.format.name}"
        raise ToolFailed(f"{quote(path)} is {why}; replace cannot edit it without losing bytes")
    return old


# --- bytes -------------------------------------------------------------------------------------


def _encode_content(content: str, old: DecodedText | None, path: Path) -> bytes:
    """The bytes of a whole file, stored as the file was before."""
    if old is None or old.format.is_broken:
        return _check_size(_encode_new(TextFormat(), content, "content", path))
    text = content
    if old.format.mark:
        text = text.removeprefix(_BYTE_ORDER_MARK)
    ending = dominant_ending(old.text)
    if ending == "\r\n" or (ending == "\r" and "\r" not in text):
        text = normalize(text).replace("\n", ending)
    _refuse_unknown_bytes(content, old, "content", path)
    return _check_size(old.format.mark + _encode_new(old.format, text, "content", path))


def _encode_edits(old: DecodedText, plan: EditPlan, new_string: str, path: Path) -> bytes:
    """The bytes of a file after some edits; all others are those that were there."""
    _encode_new(old.format, new_string, "new_string", path)
    for edit in plan.edits[:1]:  # the others add the same text
        _refuse_unknown_bytes(edit.new, old, "new_string", path)
    return _check_size(old.format.encode(apply_edits(old.text, plan.edits)))


def _encode_new(stored: TextFormat, text: str, what: str, path: Path) -> bytes:
    try:
        return stored.encode_new(text, what, quote(path))
    except NotInEncoding as error:
        raise ToolFailed(f"{error}. Nothing was written") from None


def _refuse_unknown_bytes(new: str, old: DecodedText, what: str, path: Path) -> None:
    """Refuse the sign that was shown for bytes which are not text: they would be lost."""
    if old.format.errors != "strict" and UNKNOWN_BYTE in new:
        line = new.count("\n", 0, new.index(UNKNOWN_BYTE)) + 1
        raise ToolFailed(
            f"line {line} of {what} has {UNKNOWN_BYTE}, which stands for bytes of {quote(path)} "
            "that are not text and would be lost; change the other lines with replace. "
            "Nothing was written"
        )


def _check_size(data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        raise ToolFailed(f"{len(data):,} bytes are too many; the limit is {MAX_BYTES:,}")
    return data


# --- the answer --------------------------------------------------------------------------------


def _describe_kept(old: DecodedText | None, content: str) -> str:
    """What a file has kept that the model did not give: its encoding and its line breaks."""
    if old is None or old.format.is_broken:
        return ""
    kept = [] if old.format.is_usual else [old.format.name]
    ending = dominant_ending(old.text)
    if ending in _ENDING_NAMES and "\n" in re.sub("\r\n", "", content):
        kept.append(f"{_ENDING_NAMES[ending]} line breaks")
    return f", with {' and '.join(kept)} as before" if kept else ""


def _mention_note(file_path: str, context: ToolContext) -> str:
    """Says that an `@` was dropped, for a model that meant it."""
    if not file_path.startswith("@") or context.absolute(file_path).endswith(file_path):
        return ""
    return f" The @ before the path was left out; ./{quote(file_path)} is the name with it."
