"""Text that arrives in chunks, and what was made of it: text to show, calls, problems.

A scanner over it is a set of states: methods that read on from `_at` and return whether there is
more to do with the text at hand. Undecided text stays in `_buf`; it is short, or moved elsewhere by
the state that waits, so that feeding small chunks costs no more than feeding large ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from recollect.codecs.text_tools.argument_coercion import DeclaredTools
from recollect.codecs.text_tools.call_syntax import CallProblem, ParsedCall
from recollect.codecs.wire_protocol import NO_DELTAS, Delta
from recollect.entries import json_text

MAX_PROBLEMS = 8
CHUNK = 4_096  # a long text is read in pieces, so that the undecided rest is copied rarely


class ScanBuffer:
    def __init__(self, tools: DeclaredTools, begin: Callable[[], bool]) -> None:
        self._tools = tools
        self._problems: list[str] = []
        self._buf, self._at = "", 0  # the undecided text, and how far it was read
        self._final = self._cut = False
        self._state = begin
        self._text: list[str] = []
        self._found: list[Delta] = []
        self._before = ""  # the last character of the text
        self._alone = True  # whether the line has only blanks so far

    @property
    def problems(self) -> tuple[str, ...]:
        """Calls that could not be parsed, and why; the model is told of them."""
        return tuple(self._problems)

    def feed(self, text: str) -> Sequence[Delta]:
        for start in range(0, len(text), CHUNK) if len(text) > CHUNK else (0,):
            self._buf = self._buf[self._at :] + text[start : start + CHUNK]
            self._at = 0
            while self._state():
                pass
        return self._take_new() if self._text or self._found else NO_DELTAS

    def close(self, *, cut: bool = False) -> Sequence[Delta]:
        """The reply has ended. `cut`: it was cut off, so nothing is completed."""
        self._final, self._cut = True, cut
        while self._state():
            pass
        return self._take_new()

    def _take_new(self) -> Sequence[Delta]:
        if self._text:
            self._found.append(Delta("text", "".join(self._text)))
            self._text = []
        found, self._found = self._found, []
        return found

    def _emit(self, text: str) -> None:
        if text:
            self._text.append(text)
            self._before = text[-1]
            if self._alone and not text.isspace():
                self._alone = False

    def _emit_to(self, end: int) -> None:
        self._emit(self._buf[self._at : end])
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

    def _emit_calls(self, calls: Sequence[ParsedCall]) -> None:
        if self._text:
            self._found.append(Delta("text", "".join(self._text)))
            self._text = []
        for name, arguments in calls:
            fitted = self._tools.fit(name, arguments)
            self._found.append(Delta("call", json_text(fitted), name))
        self._before, self._alone = "", False

    def _add_problem(self, problem: CallProblem) -> None:
        if problem.text and len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem.text)
