"""The states that read `<function=N><parameter=K>…</parameter></function>`, whose values are text.

Nothing is escaped in a value, so it may quote the very tags that end it. Two things tell: inner
calls are counted, and a closing tag of a parameter that follows the call belongs to a parameter
that had not ended. In both cases it is uncertain what the value is, and the call does not run.
Therefore a call is held until the next call begins or the text ends.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Literal, TypeAlias

from recollect.codecs.text_tools.argument_coercion import DeclaredTools
from recollect.codecs.text_tools.call_boundaries import function_at, past_spaces
from recollect.codecs.text_tools.call_buffer import CallBuffer
from recollect.codecs.text_tools.call_syntax import (
    NO_CALL,
    CallProblem,
    ParsedCall,
    not_run,
    parse_function_call,
)

MAX_HELD = 4_000_000  # characters of one call
END_FUNCTION = "</function>"
CallPlace: TypeAlias = Literal["fence", "tag", "inline", "lines"]
_CUT_OFF = "it was cut off before its end"
_MARK = re.compile(r"<function=|</function>")
_NEXT = re.compile(r"</parameter>|<function=|<tool_call>")
_MARK_BEGUN = re.compile(r"<[/a-z_]{0,11}\Z")


class FunctionStates(CallBuffer):
    def __init__(self, tools: DeclaredTools) -> None:
        super().__init__(tools)
        self._fence = ""
        self._opening = ""  # the text before the candidate: a fence, a tag
        self._held: list[str] = []
        self._place: CallPlace = "inline"
        self._example = False  # the text announced the candidate as an example
        self._function, self._function_size, self._function_depth = "", 0, 0
        self._function_text = ""  # of a whole function that is held
        self._function_call = ParsedCall("", {})

    @abstractmethod
    def _inline(self) -> bool: ...

    @abstractmethod
    def _after_call(self) -> bool: ...

    @abstractmethod
    def _after_failed(self) -> bool: ...

    def _begin_function(self, opening: str) -> bool:
        found = function_at(self._buf, self._at, final=self._final)
        assert found
        self._function, start = found
        self._opening = opening + self._buf[self._at : start]
        self._function_size, self._function_depth = 0, 1
        self._place = "tag" if "<tool_call>" in opening else "fence" if self._fence else "inline"
        self._at = start
        return self._go(self._in_function)

    def _see_mentioned_function(self) -> None:
        """A declared function without parameters and end: a call, unless it is in a sentence."""
        found = function_at(self._buf, self._at, final=self._final)
        if found and self._alone:
            over = self._cut and past_spaces(self._buf, found[1]) == len(self._buf)
            why = _CUT_OFF if over else "<parameter=…> is expected next"
            self._add_problem(not_run(found[0], why))

    def _in_function(self) -> bool:
        """Up to its own closing tag: the tags of calls that a value quotes are counted."""
        buf, begun = self._buf, self._at
        for mark in _MARK.finditer(buf, begun):
            self._function_depth += 1 if mark[0] != END_FUNCTION else -1
            self._at = mark.end()
            if not self._function_depth:
                self._held.append(buf[begun : mark.start()])
                return self._end_function(END_FUNCTION)
        if not self._final:
            self._hold_decided(begun)
            self._function_size += self._at - begun
            return self._function_size > MAX_HELD and self._end_function("")
        self._at = len(buf)
        self._held.append(buf[begun:])
        return self._end_function("")

    def _end_function(self, closing: str) -> bool:
        body, self._held = "".join(self._held), []
        name, text = self._function, self._opening + body + closing
        outcome: ParsedCall | CallProblem
        if self._example:
            outcome = NO_CALL
        elif closing or (self._final and not self._cut):
            outcome = parse_function_call(name, body, self._tools)
        elif self._final:
            outcome = not_run(name, _CUT_OFF)
        else:
            outcome = not_run(name, f"it is longer than {MAX_HELD:,} characters")
        self._example, self._opening = False, ""
        if isinstance(outcome, CallProblem):
            return self._fail_function(outcome, text)
        self._function_text, self._function_call = text, outcome
        return self._go(self._after_function)

    def _after_function(self) -> bool:
        """Hold the call until what follows shows that its last value was whole."""
        buf, begun = self._buf, self._at
        found = _NEXT.search(buf, begun)
        if found is None and not self._final:
            self._hold_decided(begun)
            return False
        text, self._function_text = self._function_text, ""
        held, self._held = self._held, []
        self._read_again(held, begun)
        if found and found[0] == "</parameter>":
            why = "a value holds a closing tag; write this call as a block of JSON"
            return self._fail_function(not_run(self._function, why), text)
        self._emit_calls((self._function_call,))
        return self._go(self._after_call)

    def _hold_decided(self, begun: int) -> None:
        """Hold the text up to what may be the beginning of a tag."""
        partial = _MARK_BEGUN.search(self._buf, max(self._at, len(self._buf) - len("</parameter>")))
        self._at = partial.start() if partial else len(self._buf)
        self._held.append(self._buf[begun : self._at])

    def _fail_function(self, problem: CallProblem, text: str) -> bool:
        self._add_problem(problem)
        self._emit(text)
        return self._go(self._after_failed if self._fence else self._inline)
