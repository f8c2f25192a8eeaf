"""Expands `@path` in a prompt: the mentioned files become parts after the user's text.

Text gets line numbers, so that nothing in it can pass for the end of the file; images, PDFs, sounds
and videos are sent as data, folders as a tree. Only files in the given folders are read, after
links are resolved, and none that git or the agent's own ignore files hide: those have to be
attached. Everything is bounded; the parts say what was cut or could not be read, and so do warnings
for the user. Mentions inside code are ignored, and so is `@someone` if there is no such file.
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
from recollect.workspace.media_types import media_type
from recollect.workspace.safe_files import (
    FileContent,
    ReadRefused,
    RefusalKind,
    decode_content,
    read_inside,
    resolve_inside,
    resolve_named,
)
from recollect.workspace.sent_files import Attachable, SentFile
from recollect.workspace.untrusted_text import (
    find_mentions,
    one_line,
    shorter_paths,
    strip_invisible,
)

MAX_MENTIONS = 20
MAX_WARNINGS = 10  # about mentions; the last one counts the rest
MAX_BYTES = 20_000_000  # of one file, and of all media together
MAX_LINES = 2_000  # of one file
MAX_LINE = 2_000  # characters
MAX_TOTAL = 400_000  # characters of all texts together
LINE_CUT = "... [truncated]"
_REMEDIES: dict[RefusalKind, str] = {
    "missing": "check the path",
    "outside": "--attach sends it",
    "ignored": "--attach sends it",
    "folder": "attach its files one by one",
    "special": "send a file with its content",
    "large": "send a part of it",
    "full": "send fewer files with one prompt",
    "binary": "send a text, an image, a PDF, a sound or a video made from it",
    "other": "check its path and permissions",
}
_NOT_MEANT = "put it in backticks if no file is meant"


class RemainingRoom(NamedTuple):
    """How much more the parts may contain."""

    characters: int = MAX_TOTAL
    bytes: int = MAX_BYTES


async def prompt_parts(
    prompt: str, roots: Sequence[Path], warn: Callable[[str], None] = lambda _: None
) -> tuple[Part, ...]:
    """A prompt and the files it mentions; a path is relative to the first folder that has it.
    `warn` gets which of them were left out, why, and what to do about it."""
    if "@" not in prompt:  # nothing to read, so no thread
        return (Text(text=prompt),)
    return await asyncio.to_thread(_read_mentions, prompt, tuple(roots), warn)


async def attachment_parts(files: Sequence[Attachable]) -> tuple[Part, ...]:
    """Files that the user attaches, wherever they are; `BadInput` if one cannot be read."""
    return await asyncio.to_thread(_read_attachments, tuple(files)) if files else ()


async def uploaded_parts(files: Sequence[tuple[str, bytes]]) -> tuple[Part, ...]:
    """Files that a server's client sent, by name; `BadInput` if one cannot go to a model."""
    return await asyncio.to_thread(_read_uploads, tuple(files))


def _read_uploads(files: tuple[tuple[str, bytes], ...]) -> tuple[Part, ...]:
    parts: list[Part] = []
    room = RemainingRoom()
    for name, data in files:
        read = _content_parts(name, FileContent(Path(), data, len(data)), room, whole=True)
        if isinstance(read, ReadRefused):
            remedy = _REMEDIES[read.kind]
            raise BadInput(f"cannot attach {one_line(name)}: {read.why}; {remedy}")
        parts += read
        room = _reduce(room, read)
    return tuple(parts)


def _read_attachments(files: tuple[Attachable, ...]) -> tuple[Part, ...]:
    parts: list[Part] = []
    room = RemainingRoom()
    for file in files:
        read = file.parts if isinstance(file, SentFile) else _read_attachment(file, room)
        if isinstance(read, ReadRefused):
            remedy = _REMEDIES[read.kind]
            raise BadInput(f"cannot attach {one_line(str(file))}: {read.why}; {remedy}")
        parts += read
        room = _reduce(room, read)
    return tuple(parts)


def _read_attachment(file: Path, room: RemainingRoom) -> tuple[Part, ...] | ReadRefused:
    """A whole file or nothing: the user would not notice that the model got only a part of it."""
    try:
        path = file.expanduser().resolve()
        if path.is_dir():
            return ReadRefused("it is a folder", "folder")
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
    warnings: list[str] = []
    seen: set[str] = set()
    for mentioned in named[:MAX_MENTIONS]:
        path, read = _read_as_meant(mentioned, roots, room)
        if path in seen:
            continue
        seen.add(path)
        if not isinstance(read, ReadRefused):
            parts += read
            room = _reduce(room, read)
        elif "/" in path or "." in path or read.kind != "missing":
            shown = one_line(path)
            failed.append(f"@{shown}: {read.why}")
            remedy = _mention_remedy(read, path, roots)
            warnings.append(f"@{shown} was left out: {read.why}; {remedy}")
    if len(named) > MAX_MENTIONS:
        failed.append(f"only the first {MAX_MENTIONS} of {len(named)} paths were read")
        warn(f"{failed[-1]}; mention the others in another prompt")
    if failed:
        parts.append(Text(text="Not read of what is mentioned above:\n" + "\n".join(failed)))
    _warn_bounded(warnings, warn)
    return tuple(parts)


def _mention_remedy(refused: ReadRefused, named: str, roots: tuple[Path, ...]) -> str:
    """What the user can do; a folder cannot be attached as a whole."""
    remedy = _REMEDIES[refused.kind]
    if refused.kind == "missing":
        return f"{remedy}, or {_NOT_MEANT}"
    if refused.kind in ("ignored", "outside") and any(
        os.path.isdir(resolve_named(root, named))  # noqa: PTH112 - it never raises
        for root in roots
    ):
        return f"{_REMEDIES['folder']} with --attach"
    return remedy


def _warn_bounded(warnings: Sequence[str], warn: Callable[[str], None]) -> None:
    for warning in warnings[:MAX_WARNINGS]:
        warn(warning)
    if len(warnings) > MAX_WARNINGS:
        warn(f"{len(warnings) - MAX_WARNINGS} more of the mentioned files were left out")


def _read_as_meant(
    named: str, roots: tuple[Path, ...], room: RemainingRoom
) -> tuple[str, tuple[Part, ...] | ReadRefused]:
    """What a mention names, and its parts: if nothing has that name, then without line numbers or
    a bracket at its end."""
    read = _read(named, roots, room)
    if isinstance(read, ReadRefused) and read.kind == "missing":
        for shorter in shorter_paths(named):
            again = _read(shorter, roots, room)
            if not isinstance(again, ReadRefused) or again.kind != "missing":
                return shorter, again
    return named, read


def _read(
    named: str, roots: tuple[Path, ...], room: RemainingRoom
) -> tuple[Part, ...] | ReadRefused:
    refused = ReadRefused("there is no such file", "missing")
    for path in dict.fromkeys(resolve_named(root, named) for root in roots):
        resolved = resolve_inside(path, roots)
        if isinstance(resolved, ReadRefused):
            if resolved.kind != "missing":
                refused = resolved
            continue
        if ignored := _find_ignored(path, resolved[1], roots):
            return ignored
        if resolved[1].is_dir():
            shown = render_folder_tree(resolved[1], roots=roots)[: room.characters]
            return (Text(text=f"The folder @{one_line(named)}:\n{shown}"),)
        return _file(named, path, roots, room)
    return refused


def _find_ignored(path: Path, real: Path, roots: tuple[Path, ...]) -> ReadRefused | None:
    """Whether a file is ignored, by its name in the prompt or with links resolved."""
    for place in dict.fromkeys((real, Path(os.path.normpath(path)))):
        if any(place == root for root in roots):
            continue
        # what the user hides from the agent is the better reason to name
        hider = find_hider(place, roots, use_git=False) or find_hider(place, roots)
        if hider is not None:
            return ReadRefused(f"it {hider.reason}", "ignored")
    return None


def _file(
    named: str, path: Path, roots: tuple[Path, ...], room: RemainingRoom, *, whole: bool = False
) -> tuple[Part, ...] | ReadRefused:
    found = read_inside(path, roots, MAX_BYTES)
    if isinstance(found, ReadRefused):
        return found
    return _content_parts(named, found, room, whole=whole)


def _content_parts(
    named: str, found: FileContent, room: RemainingRoom, *, whole: bool
) -> tuple[Part, ...] | ReadRefused:
    if mime := media_type(found.data):
        if len(found.data) > room.bytes:
            return ReadRefused("the files before it have used up the room for media", "full")
        label = Text(text=f"The file @{one_line(named)} ({mime}):")
        return label, InlineData(mime=mime, data=found.data)
    text = decode_content(found)
    if isinstance(text, ReadRefused):
        return text
    if room.characters <= 0:
        return ReadRefused("the files before it have used up the room for text", "full")
    if not whole:
        return (Text(text=number_lines(one_line(named), text, room.characters)),)
    numbered = number_lines(one_line(named), text, sys.maxsize, whole=True)
    if len(numbered) > room.characters:
        limit = f"at most {MAX_TOTAL:,} of all attached texts are sent"
        return ReadRefused(f"it has {len(text):,} characters, and {limit}", "large")
    return (Text(text=numbered),)


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
