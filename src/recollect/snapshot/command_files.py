"""Which files a shell command reads, changes or deletes, guessed from its words.

A hint for the ledger, not a judgement of safety: it looks at the first word of each simple command
and takes the other words for files. Unknown commands give nothing. Linear.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

FileAccess: TypeAlias = Literal["read", "edit", "write", "delete"]
_MAX_READ = 8_000
_APART = re.compile(r"&&|\|\||[;|\n]")
_QUOTED = re.compile(r"'[^']*+'|\"[^\"]*+\"")
_REDIRECT = re.compile(r"(?<![0-9&>])>{1,2}\s{0,4}([\w./~@+-]{2,400})", re.A)
_PATH = re.compile(r"[\w.~@+-]*(?:/[\w.@+-]+)*\.[A-Za-z]\w{0,9}|(?:[\w.~@+-]*/)+[\w.@+-]+", re.A)
_COMMANDS: dict[FileAccess, str] = {
    "read": "cat head tail less bat wc",
    "delete": "rm unlink",
    "write": "touch tee",
}
_VERBS = {verb: how for how, verbs in _COMMANDS.items() for verb in verbs.split()}


class TouchedFile(NamedTuple):
    how: FileAccess
    path: str


def find_touched_files(command: str) -> tuple[TouchedFile, ...]:
    text = command[:_MAX_READ].split("<<", 1)[0]  # a here-document holds no commands
    text = _QUOTED.sub(_unquoted, text)
    found: list[TouchedFile] = []
    for piece in _APART.split(text):
        found += (TouchedFile("write", path) for path in _REDIRECT.findall(piece) if _is_file(path))
        words = _REDIRECT.sub(" ", piece).split()
        if words:
            found += _touched_by(words)
    return tuple(dict.fromkeys(found))


def _unquoted(match: re.Match[str]) -> str:
    """A quoted path is a path; other quoted text is ignored."""
    inner = match[0][1:-1]
    return inner if _PATH.fullmatch(inner[:500]) else " "


def _touched_by(words: list[str]) -> list[TouchedFile]:
    verb, rest = words[0], words[1:]
    if verb == "git" and rest[:1] in (["rm"], ["mv"]):
        verb, rest = rest[0], rest[1:]
    files = [word for word in rest if not word.startswith("-") and _is_file(word)][:20]
    if verb == "sed":
        in_place = any(word.startswith(("-i", "--in-place")) for word in rest)
        return [TouchedFile("edit" if in_place else "read", path) for path in files[-1:]]
    if verb == "mv" and len(files) > 1:
        return [TouchedFile("delete", files[0]), TouchedFile("write", files[-1])]
    return [TouchedFile(_VERBS[verb], path) for path in files] if verb in _VERBS else []


def _is_file(path: str) -> bool:
    known = len(path) < 500 and _PATH.fullmatch(path) is not None
    return known and not path.startswith("/dev/")
