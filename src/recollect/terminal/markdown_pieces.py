"""Splits Markdown, while it arrives, into pieces that can be rendered one by one.

A piece ends at a blank line outside fenced code and outside a list that goes on, or where it gets
long. What was settled is never looked at again, so a reply costs what its characters cost, however
it arrives, and only its last piece is rendered anew.
"""

from __future__ import annotations

import re
from copy import copy
from typing import Literal, NamedTuple

MAX_PIECE = 4_000  # characters that are rendered at once
MAX_CODE_LINES = 80
_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})([^`\n]*)$")
_NESTED_FENCE = re.compile(r" *(`{3,}|~{3,})")
_LIST = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")


class MarkdownPiece(NamedTuple):
    kind: Literal["prose", "code"]
    text: str
    language: str = ""
    ends: bool = True  # code that goes on in the next piece does not end with this one


class MarkdownSplitter:
    """`pieces` are settled; `tail` is what the rest would be if nothing more came."""

    def __init__(self) -> None:
        self.pieces: list[MarkdownPiece] = []
        self._lines: list[str] = []
        self._size = 0
        self._rest = ""  # of a line that has not ended
        self._fence = ""  # that closes the code we are in
        self._nested = ""  # the same of code in a list
        self._language = ""
        self._blank = False  # the line before was blank

    def feed(self, text: str) -> None:
        first, *others = text.split("\n")
        self._rest += first
        for line in others:
            self._add_line(self._rest.removesuffix("\r"))
            self._rest = line
        while len(self._rest) > MAX_PIECE:
            line, self._rest = self._cut_line(self._rest)
            self._lines.append(line)
            self._flush(ends=False)

    def tail(self) -> list[MarkdownPiece]:
        ended = copy(self)
        ended.pieces, ended._lines = [], [*self._lines]
        rest = self._rest.strip(" ")
        if rest and not (self._fence and self._fence.startswith(rest)):  # that closes it comes
            ended._add_line(self._rest)
        ended._flush()
        return ended.pieces

    @staticmethod
    def _cut_line(line: str) -> tuple[str, str]:
        at = line.rfind(" ", MAX_PIECE // 2, MAX_PIECE)
        at = MAX_PIECE if at < 0 else at + 1
        return line[:at], line[at:]

    def _add_line(self, line: str) -> None:
        if self._fence:
            self._add_code(line)
            return
        if self._nested:
            found = _NESTED_FENCE.match(line)
            if found and found[1].startswith(self._nested) and not line[found.end() :].strip():
                self._nested = ""
            self._append(line)
            return
        if not line.strip():
            self._blank = bool(self._lines)
            return
        in_list = bool(self._lines) and _LIST.match(self._lines[0]) is not None
        indented = line.startswith(("  ", "\t"))
        if self._blank:
            if in_list and indented:
                self._append("")
            else:
                self._flush()
            self._blank = False
        if found := _FENCE.match(line):
            if in_list and indented:
                self._nested = found[2]
            else:
                self._flush()
                self._fence, self._language = found[2], found[3].strip()[:40]
                return
        elif in_list and indented and (nested := _NESTED_FENCE.match(line)):
            self._nested = nested[1]
        self._append(line)

    def _add_code(self, line: str) -> None:
        found = _FENCE.match(line)
        if found and found[2].startswith(self._fence) and not found[3].strip():
            self._flush()
            self._fence = ""
        else:
            self._append(line)

    def _append(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        if self._size > MAX_PIECE or len(self._lines) > MAX_CODE_LINES:
            self._flush(ends=False)
            self._nested = ""

    def _flush(self, *, ends: bool = True) -> None:
        if self._fence:
            self.pieces.append(
                MarkdownPiece("code", "\n".join(self._lines), self._language, ends=ends)
            )
        elif any(line.strip() for line in self._lines):
            self.pieces.append(MarkdownPiece("prose", "\n".join(self._lines), ends=ends))
        self._lines.clear()
        self._size, self._blank = 0, False


def split_markdown(text: str) -> list[MarkdownPiece]:
    splitter = MarkdownSplitter()
    splitter.feed(text)
    return [*splitter.pieces, *splitter.tail()]
