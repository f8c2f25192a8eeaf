"""What can stand at the cursor of a prompt: commands, their arguments, paths.

Pure: which part of the text is being typed, what fits there, and how a path has to be written so
that it is read as a mention again. Where the candidates come from is the caller's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from recollect.terminal.slash_commands import SlashCommand

MOST = 8  # rows
_PATH = re.compile(r'(?:^|(?<=[\s(\["\']))@(?:"([^"\n]*)|((?:\\.|[^\s\\"`<>|*?])*))$')
_COMMAND = re.compile(r"/([A-Za-z0-9_:-]*)$")
_ARGUMENT = re.compile(r"/([A-Za-z0-9_:-]+) +(\S.*|)$")
_PLAIN = re.compile(r"[^\s\\\"`<>|*?]+")
_LAST = frozenset(".,;:!'()[]{}，。；：！？、）】」》…\u00a0\u2007\u202f")


class Candidate(msgspec.Struct, frozen=True):
    text: str  # what is put in the place of what was typed
    label: str
    detail: str = ""
    ends: bool = True  # nothing can follow that would be completed


class CompletionTarget(msgspec.Struct, frozen=True):
    """A part of the text before the cursor that can be completed."""

    kind: Literal["command", "argument", "path"]
    start: int  # where it begins
    typed: str
    command: str = ""  # of an argument


def find_target(before: str) -> CompletionTarget | None:
    """What is being typed at the end of this text, which is all that stands before the cursor."""
    if "\n" not in before and before.startswith("/"):
        if match := _COMMAND.match(before):
            return CompletionTarget("command", 0, match[1])
        if match := _ARGUMENT.match(before):
            return CompletionTarget("argument", match.start(2), match[2], match[1].lower())
    line = before[before.rfind("\n") + 1 :][-2_000:]
    if match := _PATH.search(line):
        typed = match[1] if match[1] is not None else re.sub(r"\\(.)", r"\1", match[2])
        return CompletionTarget("path", len(before) - len(line) + match.start(), typed)
    return None


def complete_command(typed: str, commands: Sequence[SlashCommand]) -> list[Candidate]:
    """Commands whose name begins with this, then those with such an alias, then those whose name
    has these letters."""
    typed = typed.lower()
    ranked: list[tuple[int, str, Candidate]] = []
    for one in commands:
        alias = next((name for name in one.aliases if name.startswith(typed)), "")
        rank = 0 if one.name.startswith(typed) else 1 if alias else 2
        if rank == 2 and not is_subsequence(typed, one.name):
            continue
        also = f" (/{alias})" if alias and rank == 1 else ""
        label = f"/{one.name} {one.arguments}".rstrip() + also
        text = f"/{one.name} " if one.arguments else f"/{one.name}"
        exact = 0 if typed in (one.name, *one.aliases) else 1
        ranked.append((2 * rank + exact, one.name, Candidate(text, label, one.help)))
    if typed:
        ranked.sort(key=lambda row: row[0])
    return [candidate for _, _, candidate in ranked]


def complete_word(typed: str, choices: Iterable[tuple[str, str]]) -> list[Candidate]:
    """Of words with their explanations those that begin with this, then those that have it."""
    wanted = typed.lower()
    fitting = [
        (not word.lower().startswith(wanted), Candidate(word, word, detail))
        for word, detail in choices
        if wanted in word.lower() or wanted in detail.lower()
    ]
    return [candidate for _, candidate in sorted(fitting, key=lambda row: row[0])]


def complete_path(paths: Iterable[str]) -> list[Candidate]:
    return [
        Candidate(mention, path, ends=not path.endswith("/"))
        for path in paths
        if (mention := write_mention(path))
    ]


def write_mention(path: str) -> str:
    """The path as a mention that is read as this path; empty if it cannot be written as one."""
    if _PLAIN.fullmatch(path) and path[-1] not in _LAST:
        return f"@{path}"
    if '"' not in path and "\n" not in path:
        return f'@"{path}"'
    if "\n" in path or path[-1] in _LAST:
        return ""
    return "@" + re.sub(r"([\s\\\"`<>|*?])", r"\\\1", path)


def is_subsequence(letters: str, text: str) -> bool:
    rest = iter(text)
    return all(letter in rest for letter in letters)
