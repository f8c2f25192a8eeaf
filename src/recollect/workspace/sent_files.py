"""Files that went with an earlier prompt, as the log has them: they can be sent again, word for
word, though the files themselves may be gone or changed.

A file that the prompt mentions with @ is not one of them: it is read when the prompt is sent again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from recollect.entries import FileRef, InlineData, Message, Part, Text
from recollect.text import format_size
from recollect.workspace.untrusted_text import find_mentions, one_line, shorter_paths

# how the parts of a file begin; `file_mentions` writes them
_LABEL = re.compile(
    r"The (?:file|folder) @(.+?)(?: \([\w.+-]+/[\w.+-]+\))?(?:, cut)?(?::| is empty\.)(?:\n|\Z)"
)
_FOLDER = "The folder @"
_MEDIA = re.compile(r"The file @.+ \([\w.+-]+/[\w.+-]+\):")  # its data follows
_MAX_NAME = 80
_KINDS = {"application/pdf": "document", "image": "image", "audio": "sound", "video": "video"}


class SentFile(msgspec.Struct, frozen=True):
    name: str
    parts: tuple[Part, ...]

    @property
    def label(self) -> str:
        """What it is, its name, and how large it is."""
        mime = next((p.mime for p in self.parts if isinstance(p, InlineData | FileRef)), "")
        kind = _KINDS.get(mime) or _KINDS.get(mime.partition("/")[0], "file")
        if self._text.startswith(_FOLDER):
            return f"folder {self.name}"
        size = sum(len(part.data) for part in self.parts if isinstance(part, InlineData))
        if not mime:
            size = len(self._text)
        return " ".join(filter(None, (kind, self.name, format_size(size) if size else "")))

    @property
    def _text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))


# a file that is read when the prompt is sent, or one that was sent before
Attachable: TypeAlias = Path | SentFile


def sent_files(message: Message) -> tuple[SentFile, ...]:
    """The files that were attached to a prompt, in order."""
    prompt, rest = _split_prompt(message.parts)
    mentioned = [
        {one_line(name) for name in (mention.path, *shorter_paths(mention.path))}
        for mention in find_mentions(prompt)
    ]
    found: list[SentFile] = []
    for file in _files(rest):
        mention = next((names for names in mentioned if file.name in names), None)
        if mention is None:
            found.append(file)
        else:
            mentioned.remove(mention)  # an attachment may have the same name
    return tuple(found)


def prompt_files(message: Message) -> tuple[SentFile, ...]:
    """All files and folders that were sent with a prompt, also those that it mentions."""
    return tuple(file for file in _files(_split_prompt(message.parts)[1]) if file.name)


def _split_prompt(parts: Sequence[Part]) -> tuple[str, list[Part]]:
    """What was typed, and all the rest."""
    at = next((n for n, part in enumerate(parts) if isinstance(part, Text)), None)
    if at is None:
        return "", [*parts]
    part = parts[at]
    assert isinstance(part, Text)
    return part.text, [*parts[:at], *parts[at + 1 :]]


def _files(parts: Sequence[Part]) -> Iterator[SentFile]:
    label: Text | None = None  # of the data that follows
    for part in parts:
        if isinstance(part, InlineData | FileRef):
            whole = (part,) if label is None else (label, part)
            yield SentFile("" if label is None else _name(label), whole)
        elif isinstance(part, Text) and _name(part) and not _MEDIA.fullmatch(part.text):
            yield SentFile(_name(part), (part,))
        label = part if isinstance(part, Text) and _name(part) else None


def _name(part: Text) -> str:
    found = _LABEL.match(part.text)
    return one_line(found[1])[:_MAX_NAME] if found else ""
