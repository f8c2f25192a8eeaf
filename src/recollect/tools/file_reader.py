"""Carries out `read_file`: one file or many, with line numbers, each as one block of the result.

`toolkinds.parse_paths` reads which files and lines a call means, and the elision rules use the same
function to know what a read has shown; so block n is always file n. At most 2,000 lines, 2,000
characters of a line and files of 20 MB are shown; the text says what was cut and how to read on.
Images and PDFs are returned as they are, recognized by their bytes and not by their name. Other
binary files are refused with their size. In a batch a file that cannot be read fails alone. Notes
attached to a file stand under it.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import stat
from collections.abc import Sequence
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from recollect.entries import Content, InlineData, Text, json_text
from recollect.toolkinds import PathRange, parse_paths
from recollect.tools.builtin import FileRange
from recollect.tools.directory_listing import list_folder
from recollect.tools.file_notes import all_notes, format_notes
from recollect.tools.ignored_files import refuse_hidden
from recollect.tools.resolve_path import quote, resolve_path
from recollect.tools.safe_open import read_content
from recollect.tools.tool import ToolContext, ToolFailed, ToolOutput

MAX_LINES = 2_000
MAX_LINE = 2_000  # characters
MAX_FILES = 50  # in one call
MAX_CHARACTERS = 4_000_000  # of all files of a call
MAX_SYMBOLS = 60
MAX_OUTLINED = 2_000_000  # characters of a file that is searched for symbols
TRUNCATED = "... [truncated]"

_MEDIA_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_BYTE_ORDER_MARKS = (  # longest first: UTF-32 begins like UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


async def read_files(
    given: str | tuple[str | FileRange, ...],
    offset: int | None,
    limit: int | None,
    context: ToolContext,
) -> ToolOutput:
    files = parse_files(given, offset, limit)
    output = await asyncio.to_thread(_read_all, context, files)
    if output.is_error or (context.view is None and context.store is None):
        return output
    blocks: list[Content] = []
    for file, block in zip(files, output.content, strict=True):
        if isinstance(block, Text) and (notes := format_notes(await all_notes(context, file.path))):
            block = Text(text=f"{block.text}\n{notes}")  # noqa: PLW2901 - the same block, longer
        blocks.append(block)
    return msgspec.structs.replace(output, content=tuple(blocks))


def parse_files(
    given: str | tuple[str | FileRange, ...], offset: int | None, limit: int | None
) -> tuple[PathRange, ...]:
    """The files that a call means, as every reader of the log will understand it."""
    values = {"absolute_path": msgspec.to_builtins(given), "offset": offset, "limit": limit}
    files = parse_paths(json_text({k: v for k, v in values.items() if v is not None}))
    if not files:
        raise ToolFailed("absolute_path names no file; give a path, or a list of paths")
    if len(files) > MAX_FILES:
        raise ToolFailed(f"{len(files):,} files at once are too many; name at most {MAX_FILES}")
    return files


def _read_all(context: ToolContext, files: Sequence[PathRange]) -> ToolOutput:
    if len(files) == 1:
        return ToolOutput(content=(_read_block(context, files[0], MAX_CHARACTERS),))
    blocks: list[Content] = []
    left = MAX_CHARACTERS
    failed = 0
    for file in files:
        try:
            block = _read_block(context, file, left)
        except ToolFailed as failure:
            failed += 1
            block = Text(text=f"{quote(file.path)} was not read: {failure}")
        left -= len(block.text) if isinstance(block, Text) else len(block.data)
        blocks.append(block)
    return ToolOutput(content=tuple(blocks), is_error=failed == len(files))


def _read_block(context: ToolContext, file: PathRange, left: int) -> Text | InlineData:
    if left <= 0:
        raise ToolFailed("this call shows as much as one call may; read it with another")
    roots, path = context.roots, context.locate(file.path)
    with resolve_path(roots, path) as resolved:
        is_folder = resolved.info is not None and stat.S_ISDIR(resolved.info.st_mode)
    if is_folder:
        return Text(text=list_folder(roots, path))
    content = read_content(roots, path)
    refuse_hidden(roots, path, content.path)
    if mime := media_type(content.data):
        return InlineData(mime=mime, data=content.data)
    text = decode_text(content.data)
    if text is None:
        size = f"{len(content.data):,} bytes"
        raise ToolFailed(f"{quote(file.path)} is binary ({size}); it cannot be shown as text")
    return Text(text=_format_file(text, file, str(content.path), left))


def media_type(data: bytes) -> str:
    """The type of an image or a PDF, by its first bytes; empty for anything else."""
    for magic, mime in _MEDIA_SIGNATURES:
        if data.startswith(magic):
            return mime
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def decode_text(data: bytes) -> str | None:
    """A file's text, or None when it is binary. Bytes that are not UTF-8 are shown as �."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data[:8_192]:
        return None
    return data.decode("utf-8", "replace")


# --- lines -------------------------------------------------------------------------------------


class SelectedLines(NamedTuple):
    """Some lines of a text; `last` is 0 when there are none."""

    shown: tuple[str, ...]
    first: int
    last: int
    total: int


def select_lines(
    text: str, first: int, last: int | None, left: int = MAX_CHARACTERS
) -> SelectedLines:
    """The lines from first to last, as many as may be shown."""
    total = text.count("\n") + (not text.endswith("\n") and text != "")
    end = min(total, first + MAX_LINES - 1, total if last is None else last)
    shown: list[str] = []
    # a stream does not make a list of all lines: there may be twenty million
    for number, line in enumerate(islice(StringIO(text, newline="\n"), first - 1, end), first):
        body = line.rstrip("\n").removesuffix("\r")
        body = body if len(body) <= MAX_LINE else body[:MAX_LINE] + TRUNCATED
        made = f"{number}→{body}"
        left -= len(made) + 1
        if left < 0 and shown:
            break
        shown.append(made)
    return SelectedLines(tuple(shown), first, first + len(shown) - 1 if shown else 0, total)


def _format_file(text: str, file: PathRange, path: str, left: int) -> str:
    if not text:
        return f"{quote(path)} is empty"
    first = file.start or 1
    if file.end is not None and file.end < first:
        what = f"there are no lines {first} to {file.end}"
        raise ToolFailed(f"{what}; the end comes before the start")
    lines = select_lines(text, first, file.end, left)
    if not lines.shown:
        raise ToolFailed(f"{quote(path)} has {lines.total:,} lines; line {first} is past its end")
    whole = lines.first == 1 and lines.last == lines.total
    span = f"{lines.total}" if whole else f"{lines.first}-{lines.last} of {lines.total}"
    peculiarities = {
        "lines end with CRLF": "\r\n" in text,
        "� stands for bytes that are not UTF-8": "�" in text,
        "no newline at the end": not text.endswith("\n"),
    }
    notes = ", ".join(name for name, is_so in peculiarities.items() if is_so)
    about = f" ({notes})" if notes else ""
    made = [f"{quote(path)}, {'all ' if whole else ''}lines {span}{about}:", *lines.shown]
    if lines.last < lines.total:
        rest = f"{lines.last + 1}-{lines.total}"
        made.append(f"[lines {rest} are not shown; read on with offset={lines.last + 1}]")
    if not whole:
        made += _outline(text, path, lines)
    return "\n".join(made)


# --- outline -----------------------------------------------------------------------------------

_PYTHON = r"[ \t]*(?:async )?(?:def|class) \w"
_SCRIPT = (
    r"[ \t]*(?:export )?(?:default )?(?:abstract |async )?"
    r"(?:function\b|class |interface |enum |type \w+ ?=|namespace )"
    r"|(?:export )?const \w+ ?= ?(?:async )?(?:\(|function\b)"
)
_CLASSES = (
    r"[ \t]*(?:(?:public|private|protected|internal|static|final|abstract|sealed|open|override|"
    r"data|async|virtual|partial) ){0,6}"
    r"(?:class|interface|enum|record|struct|object|fun|func|namespace|protocol|extension|"
    r"void|[A-Z]\w{0,60}(?:<[^<>]{0,60}>)?) \w[^;=]{0,150}[({:]?[ \t]*$"
)
_SYMBOL_PATTERNS = {
    ".py .pyi": _PYTHON,
    ".js .jsx .ts .tsx .mjs .cjs .mts .vue .svelte": _SCRIPT,
    ".go": r"(?:func|type) ",
    ".rs": r"[ \t]*(?:pub(?:\([a-z]+\))? )?(?:async |unsafe |const )?"
    r"(?:fn|struct|enum|trait|impl|mod|macro_rules!)\b",
    ".java .kt .cs .swift .scala .php": _CLASSES,
    ".rb": r"[ \t]*(?:def|class|module) ",
    ".c .h .cc .cpp .hpp .cxx": r"(?:class|struct|enum|union|namespace|typedef) "
    r"|[A-Za-z_][\w*&:<> ]{0,80}\([^;]{0,120}$",
    ".sh .bash": r"(?:function )?[\w-]+ ?\(\)|function \w",
    ".md": r"#{1,6} ",
}
_SYMBOLS_BY_SUFFIX = {
    suffix: pattern for suffixes, pattern in _SYMBOL_PATTERNS.items() for suffix in suffixes.split()
}


def _outline(text: str, path: str, lines: SelectedLines) -> list[str]:
    """The symbols outside the lines shown, for files that are code."""
    known = _SYMBOLS_BY_SUFFIX.get(Path(path).suffix.lower())
    if known is None or len(text) > MAX_OUTLINED:
        return []
    pattern = re.compile(known)
    found: list[str] = []
    for number, line in enumerate(StringIO(text, newline="\n"), 1):
        if lines.first <= number <= lines.last or not pattern.match(line[:200].rstrip()):
            continue
        if len(found) == MAX_SYMBOLS:
            found.append("[more symbols are not shown]")
            break
        found.append(f"{number}→{line[:120].rstrip()}")
    return ["[symbols outside these lines:]", *found] if found else []
