"""What goes with a prompt but is not typed: long pastes, and files such as images.

A long paste stands in the prompt as one line in brackets and is sent in full; a prompt in which
that line was changed does not have it any more. Paths of images and documents that were pasted or
dropped become attachments. Pure, but for the question whether such a file exists.
"""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from recollect.terminal.shell_prompt import parse_shell
from recollect.terminal.slash_commands import find_builtin, parse_command
from recollect.text import format_size
from recollect.workspace.sent_files import Attachable, SentFile

LONG_LINES, LONG_TEXT = 10, 2_000  # more than that becomes a chip
MAX_PASTE = 10_000_000  # characters
MEDIA_SUFFIXES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"))
_MAX_PATHS = 4_000  # characters of a paste that may be paths
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class PasteRefused(ValueError):
    """Why a paste is not taken, as a sentence."""


class Attachment(msgspec.Struct, frozen=True):
    file: Attachable
    label: str


class PastedTexts:
    """The long pastes of the prompt that is being written, by the line that stands for each."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def add(self, text: str) -> str:
        """What to insert for a paste: itself, or the line that stands for it."""
        if len(text) > MAX_PASTE:
            raise PasteRefused(
                f"a paste of {len(text) / 1e6:,.0f} million characters is too long (the most is "
                f"{MAX_PASTE // 1_000_000} million); save it as a file and mention that with @"
            )
        text = _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
        lines = text.rstrip("\n").count("\n") + 1
        if lines <= LONG_LINES and len(text) <= LONG_TEXT:
            return text
        size = f"{lines:,} lines" if lines > LONG_LINES else f"{len(text):,} characters"
        chip = f"[pasted text {len(self._texts) + 1}: {size}]"
        self._texts[chip] = text
        return chip

    def expand(self, prompt: str) -> str:
        """The prompt as it is sent. A paste is never searched for further chips."""
        if not self._texts:
            return prompt
        chips = re.compile("|".join(map(re.escape, self._texts)))
        return chips.sub(lambda found: self._texts[found[0]], prompt)

    def chip_at(self, line: str, column: int) -> tuple[int, int, str] | None:
        """The chip in which or after which the cursor stands: from, to, and its text."""
        for chip, text in self._texts.items():
            at = line.find(chip)
            while at >= 0:
                if at < column <= at + len(chip):
                    return at, at + len(chip), text
                at = line.find(chip, at + 1)
        return None

    def clear(self) -> None:
        self._texts.clear()


def media_files(pasted: str, folder: Path) -> tuple[Path, ...]:
    """The images and documents that a pasted text names, if it is nothing but such paths."""
    pasted = pasted.strip()
    if not pasted or len(pasted) > _MAX_PATHS:
        return ()
    for words in _ways_to_read(pasted):
        files = [_path_of(word, folder) for word in words]
        if files and all(file is not None for file in files):
            return tuple(file for file in files if file is not None)
    return ()


def _ways_to_read(pasted: str) -> list[list[str]]:
    """One path for each line, or words as a shell reads them."""
    ways = [[line.strip() for line in pasted.splitlines() if line.strip()]]
    with suppress(ValueError):
        ways.append(shlex.split(pasted))
    return ways


def _path_of(word: str, folder: Path) -> Path | None:
    if word.startswith("file://"):
        try:
            word = unquote(urlsplit(word).path)
        except ValueError:
            return None
    if Path(word).suffix.lower() not in MEDIA_SUFFIXES:
        return None
    try:
        file = folder / Path(word).expanduser()
        return file if file.is_file() else None
    except (OSError, RuntimeError, ValueError):
        return None


def describe_file(file: Attachable) -> Attachment:
    if isinstance(file, SentFile):
        return Attachment(file, file.label)
    suffix = file.suffix.lower()
    kind = "document" if suffix == ".pdf" else "image" if suffix in MEDIA_SUFFIXES else "file"
    try:
        size = f" {format_size(os.stat(file).st_size)}"  # noqa: PTH116
    except OSError:
        size = ""
    return Attachment(file, f"{kind} {file.name}{size}")


def takes_no_files(text: str) -> bool:
    """Whether a line is a command of the program or of a shell; the user's own commands become
    prompts."""
    command = parse_command(text)
    if command is None:
        return parse_shell(text) is not None
    return find_builtin(command[0]) is not None
