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
    if verb == "sed":
        how: FileAccess = (
            "edit" if any(w.startswith(("-i", "--in-place")) for w in rest) else "read"
        )
        return [TouchedFile(how, path) for path in _file_words(rest)[-1:]]
    if verb == "mv":
        files = _file_words(rest)
        return (
            [TouchedFile("delete", files[0]), TouchedFile("write", files[-1])]
            if len(files) > 1
            else []
        )
    if verb in _VERBS:
        return [TouchedFile(_VERBS[verb], path) for path in _file_words(rest)]
    return []


def _file_words(words: list[str]) -> list[str]:
    return [word for word in words if not word.startswith("-") and _is_file(word)][:20]


def _is_file(path: str) -> bool:
    known = len(path) < 500 and _PATH.fullmatch(path) is not None
    return known and not path.startswith("/dev/")
