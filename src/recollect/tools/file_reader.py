"""Carries out `read_file`: one file or many, with line numbers, each as one block of the result.

`toolkinds.parse_paths` reads which files and lines a call means, and the elision rules use the same
function to know what a read has shown; so block n is always file n. At most 2,000 lines and 2,000
characters of a line are shown; the text says what was cut and how to read on. Of a file over 20 MB
the lines are read in pieces, in little memory. Images, PDFs, sounds and videos are returned as they
are, recognized by their bytes and not by their name; whether the model is sent them is the wire's
matter. Other binary files are refused with their size. In a batch a file that cannot be read fails
alone. Notes attached to a file stand under it.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import BinaryIO

import msgspec

from recollect.entries import Content, InlineData, Text, json_text
from recollect.toolkinds import PathRange, parse_paths
from recollect.tools.builtin import FileRange
from recollect.tools.directory_listing import list_folder
from recollect.tools.file_notes import all_notes, format_notes
from recollect.tools.ignored_files import refuse_hidden
from recollect.tools.line_endings import describe_endings, uses_cr
from recollect.tools.line_window import MAX_CHARACTERS, SelectedLines, select_lines
from recollect.tools.resolve_path import quote, resolve_path
from recollect.tools.safe_open import MAX_BYTES, open_file
from recollect.tools.secret_access import refuse_secret
from recollect.tools.tool import ToolContext, ToolFailed, ToolOutput
from recollect.workspace.media_types import media_type
from recollect.workspace.text_format import (
    UNKNOWN_BYTE,
    DecodedText,
    decode_bytes,
    replace_surrogates,
)

MAX_FILES = 50  # in one call
MAX_SYMBOLS = 60
MAX_OUTLINED = 2_000_000  # characters of a file that is searched for symbols
MAX_STREAMED = 2_000_000_000  # bytes of a file of which some lines can be read
PIECE_BYTES = 1_048_576


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
    window = {"offset": offset, "limit": limit}
    _check_numbers(window)
    for item in given:
        if isinstance(item, FileRange):
            _check_numbers({"startLine": item.start, "endLine": item.end})
            beside = next((name for name, number in window.items() if number is not None), "")
            if beside and (item.start, item.end) != (None, None):
                raise ToolFailed(
                    f"{quote(item.path)} has lines of its own, and {beside} is for all files; give "
                    "startLine and endLine with each file, or offset and limit for all"
                )
    values = {"absolute_path": msgspec.to_builtins(given), "offset": offset, "limit": limit}
    files = parse_paths(json_text({k: v for k, v in values.items() if v is not None}))
    if not files:
        raise ToolFailed("absolute_path names no file; give a path, or a list of paths")
    if len(files) > MAX_FILES:
        raise ToolFailed(f"{len(files):,} files at once are too many; name at most {MAX_FILES}")
    return files


def _check_numbers(given: Mapping[str, int | None]) -> None:
    for name, number in given.items():
        if number is not None and number < 1:
            raise ToolFailed(f"{name} is {number}; lines are counted from 1, so give 1 or more")


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
    with open_file(roots, path) as opened, os.fdopen(opened.descriptor, "rb", closefd=False) as raw:
        refuse_hidden(roots, path, opened.path)
        refuse_secret(context, path, opened.path)
        start = raw.read(PIECE_BYTES)
        size = max(opened.info.st_size, len(start))
        if mime := media_type(start):
            if size > MAX_BYTES:
                raise ToolFailed(
                    f"{quote(file.path)} is {mime} of {size:,} bytes, the limit is {MAX_BYTES:,}; "
                    "make a smaller one of it with a command"
                )
            return InlineData(mime=mime, data=start + raw.read(MAX_BYTES - len(start)))
        pieces: Iterable[str]
        if size > MAX_BYTES:
            opening = _describe_stream(start, size, file.path)
            pieces = _stream(opening, raw, start)
        else:
            opening = _decode(start + raw.read(MAX_BYTES - len(start)), file.path)
            pieces = (opening.shown,)
        return Text(text=_format_file(opening, pieces, file, str(opened.path), left))


def _decode(data: bytes, path: str) -> DecodedText:
    found = decode_bytes(data)
    if found is None:
        size = f"{len(data):,} bytes"
        raise ToolFailed(f"{quote(path)} is binary ({size}); it cannot be shown as text")
    return found


# --- large files -------------------------------------------------------------------------------


def _describe_stream(start: bytes, size: int, path: str) -> DecodedText:
    """How the text of a large file is stored, by its beginning."""
    if size > MAX_STREAMED:
        raise ToolFailed(
            f"{quote(path)} has {size:,} bytes, the limit is {MAX_STREAMED:,}; "
            "show parts of it with a command such as tail or sed"
        )
    whole = start[: len(start) - len(start) % 4]
    for cut in range(4):  # a character of UTF-8 may go on after the beginning
        try:
            whole[: len(whole) - cut].decode()
        except UnicodeDecodeError:
            continue
        return _decode(whole[: len(whole) - cut], path)
    return _decode(whole, path)


def _stream(opening: DecodedText, raw: BinaryIO, start: bytes) -> Iterator[str]:
    """The text of a large file in pieces, line breaks as in `DecodedText.shown`."""
    # one stray byte after a clean beginning must not end the reading
    errors = "replace" if opening.format.errors == "strict" else opening.format.errors
    decoder = codecs.getincrementaldecoder(opening.format.encoding)(errors)
    is_cr = uses_cr(opening.text)
    data = start[len(opening.format.mark) :]
    while data:
        text = decoder.decode(data)
        if errors == "surrogateescape":
            text = replace_surrogates(text)
        yield text.replace("\r", "\n") if is_cr else text
        data = raw.read(PIECE_BYTES)
    yield replace_surrogates(decoder.decode(b"", final=True))


# --- lines -------------------------------------------------------------------------------------


def _format_file(
    opening: DecodedText, pieces: Iterable[str], file: PathRange, path: str, left: int
) -> str:
    """The lines wanted, under a header; `opening` is the text, or the beginning of a large one."""
    first = file.start or 1
    if file.end is not None and file.end < first:
        what = f"there are no lines {first} to {file.end}"
        raise ToolFailed(f"{what}; the end comes before the start")
    lines = select_lines(pieces, first, file.end, left)
    if not lines.total:
        return f"{quote(path)} is empty"
    if not lines.shown:
        raise ToolFailed(f"{quote(path)} has {lines.total:,} lines; line {first} is past its end")
    whole = lines.first == 1 and lines.last == lines.total
    span = f"{lines.total}" if whole else f"{lines.first}-{lines.last} of {lines.total}"
    notes = ", ".join(_peculiarities(opening, lines))
    about = f" ({notes})" if notes else ""
    made = [f"{quote(path)}, {'all ' if whole else ''}lines {span}{about}:", *lines.shown]
    if lines.last < lines.total:
        rest = f"{lines.last + 1}-{lines.total}"
        made.append(f"[lines {rest} are not shown; read on with offset={lines.last + 1}]")
    if not whole:
        made += _outline(opening.shown, path, lines)
    return "\n".join(made)


def _peculiarities(opening: DecodedText, lines: SelectedLines) -> Iterator[str]:
    """What an editor would show about a file beside its text."""
    stored = opening.format
    if stored.mark or stored.encoding not in ("utf-8", "ascii"):
        yield stored.name
    if endings := describe_endings(opening.text):
        yield endings
    if stored.errors != "strict":
        known = stored._replace(encoding="utf-8") if stored.encoding == "ascii" else stored
        yield f"{UNKNOWN_BYTE} stands for bytes that are not {known._replace(mark=b'').name}"
    if not lines.ends_with_newline:
        yield "no newline at the end"


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
