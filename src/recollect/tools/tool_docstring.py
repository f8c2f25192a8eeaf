"""The description of a tool and of its parameters, from a docstring.

Three styles are read: lines `name: …` (ours), a section `Args:` with indented lines
`name (type): …` (Google), and `:param name: …` (Sphinx). Everything else is the description.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_SECTION = re.compile(r"(args|arguments|parameters|params):\s*", re.IGNORECASE)
_SPHINX = re.compile(r":param (?:[^:]* )?\*{0,2}(\w+):\s*(.*)")
_SPHINX_TYPE = re.compile(r":(type \w+|rtype):.*")
_GOOGLE = re.compile(r"\*{0,2}(\w+)(?: ?\([^)]*\))?:\s*(.*)")


def parse_docstring(doc: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """The description in a docstring, and those of the parameters with these names."""
    reader = _DocstringReader(names)
    for line in doc.splitlines():
        reader.take(line)
    return "\n".join(reader.words).strip(), reader.parameters


class _DocstringReader:
    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self.words: list[str] = []
        self.parameters: dict[str, str] = {}
        self._last = ""  # the parameter that an indented line continues
        self._section = False
        self._depth = 0  # of the names in the section

    def take(self, line: str) -> None:
        indent = len(line) - len(line.lstrip())
        if self._section and (indent or not line.strip()):
            self._take_in_section(line.strip(), indent)
            return
        self._section = bool(_SECTION.fullmatch(line))
        if self._section:
            self._last, self._depth = "", 0
        elif found := _SPHINX.fullmatch(line):
            self._begin(*found.groups())
        elif _SPHINX_TYPE.fullmatch(line):
            self._last = ""
        else:
            self._take_own_style(line)

    def _take_in_section(self, text: str, indent: int) -> None:
        self._depth = self._depth or indent
        found = _GOOGLE.fullmatch(text) if indent <= self._depth else None
        if found:
            self._begin(*found.groups())
        elif text:
            self._continue(text)

    def _take_own_style(self, line: str) -> None:
        name, colon, rest = line.partition(": ")
        if colon and name in self._names:
            self._begin(name, rest)
        elif self._last and line.startswith("  "):
            self._continue(line)
        else:
            self._last = ""
            self.words.append(line)

    def _begin(self, name: str, text: str) -> None:
        self._last = name if name in self._names else ""
        if self._last:
            self.parameters[name] = text.strip()

    def _continue(self, text: str) -> None:
        if self._last:
            self.parameters[self._last] = f"{self.parameters[self._last]} {text.strip()}".strip()
