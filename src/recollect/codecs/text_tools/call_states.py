"""Text that arrives in chunks, and the states that read something which may turn out to be a call.

A state is a method that reads on from `_at` and returns whether there is more to do with the text
at hand. Undecided text stays in `_buf`; it is short, or moved elsewhere by the state that waits, so
that feeding small chunks costs no more than feeding large ones. A candidate is held until it ends.
Then it becomes calls, or text with a problem for the model, or plain text; nothing is read twice.
A broken object in a fence or a tag continues to the mark that closes it. A call that was cut off in
the middle of a string is never completed.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from recollect.codecs.text_tools.argument_coercion import DeclaredTools
from recollect.codecs.text_tools.call_boundaries import (
    CLOSING,
    CUT,
    JsonObjectScanner,
    MaybeStart,
    ObjectEnding,
    begins,
    function_at,
    is_call_object,
    past_spaces,
)
from recollect.codecs.text_tools.call_syntax import (
    NO_CALL,
    CallProblem,
    ParsedCall,
    ParseOutcome,
    parse_calls,
    parse_function_call,
)
from recollect.codecs.text_tools.lenient_json import JsonRepairer, parse_strict
from recollect.codecs.wire_protocol import NO_DELTAS, Delta
from recollect.entries import json_text
from recollect.json_depth import MAX_DEPTH

MAX_PROBLEMS = 8
CHUNK = 4_096  # a long text is read in pieces, so that the undecided rest is copied rarely
MAX_HELD = 4_000_000  # characters of one call
END_TAG = "</tool_call>"
END_FUNCTION = "</function>"
CallPlace: TypeAlias = Literal["fence", "tag", "inline", "lines"]
_NAMED = re.compile(r"tool_call|[\"']name[\"']")
_REST_OF_LINE = re.compile(r"[ \t\r]{0,64}")
_NEXT_FENCE = re.compile(
    r"(?:\A|\n)[ \t]{0,40}(`{3,50}|~{3,50})(?:json|tool_calls?|tool_code)?[ \t\r]{0,40}\n\Z"
)


class CallStates(ABC):
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
        self._repairer = JsonRepairer()
        self._fence = ""
        self._opening = ""  # the text before the object: a fence, a tag
        self._held: list[str] = []
        self._place: CallPlace = "inline"
        self._function, self._function_size = "", 0
        self._object = JsonObjectScanner("", tools.names)

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

    def _emit_calls(self, calls: Sequence[ParsedCall]) -> None:
        self._flush_text()
        for name, arguments in calls:
            fitted = self._tools.fit(name, arguments)
            self._found.append(Delta("call", json_text(fitted), name))
        self._before, self._alone = "", False

    def _add_problem(self, problem: CallProblem) -> None:
        if problem.text and len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem.text)

    @abstractmethod
    def _line_start(self) -> bool: ...

    @abstractmethod
    def _inline(self) -> bool: ...

    @abstractmethod
    def _code_from(self, head: str) -> bool: ...

    def _tag_at(self, at: int) -> MaybeStart[str]:
        tag = begins(self._buf, at, "<tool_call>", final=self._final)
        if tag is not False:
            return "tag" if tag else None
        name = function_at(self._buf, at, final=self._final)
        if name is None:
            return None
        return "function" if name and name[0] in self._tools.names else ""

    def _in_fence(self) -> bool:
        return self._open_candidate("fence")

    def _in_tag(self) -> bool:
        return self._open_candidate("tag")

    def _open_candidate(self, place: CallPlace) -> bool:
        """After a fence or a tag: the first character decides whether a call may be in it."""
        buf, at = self._buf, self._at
        end = past_spaces(buf, at)
        if self._waits(end):
            return False
        first = buf[end : end + 1]
        if first in ("{", "["):
            self._opening += buf[at:end]
            self._at = end
            return self._begin_object(place)
        if first == "<":
            kind = self._tag_at(end)
            if kind is None:
                return False
            self._opening += buf[at:end]
            self._at = end
            if kind == "function":
                return self._begin_function(self._opening)
            if kind == "tag" and place == "fence":
                self._opening += "<tool_call>"
                self._at = end + len("<tool_call>")
                return self._go(self._in_tag)
        self._emit(self._opening)
        return self._code_from("") if self._fence else self._go(self._inline)

    def _begin_object(self, place: CallPlace) -> bool:
        self._place = place
        self._object = JsonObjectScanner(self._fence, self._tools.names, tagged=place == "tag")
        return self._go(self._in_object)

    def _in_object(self) -> bool:
        ending, self._at = self._object.read(self._buf, self._at, final=self._final)
        if self._object.size > MAX_HELD:
            problem = CallProblem(f"a call is longer than {MAX_HELD:,} characters")
            return self._settle(problem, "whole", self._object.text())
        if ending is None:
            return False
        if ending == "whole" and self._place == "inline":
            return self._go(self._after_inline)
        return self._end_object(ending)

    def _after_inline(self) -> bool:
        """A bare object is a call only if nothing else is on its last line."""
        text = self._object.text()
        if is_call_object(text):
            return self._end_object("whole")
        end = past_spaces(self._buf, self._at)
        if self._waits(end):
            return False
        blank = self._buf[self._at : end]
        if "\n" in blank or (end == len(self._buf) and self._final):
            return self._end_object("whole")
        return self._settle(NO_CALL, "whole", text)

    def _end_object(self, ending: ObjectEnding) -> bool:
        body = self._object
        text = body.text()
        if ending == "whole":
            value = parse_strict(text) if body.deepest <= MAX_DEPTH else None
            if value is None and self._place in ("fence", "tag"):
                body.continue_broken()
                return self._go(self._in_object)
            outcome = self._interpret(text) if value is None else self._parse(value)
            return self._settle(outcome, ending, text)
        if ending == CUT and (self._cut or (body.in_string and body.fallback < 0)):
            # half a text must not be written to a file as if it were complete
            meant = self._place in ("tag", "lines") or is_call_object(text)
            cut_off = CallProblem("a call was cut off before its end") if meant else NO_CALL
            return self._settle(cut_off, ending, text)
        kept = text[: body.fallback] if body.fallback >= 0 else text
        if ending == "stopped" and kept is text:
            kept = text[:-200] + _NEXT_FENCE.sub("\n", text[-200:])
        return self._settle(self._interpret(kept), ending, text)

    def _interpret(self, text: str) -> ParseOutcome:
        meant = self._place in ("tag", "lines") or is_call_object(text)
        if not meant and not _NAMED.search(text):
            return NO_CALL  # other JSON, or a program
        value = self._repairer.read(text)
        if value is not None:
            return self._parse(value)
        return CallProblem("a call is no JSON that can be read") if meant else NO_CALL

    def _parse(self, value: object) -> ParseOutcome:
        if self._place == "lines":
            name = self._opening.split("\n", 1)[0].partition(":")[2].strip()
            value = {"tool_call": {"name": name, "arguments": value}}
        return parse_calls(value, self._tools.names, self._repairer)

    def _settle(self, outcome: ParseOutcome, ending: ObjectEnding, text: str) -> bool:
        """Return the calls, or the text that was none, and continue after it."""
        fallback = self._object.fallback if ending != "whole" else -1
        after = _skip_closing_mark(text[fallback:]) if fallback >= 0 else ""
        rest, self._opening = self._opening + text, ""
        self._object = JsonObjectScanner("", self._tools.names)
        if isinstance(outcome, CallProblem):
            self._add_problem(outcome)
        else:
            self._emit_calls(outcome)
            rest = after
        if ending == "stopped":
            return self._continue_at_next(rest, after if fallback >= 0 else text)
        self._emit(rest)
        if not isinstance(outcome, CallProblem):
            return self._go(self._after_call)
        if self._fence:
            return self._code_from("" if ending == "closed" else "x")
        return self._go(self._inline)

    def _continue_at_next(self, rest: str, before: str) -> bool:
        """The next call has begun; its fence may have been read already."""
        fence = _NEXT_FENCE.search(before, max(0, len(before) - 200))
        self._fence = fence[1] if fence else ""
        self._opening = fence[0].lstrip("\n") if fence else ""
        self._emit(rest.removesuffix(self._opening))
        return self._go(self._in_fence if fence else self._line_start)

    def _after_call(self) -> bool:
        """Closing marks belong to the call; a fence may hold more calls."""
        buf, at = self._buf, self._at
        if self._place == "tag":
            end = past_spaces(buf, at)
            tag = begins(buf, end, END_TAG, final=self._final)
            if tag is None:
                return False
            if tag:
                self._at = end + len(END_TAG)
            self._place = "fence" if self._fence else "inline"
            return True
        if self._place == "fence":
            return self._after_fenced()
        return self._go(self._inline)

    def _after_fenced(self) -> bool:
        buf, at = self._buf, self._at
        end = past_spaces(buf, at)
        if buf[end : end + 1] == ",":
            end = past_spaces(self._buf, end + 1)
        if self._waits(end):
            return False
        first = buf[end : end + 1]
        if first == "{":
            self._at = end
            return self._begin_object("fence")
        if first == "<":
            return self._go(self._in_fence)
        if first != self._fence[0]:
            return self._code_from("x")
        marks = buf[end : end + 64]
        stop = end + len(marks) - len(marks.lstrip(first))
        if self._waits(stop):
            return False
        if stop - end == 2 * len(self._fence):  # one fence closes, the next opens on the same line
            self._at, self._fence = end + len(self._fence), ""
            return self._go(self._line_start)
        if stop - end < len(self._fence):
            return self._code_from("x")
        self._at, self._fence = stop, ""
        return self._go(self._after_closing)

    def _after_closing(self) -> bool:
        """The line end of a closing fence is part of it."""
        found = _REST_OF_LINE.match(self._buf, self._at)
        end = found.end() if found else self._at
        if self._waits(end):
            return False
        if self._buf[end : end + 1] == "\n":
            self._at = end + 1
            return self._go(self._line_start)
        return self._go(self._inline)

    def _begin_function(self, opening: str) -> bool:
        found = function_at(self._buf, self._at, final=self._final)
        assert found
        self._function, start = found
        self._opening = opening + self._buf[self._at : start]
        self._function_size = 0
        self._place = "tag" if "<tool_call>" in opening else "fence" if self._fence else "inline"
        self._at = start
        return self._go(self._in_function)

    def _in_function(self) -> bool:
        buf, at = self._buf, self._at
        end = buf.find(END_FUNCTION, at)
        if end < 0 and not self._final and self._function_size < MAX_HELD:
            keep = max(at, len(buf) - len(END_FUNCTION) + 1)
            self._held.append(buf[at:keep])
            self._function_size += keep - at
            self._at = keep
            return False
        stop = end if end >= 0 else len(buf)
        self._held.append(buf[at:stop])
        body, self._held = "".join(self._held), []
        self._at = stop if end < 0 else stop + len(END_FUNCTION)
        if end < 0 and (self._cut or not self._final):
            outcome: ParseOutcome = CallProblem("a call was cut off before its end")
        else:
            outcome = parse_function_call(self._function, body)
        if isinstance(outcome, CallProblem):
            self._add_problem(outcome)
            self._emit(self._opening + body + (END_FUNCTION if end >= 0 else ""))
            return self._code_from("x") if self._fence else self._go(self._inline)
        self._emit_calls(outcome)
        return self._go(self._after_call)


def _skip_closing_mark(text: str) -> str:
    """The text without the closing fence or tag at its beginning."""
    closing = CLOSING.match(text)
    return text[closing.end() :] if closing else text.removeprefix(END_TAG)
