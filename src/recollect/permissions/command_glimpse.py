"""Makes out the commands of a line that was not understood: enough for a deny rule.

A rough reading, linear in the length: a command begins at the start, after an operator, a
parenthesis, a backquote or a word such as `do`, wherever these stand outside quotes, and also where
a substitution begins inside double quotes. Too many commands are found rather than too few.
"""

from __future__ import annotations

import re

from recollect.permissions.parsed_line import SubCommand, word_set

_TOKEN = re.compile(
    r"(?P<begin>\$?\(+|[<>]\(|[;&|)\n`]+|[{}](?=\s|\Z))"
    r"|(?P<redirect>[0-9]*[<>]+[&|-]?)"
    r"|(?P<blank>[ \t]+|\\\n)"
    r"|(?P<single>'[^']*'?)"
    r'|(?P<double>"[^"\\]*(?:\\.[^"\\]*)*"?)'
    r"|(?P<escape>\\.?)"
    r"|(?P<plain>[^;&|()\n`<> \t'\"\\$]+|\$|[{}])",
    re.DOTALL,
)
_SUBSTITUTION = re.compile(r"\$\(|`")
_BEFORE_COMMANDS = word_set("! do elif else if then time until while coproc")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
_MAX_TEXTS = 50


def glimpse_commands(text: str) -> tuple[SubCommand, ...]:
    found: list[SubCommand] = []
    waiting, seen = [text], 0
    while waiting and seen < _MAX_TEXTS:
        seen += 1
        found += _glimpse(waiting.pop(), waiting)
    return tuple(found)


def _glimpse(text: str, inner: list[str]) -> list[SubCommand]:
    """The commands of a text; quoted texts that hold more are added to `inner`."""
    commands: list[list[str]] = [[]]
    word: list[str] = []
    is_target = False  # the word that comes is a redirection's
    for token in _TOKEN.finditer(text):
        kind, value = token.lastgroup, token[0]
        if kind in ("plain", "single", "double", "escape"):
            if kind == "double" and _SUBSTITUTION.search(value):
                inner.append(value.strip('"'))
            word.append(value.strip("'\"") if kind in ("single", "double") else value.lstrip("\\"))
            continue
        if word and not is_target:
            _add_word(commands[-1], "".join(word))
        is_target = is_target and not word
        word = []
        if kind == "begin":
            commands.append([])
        elif kind == "redirect":
            is_target = True
    if word and not is_target:
        _add_word(commands[-1], "".join(word))
    return [SubCommand(tuple(words)) for words in commands if words]


def _add_word(words: list[str], word: str) -> None:
    if words or not (word in _BEFORE_COMMANDS or _ASSIGNMENT.match(word)):
        words.append(word)
