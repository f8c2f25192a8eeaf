"""Remedies that name a command line, in the words of the terminal program.

Errors and notes are written for every door; whoever reads them here would have to leave for what
has a command of its own.
"""

from __future__ import annotations

import re

_NAMED = re.compile(r"`recollect ([a-z][^`\n]{0,200})`")
_HERE = (  # the first that fits; what is not listed stays a command line
    (re.compile(r"models"), "/model"),
    (re.compile(r"sessions --all"), "/resume"),
    (re.compile(r"trust --(hooks|memory|settings)(?: .*)?"), r"/trust \1"),
    (re.compile(r"trust"), "/trust"),
    (re.compile(r"compact(?: \S+)?"), "/compact"),
    (re.compile(r"show (\S+) --full"), r"/recall \1"),
    (re.compile(r"(?:show|context) \S+"), "/context"),
    (re.compile(r"memory add TEXT"), "/memory add TEXT"),
)


def say_here(text: str) -> str:
    """The text, with commands that can be typed into the prompt."""
    return _NAMED.sub(_translate, text)


def _translate(found: re.Match[str]) -> str:
    for line, command in _HERE:
        if match := line.fullmatch(found[1]):
            return f"`{match.expand(command)}`"
    return found[0]
