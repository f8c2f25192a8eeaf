"""Reads a sed script and says whether it only edits the text that passes through.

The scanner goes over the script once, from left to right, and never back: the time is linear in the
length whatever the script is. What it does not know (`e`, `w`, `r`, other delimiters) is not edits.
"""

from __future__ import annotations

_SED_LETTERS = frozenset("pdqQ=DGHPNnhgxlFz}")
_SED_FLAGS = frozenset("gpiImM0123456789")


class _SedScanner:
    """Reads a script command by command; `problem` is set at the first thing it does not know."""

    def __init__(self, script: str) -> None:
        self.text, self.at, self.problem = script, 0, False

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self, characters: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in characters:
            self.at += 1

    def scan(self) -> bool:
        while not self.problem:
            self.skip(" \t;\n")
            if self.at >= len(self.text):
                return True
            self._scan_command()
        return False

    def _scan_command(self) -> None:
        if self._scan_address():
            self.skip(" ")
            if self.peek() == ",":
                self.at += 1
                self.skip(" ")
                if self.peek() in ("+", "~") and self.peek():
                    self.at += 1
                if not self._scan_address():
                    self.problem = True
        self.skip(" !")
        letter = self.peek()
        self.at += 1
        if letter in ("s", "y") and letter:
            self._scan_replacement(letter)
        elif letter == "{":
            return
        elif letter in ("b", "t", "T", ":") and letter:
            self._skip_label()
            return
        elif letter in ("a", "i", "c") and letter:
            self._skip_text()
            return
        elif letter not in _SED_LETTERS or not letter:
            self.problem = True
        self._end_command()

    def _end_command(self) -> None:
        self.skip(" \t0123456789" if self.text[self.at - 1 : self.at] in ("q", "Q", "l") else " \t")
        if self.at < len(self.text) and self.text[self.at] not in ";\n}":
            self.problem = True

    def _skip_label(self) -> None:
        self.skip(" ")
        while self.at < len(self.text) and (self.text[self.at].isalnum() or self.peek() == "_"):
            self.at += 1
        self._end_command()

    def _skip_text(self) -> None:
        """The text of `a`, `i` and `c` goes to the end of the line, or on after a backslash."""
        while self.at < len(self.text) and self.text[self.at] != "\n":
            self.at += 2 if self.text[self.at] == "\\" else 1

    def _scan_address(self) -> bool:
        first = self.peek()
        if first.isdecimal() and first:
            self.skip("0123456789")
            if self.peek() == "~":
                self.at += 1
                self.skip("0123456789")
        elif first == "$":
            self.at += 1
        elif first == "/":
            self.at += 1
            self._skip_pattern("/")
            self.skip("I")
        else:
            return False
        return True

    def _skip_pattern(self, delimiter: str) -> None:
        """To the delimiter. Versions differ on whether one in brackets ends a pattern, and on a
        backslash there, so neither is accepted."""
        while self.at < len(self.text):
            character = self.text[self.at]
            self.at += 1
            if character == delimiter:
                return
            if character == "\n":
                break
            if character == "\\":
                if self.peek() in ("\n", ""):
                    break
                self.at += 1
            elif character == "[" and not self._skip_bracket(delimiter):
                break
        self.problem = True

    def _skip_bracket(self, delimiter: str) -> bool:
        if self.peek() == "^":
            self.at += 1
        if self.peek() == "]":
            self.at += 1
        while self.at < len(self.text):
            character = self.text[self.at]
            self.at += 1
            if character in (delimiter, "\\", "\n"):
                return False
            if character == "[" and self.peek() in (".", "="):
                return False
            if character == "[" and self.peek() == ":":
                close = self.text.find(":]", self.at)
                if close < 0 or not self.text[self.at + 1 : close].isalpha():
                    return False
                self.at = close + 2
            if character == "]":
                return True
        return False

    def _scan_replacement(self, letter: str) -> None:
        delimiter = self.peek()
        self.at += 1
        if not delimiter or delimiter not in "/|#,:@%!_+~":
            self.problem = True
            return
        self._skip_pattern(delimiter)
        while not self.problem and self.at < len(self.text) and self.peek() != delimiter:
            if self.text[self.at] == "\\":
                self.at += 1
            self.at += 1
        if self.problem or self.at >= len(self.text):
            self.problem = True
            return
        self.at += 1
        while letter == "s" and self.at < len(self.text) and self.peek() in _SED_FLAGS:
            self.at += 1


def only_edits(script: str) -> bool:
    return _SedScanner(script).scan()
