"""Carries out `write_file` and `replace`: a file changes as a whole or not at all.

`context.before_change` backs a file up before it changes. Only the content that was read is
replaced: a file that somebody else changed meanwhile is left alone. `replace` takes its text
literally and does nothing unless the file has it exactly as often as expected. The answer is a
unified diff; when a text is not found, the answer shows the lines that are most like it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from recollect.tools.diff import nearest_lines, unified_diff
from recollect.tools.ignored_files import refuse_hidden
from recollect.tools.resolve_path import quote, resolve_path
from recollect.tools.safe_open import MAX_BYTES, read_content, write_content
from recollect.tools.tool import ToolContext, ToolFailed


async def write_file(file_path: str, content: str, context: ToolContext) -> str:
    data = _encode(content)
    before, path = await asyncio.to_thread(_read_before, context.roots, context.locate(file_path))
    if before == data:
        return f"{quote(path)} has this content already; nothing was written"
    await context.before_change(path)
    await asyncio.to_thread(write_content, context.roots, str(path), data, expected=before)
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    size = f"{lines:,} lines, {len(data):,} bytes"
    if before is None:
        return f"Created {quote(path)} ({size})."
    old = _decode(before)
    if old is None:
        return f"Wrote {quote(path)} ({size}); the old content was not text."
    diff = await asyncio.to_thread(unified_diff, old, content, quote(path))
    return f"Wrote {quote(path)} ({size}):\n{diff}"


async def replace_text(
    file_path: str,
    old_string: str,
    new_string: str,
    expected_replacements: int,
    context: ToolContext,
) -> str:
    before, path = await asyncio.to_thread(_read_before, context.roots, context.locate(file_path))
    if before is None:
        raise ToolFailed(f"{quote(path)} does not exist; write_file makes new files")
    text = _decode(before)
    if text is None:
        raise ToolFailed(f"{quote(path)} is not UTF-8 text; replace cannot edit it")
    changed = await asyncio.to_thread(
        substitute, text, old_string, new_string, expected_replacements, quote(path)
    )
    await context.before_change(path)
    data = _encode(changed)
    await asyncio.to_thread(write_content, context.roots, str(path), data, expected=before)
    diff = await asyncio.to_thread(unified_diff, text, changed, quote(path))
    times = "once" if expected_replacements == 1 else f"{expected_replacements} times"
    return f"Replaced {times} in {quote(path)}:\n{diff}"


def substitute(text: str, old: str, new: str, expected: int, path: str) -> str:
    """The text with every `old` replaced by `new`; a `ToolFailed` says how to ask for it."""
    if not old:
        raise ToolFailed("old_string is empty; write_file writes whole files")
    if expected < 1:
        raise ToolFailed("expected_replacements is at least 1")
    if "\r\n" in text and old not in text and "\r" not in old:
        # models see and write lines without their CR; the file keeps its line ends
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    if old == new:
        raise ToolFailed("old_string and new_string are the same; nothing would change")
    count = text.count(old)
    if count == 0:
        raise ToolFailed(_explain_missing(text, old, path))
    if count != expected:
        found = islice(re.finditer(re.escape(old), text), 10)
        where = ", ".join(str(text.count("\n", 0, one.start()) + 1) for one in found)
        more = " …" if count > 10 else ""
        raise ToolFailed(
            f"old_string occurs {count} times in {path}, not {expected} (lines {where}{more}); "
            f"add lines around it that make it unique, or say expected_replacements={count}"
        )
    return text.replace(old, new)


def _explain_missing(text: str, old: str, path: str) -> str:
    said = f"old_string is not in {path}"
    if "".join(old.split()) and "".join(old.split()) in "".join(text.split()):
        said += " with these spaces and line breaks"
    near = nearest_lines(text, old)
    if not near:
        return f"{said}, and nothing like it; read the file again"
    return f"{said}; it must be exact, without line numbers. The nearest lines are:\n{near}"


def _read_before(roots: Sequence[Path], path: str) -> tuple[bytes | None, Path]:
    """The content now (None: no file) and the real path; never through a link."""
    if path.endswith(("/", "/.")):
        raise ToolFailed(f"{quote(path)} names a folder; name the file")
    with resolve_path(roots, path, follow=False) as resolved:
        real, exists = resolved.path, resolved.info is not None
    refuse_hidden(roots, path, real)
    return (read_content(roots, str(real)).data if exists else None), real


def _decode(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _encode(text: str) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        what = "the text has half a character (a lone surrogate)"
        raise ToolFailed(f"{what}; write it again") from None
    if len(data) > MAX_BYTES:
        raise ToolFailed(f"{len(data):,} bytes are too many; the limit is {MAX_BYTES:,}")
    return data
