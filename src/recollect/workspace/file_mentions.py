"""Expands `@path` in a prompt: the mentioned files become parts after the user's text.

Text gets line numbers, so that nothing in it can pass for the end of the file; images and PDFs are
sent as data, folders as a tree. Only files in the given folders are read, after links are resolved,
and none that git or the agent's own ignore files hide: those have to be attached. Everything is
bounded, and the parts say what was cut or could not be read. Mentions inside code are ignored, and
so is `@someone` if there is no such file.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from recollect.entries import InlineData, Part, Text
from recollect.errors import BadInput
from recollect.workspace.folder_tree import render_folder_tree
from recollect.workspace.hidden_paths import find_hider
from recollect.workspace.safe_files import (
    ReadRefused,
    decode_text,
    read_inside,
    resolve_inside,
    resolve_named,
)
from recollect.workspace.untrusted_text import find_mentions, one_line, strip_invisible

MAX_MENTIONS = 20
MAX_BYTES = 20_000_000  # of one file, and of all images together
MAX_LINES = 2_000  # of one file
MAX_LINE = 2_000  # characters
MAX_TOTAL = 400_000  # characters of all texts together
LINE_CUT = "... [truncated]"
_MEDIA_TYPES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


class RemainingRoom(NamedTuple):
    """How much more the parts may contain."""

    characters: int = MAX_TOTAL
    bytes: int = MAX_BYTES


async def prompt_parts(
    prompt: str, roots: Sequence[Path], warn: Callable[[str], None] = lambda _: None
) -> tuple[Part, ...]:
    """A prompt and the files it mentions; a path is relative to the first folder that has it.
    `warn` gets which of them are ignored and were therefore left out."""
    return await asyncio.to_thread(_read_mentions, prompt, tuple(roots), warn)


async def attachment_parts(files: Sequence[Path]) -> tuple[Part, ...]:
    """Files that the user attaches, wherever they are; `BadInput` if one cannot be read."""
    return await asyncio.to_thread(_read_attachments, tuple(files))


def _read_attachments(files: tuple[Path, ...]) -> tuple[Part, ...]:
    parts: list[Part] = []
    room = RemainingRoom()
    for file in files:
        read = _read_attachment(file, room)
        if isinstance(read, ReadRefused):
            raise BadInput(f"cannot attach {one_line(str(file))}: {read.why}")
        parts += read
        room = _reduce(room, read)
    return tuple(parts)


def _read_attachment(file: Path, room: RemainingRoom) -> tuple[Part, ...] | ReadRefused:
    """A whole file or nothing: the user would not notice that the model got only a part of it."""
    try:
        path = file.expanduser().resolve()
        if path.is_dir():
            return ReadRefused("it is a folder; name its files, or write @path in the prompt")
    except (OSError, RuntimeError, ValueError):  # such as too long a name: reading says so
        path = file.absolute()
    return _file(file.name, path, (path.parent,), room, whole=True)


def _read_mentions(
    prompt: str, roots: tuple[Path, ...], warn: Callable[[str], None]
) -> tuple[Part, ...]:
    parts: list[Part] = [Text(text=prompt)]
    room = RemainingRoom()
    named = tuple(dict.fromkeys(mention.path for mention in find_mentions(prompt)))
    failed: list[str] = []
    for path in named[:MAX_MENTIONS]:
        read = _read(path, roots, room)
        if isinstance(read, ReadRefused):
            if "/" in path or "." in path or not read.why.startswith("there is no"):
                failed.append(f"@{one_line(path)}: {read.why}")
            if isinstance(read, _IgnoredFile):
                warn(f"@{one_line(path)} was left out: {read.why}; --attach sends it")
            continue
        parts += read
        room = _reduce(room, read)
    if len(named) > MAX_MENTIONS:
        failed.append(f"only the first {MAX_MENTIONS} of {len(named)} paths were read")
    if failed:
        parts.append(Text(text="Not read of what is mentioned above:\n" + "\n".join(failed)))
    return tuple(parts)


def _read(
    named: str, roots: tuple[Path, ...], room: RemainingRoom
) -> tuple[Part, ...] | ReadRefused:
    refused = ReadRefused("there is no such file")
    for path in dict.fromkeys(resolve_named(root, named) for root in roots):
        resolved = resolve_inside(path, roots)
        if isinstance(resolved, ReadRefused):
            if not resolved.why.startswith("there is no"):
                refused = resolved
            continue
        if ignored := _find_ignored(path, resolved[1], roots):
            return ignored
        if resolved[1].is_dir():
            shown = render_folder_tree(resolved[1], roots=roots)[: room.characters]
            return (Text(text=f"The folder @{one_line(named)}:\n{shown}"),)
        return _file(named, path, roots, room)
    return refused


class _IgnoredFile(ReadRefused, frozen=True):
    pass


def _find_ignored(path: Path, real: Path, roots: tuple[Path, ...]) -> _IgnoredFile | None:
    """Whether a file is ignored, by its name in the prompt or with links resolved."""
    for place in dict.fromkeys((real, Path(os.path.normpath(path)))):
        if any(place == root for root in roots):
            continue
        # what the user hides from the agent is the better reason to name
        hider = find_hider(place, roots, use_git=False) or find_hider(place, roots)
        if hider is not None:
            return _IgnoredFile(f"it {hider.reason}")
    return None


def _file(
    named: str, path: Path, roots: tuple[Path, ...], room: RemainingRoom, *, whole: bool = False
) -> tuple[Part, ...] | ReadRefused:
    found = read_inside(path, roots, MAX_BYTES)
    if isinstance(found, ReadRefused):
        return found
    kind = _media_type(found.data)
    if kind:
        if len(found.data) > room.bytes:
            return ReadRefused("the files before it have used up the room for pictures")
        label = Text(text=f"The file @{one_line(named)} ({kind}):")
        return label, InlineData(mime=kind, data=found.data)
    text = decode_text(found.data)
    if isinstance(text, ReadRefused):
        return ReadRefused(f"{text.why}, but {found.size:,} bytes of another kind")
    if room.characters <= 0:
        return ReadRefused("the files before it have used up the room for text")
    if not whole:
        return (Text(text=number_lines(one_line(named), text, room.characters)),)
    numbered = number_lines(one_line(named), text, sys.maxsize, whole=True)
    if len(numbered) > room.characters:
        limit = f"at most {MAX_TOTAL:,} of all attached texts are sent"
        return ReadRefused(f"it has {len(text):,} characters, and {limit}; attach less of it")
    return (Text(text=numbered),)


def _media_type(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MEDIA_TYPES if data.startswith(magic)), "")


def number_lines(name: str, text: str, room: int = MAX_TOTAL, *, whole: bool = False) -> str:
    """A file's lines with their numbers, under a line that names the file."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    shown: list[str] = []
    for number, line in enumerate(lines if whole else lines[:MAX_LINES], 1):
        cut = line[:MAX_LINE] + LINE_CUT if len(line) > MAX_LINE and not whole else line
        numbered = f"{number}→{strip_invisible(cut)}"
        room -= len(numbered) + 1
        if room < 0:
            break
        shown.append(numbered)
    if not lines:
        return f"The file @{name} is empty."
    if len(shown) == len(lines):
        return "\n".join((f"The file @{name}:", *shown))
    rest = f"Shown are lines 1 to {len(shown)} of {len(lines):,}; read the file for the rest."
    return "\n".join((f"The file @{name}, cut:", *shown, rest))


def _reduce(room: RemainingRoom, parts: tuple[Part, ...]) -> RemainingRoom:
    characters = sum(len(part.text) for part in parts if isinstance(part, Text))
    data = sum(len(part.data) for part in parts if isinstance(part, InlineData))
    return RemainingRoom(room.characters - characters, room.bytes - data)
