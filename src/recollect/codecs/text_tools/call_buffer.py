"""Text that arrives in chunks, and what was made of it so far: text, calls, problems.

A state is a method that reads on from `_at` and returns whether there is more to do with the text
at hand. Undecided text stays in `_buf`; it is short, or moved elsewhere by the state that waits, so
that feeding small chunks costs no more than feeding large ones.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from recollect.codecs.text_tools.argument_coercion import DeclaredTools
from recollect.codecs.text_tools.call_syntax import CallProblem, ParsedCall, describe_cut
from recollect.codecs.wire_protocol import NO_DELTAS, Delta
from recollect.entries import json_text

MAX_PROBLEMS = 8
CHUNK = 4_096  # a long text is read in pieces, so that the undecided rest is copied rarely
RECENT = 400  # characters of the text before a call that may announce it as an example
_MARKS = ('{"tool_call":', "{'tool_call':", "<tool_call>", "<function=")
_BEGUN = re.compile(
    r"(?:\{\s{0,64}[\"'][a-z_]{1,9}[\"']?\s{0,64}|<[a-z_]{2,9}|<function=[^>\s]{0,100})\Z"
)


class CallBuffer(ABC):
    def __init__(self, tools: DeclaredTools) -> None:
        self._tools = tools
        self._problems: list[str] = []
        self._buf, self._at = "", 0  # the undecided text, and how far it was read
        self._waiting: list[str] = []  # the text after it, in chunks, the next one last
        self._over = self._cut = False
        self._state: Callable[[], bool] = self._line_start
        self._text: list[str] = []
        self._found: list[Delta] = []
        self._before = ""  # the last character of the text
        self._recent = ""  # the end of the text since the last call
        self._alone = True  # whether the line has only blanks so far

    @property
    def problems(self) -> tuple[str, ...]:
        """Calls that were meant and do not run, and why; the model is told of them."""
        return tuple(self._problems)

    def feed(self, text: str) -> Sequence[Delta]:
        self._read_on(text)
        return self._take_new() if self._text or self._found else NO_DELTAS

    def close(self, *, cut: bool = False) -> Sequence[Delta]:
        """The reply has ended. `cut`: it was cut off, so nothing is completed."""
        known = len(self._problems)
        self._over, self._cut = True, cut
        self._read_on("")
        unknown = cut and len(self._problems) == known and self._is_in_text()
        if unknown and is_begun_mark(self._recent):
            self._add_problem(describe_cut(""))
        return self._take_new()

    @property
    def _final(self) -> bool:
        """Whether nothing follows the text in `_buf`."""
        return self._over and not self._waiting

    def _read_on(self, text: str) -> None:
        self._waiting += [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)][::-1]
        while True:
            if self._waiting:
                self._buf = self._buf[self._at :] + self._waiting.pop()
                self._at = 0
            while self._state():
                pass
            if not self._waiting:
                return

    def _read_again(self, held: list[str], at: int) -> None:
        """Continue with text that was held, and after it with the text from `at` on."""
        text = "".join(held) + self._buf[at:]
        self._waiting += [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)][::-1]
        self._buf, self._at = self._waiting.pop() if self._waiting else "", 0

    @abstractmethod
    def _line_start(self) -> bool: ...

    @abstractmethod
    def _is_in_text(self) -> bool:
        """Whether a call may begin here: not in code, not in a quotation."""

    def _take_new(self) -> Sequence[Delta]:
        self._flush_text()
        found, self._found = self._found, []
        return found

    def _flush_text(self) -> None:
        if self._text:
            self._found.append(Delta("text", "".join(self._text)))
            self._text = []

    def _emit(self, text: str) -> None:
        if text:
            self._text.append(text)
            self._before = text[-1]
            self._recent = (self._recent + text[-RECENT:])[-RECENT:]
            if self._alone and not text.isspace():
                self._alone = False

    def _emit_to(self, end: int) -> None:
        self._emit(self._buf[self._at : end])
        self._at = end

    def _emit_calls(self, outcomes: Sequence[ParsedCall | CallProblem]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, CallProblem):
                self._add_problem(outcome)
                self._emit(outcome.source)
                continue
            self._flush_text()
            self._found.append(Delta("call", json_text(outcome.arguments), outcome.name))
            self._before, self._alone, self._recent = "", False, ""

    def _add_problems(self, outcomes: Sequence[ParsedCall | CallProblem]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, CallProblem):
                self._add_problem(outcome)

    def _add_problem(self, problem: CallProblem) -> None:
        if problem.text and len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem.text)

    def _go(self, state: Callable[[], bool]) -> bool:
        self._state = state
        return True

    def _waits(self, at: int) -> bool:
        """Whether the text ends here and more may come."""
        return at == len(self._buf) and not self._final


def is_begun_mark(text: str) -> bool:
    """Whether the text ends within the mark that a call begins with."""
    begun = _BEGUN.search(text, max(0, len(text) - RECENT))
    return begun is not None and any(mark.startswith(_compact(begun[0])) for mark in _MARKS)


def _compact(text: str) -> str:
    return "<function=" if text.startswith("<function=") else "".join(text.split())
