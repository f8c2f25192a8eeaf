"""Text that arrives in pieces, and what was made of it: text to show, calls, problems.

A reader of it is a set of states: methods that read on from `_at` and return whether there is more
to do with the text at hand. Text that is undecided stays in `_buf`; it is short, or moved elsewhere
by the state that waits, so that feeding small pieces costs no more than feeding large ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from recollect.codecs.text_tools.argument_coercion import DeclaredTools
from recollect.codecs.text_tools.call_syntax import CallProblem, ParsedCall
from recollect.codecs.wire_protocol import Delta
from recollect.entries import json_text

MAX_PROBLEMS = 8
NOTHING: tuple[Delta, ...] = ()
CHUNK = 4_096  # a long text is read in pieces, so that what is held back is copied rarely


class ScanBuffer:
    def __init__(self, tools: DeclaredTools, begin: Callable[[], bool]) -> None:
        self._tools = tools
        self._problems: list[str] = []
        self._buf, self._at = "", 0  # what is undecided, and how far it was read
        self._final = self._cut = False
        self._state = begin
        self._text: list[str] = []
        self._found: list[Delta] = []
        self._before = ""  # the last character of the text
        self._alone = True  # whether only blanks came on this line

    @property
    def problems(self) -> tuple[str, ...]:
        """What the model must be told: calls that could not be read, and why."""
        return tuple(self._problems)

    def feed(self, text: str) -> Sequence[Delta]:
        for start in range(0, len(text), CHUNK) if len(text) > CHUNK else (0,):
            self._buf = self._buf[self._at :] + text[start : start + CHUNK]
            self._at = 0
            while self._state():
                pass
        return self._news() if self._text or self._found else NOTHING

    def close(self, *, cut: bool = False) -> Sequence[Delta]:
        """The reply is over. `cut`: it did not end by itself, so nothing is completed."""
        self._final, self._cut = True, cut
        while self._state():
            pass
        return self._news()

    def _news(self) -> Sequence[Delta]:
        if self._text:
            self._found.append(Delta("text", "".join(self._text)))
            self._text = []
        found, self._found = self._found, []
        return found

    def _say(self, text: str) -> None:
        if text:
            self._text.append(text)
            self._before = text[-1]
            if self._alone and not text.isspace():
                self._alone = False

    def _say_to(self, end: int) -> None:
        self._say(self._buf[self._at : end])
        self._at = end

    def _go(self, state: Callable[[], bool]) -> bool:
        self._state = state
        return True

    def _waits(self, at: int) -> bool:
        """Whether the text ends here and more may come."""
        return at == len(self._buf) and not self._final

    def _past_spaces(self, at: int) -> int:
        end = min(len(self._buf), at + 64)
        while at < end and self._buf[at] in " \t\r\n":
            at += 1
        return at

    def _give(self, calls: Sequence[ParsedCall]) -> None:
        if self._text:
            self._found.append(Delta("text", "".join(self._text)))
            self._text = []
        for name, arguments in calls:
            fitted = self._tools.fit(name, arguments)
            self._found.append(Delta("call", json_text(fitted), name))
        self._before, self._alone = "", False

    def _complain(self, problem: CallProblem) -> None:
        if problem.text and len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem.text)
