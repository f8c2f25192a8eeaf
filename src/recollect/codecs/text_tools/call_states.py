"""The states that read something which may turn out to be a call.

A candidate is held until it ends. Then it becomes calls, or text with a problem for the model, or
plain text; nothing is read twice. A broken object in a fence or a tag continues to the mark that
closes it if it is uncertain where one of its strings ends. Missing closing brackets are added only
where something says that the object is over: a closing fence or tag, the next call, the end of a
reply that was not cut off. An object that its own brackets end must be readable as it is.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Any

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
from recollect.codecs.text_tools.call_buffer import is_begun_mark
from recollect.codecs.text_tools.call_syntax import (
    NO_CALL,
    CallProblem,
    ParsedCall,
    ParseOutcome,
    describe_cut,
    describe_damage,
    is_begun_bare_call,
    not_run,
    parse_calls,
)
from recollect.codecs.text_tools.function_states import (
    END_FUNCTION,
    MAX_HELD,
    CallPlace,
    FunctionStates,
)
from recollect.codecs.text_tools.lenient_json import JsonDamage, JsonRepairer, parse_strict
from recollect.json_depth import MAX_DEPTH

END_TAG = "</tool_call>"
_NAMED = re.compile(r"tool_call|[\"']name[\"']")
_REST_OF_LINE = re.compile(r"[ \t\r]{0,64}")
_NEXT_FENCE = re.compile(
    r"(?:\A|\n)[ \t]{0,40}(`{3,50}|~{3,50})(?:json|tool_calls?|tool_code)?[ \t\r]{0,40}\n\Z"
)
_NEEDS_JSON = 'after <tool_call>, {"name": …, "arguments": {…}} is expected'


class CallStates(FunctionStates):
    def __init__(self, tools: DeclaredTools) -> None:
        super().__init__(tools)
        self._repairer = JsonRepairer()
        self._object = JsonObjectScanner("", tools.names)

    @abstractmethod
    def _code_from(self, head: str) -> bool: ...

    def _tag_at(self, at: int) -> MaybeStart[str]:
        tag = begins(self._buf, at, "<tool_call>", final=self._final)
        if tag is not False:
            return "tag" if tag else None
        found = function_at(self._buf, at, final=self._final)
        if not found:
            return None if found is None else ""
        start = past_spaces(self._buf, found[1])
        for word in ("<parameter=", END_FUNCTION, "{"):
            follows = begins(self._buf, start, word, final=self._final)
            if follows is not False:
                return None if follows is None else "function"
        return "mentioned" if found[0] in self._tools.names else ""

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
        kind: MaybeStart[str] = ""
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
            if kind == "mentioned":
                self._see_mentioned_function()
            if kind == "tag" and place == "fence":
                self._opening += "<tool_call>"
                self._at = end + len("<tool_call>")
                return self._go(self._in_tag)
        elsewhere = not self._alone or self._example or kind == "mentioned"
        if self._final and self._cut and is_begun_mark(buf[end:]):
            self._add_problem(describe_cut(""))
        elif place == "tag" and not elsewhere:  # in a sentence the tag would only be mentioned
            cut = self._cut and not first
            self._add_problem(describe_cut("") if cut else not_run("", _NEEDS_JSON))
        self._example = False
        self._emit(self._opening)
        return self._code_from("") if self._fence else self._go(self._inline)

    def _begin_object(self, place: CallPlace) -> bool:
        self._place = place
        self._object = JsonObjectScanner(self._fence, self._tools.names, tagged=place == "tag")
        return self._go(self._in_object)

    def _in_object(self) -> bool:
        ending, self._at = self._object.read(self._buf, self._at, final=self._final)
        if self._object.size > MAX_HELD:
            problem = not_run("", f"it is longer than {MAX_HELD:,} characters")
            return self._settle((problem,), "whole", self._object.text())
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
        return self._settle((NO_CALL,), "whole", text)

    def _end_object(self, ending: ObjectEnding) -> bool:
        body = self._object
        text = kept = body.text()
        if ending == CUT and self._cut:
            # half a text must not be written to a file as if it were complete
            return self._settle((self._describe_cut(text),), ending, text)
        if ending != "whole" and body.fallback >= 0:
            kept = text[: body.fallback]
        elif ending == "stopped":
            kept = text[:-200] + _NEXT_FENCE.sub("\n", text[-200:])
        value = self._read(kept, complete=ending != "whole")
        if isinstance(value, JsonDamage):
            if ending == "whole" and value.in_string and self._place in ("fence", "tag"):
                body.continue_broken()
                return self._go(self._in_object)
            meant = self._is_meant(text)
            return self._settle((describe_damage(text, value) if meant else NO_CALL,), ending, text)
        return self._settle(self._parse(value), ending, text)

    def _read(self, text: str, *, complete: bool) -> Any:
        if self._is_meant(text) or _NAMED.search(text):
            return self._repairer.read(text, complete=complete)
        value = parse_strict(text) if self._object.deepest <= MAX_DEPTH else None
        return JsonDamage("") if value is None else value  # other JSON, or a program

    def _is_meant(self, text: str) -> bool:
        """Whether an object that may be unreadable was certainly meant as a call."""
        if self._place in ("tag", "lines") or is_call_object(text):
            return True
        return is_begun_bare_call(text, self._tools.names)

    def _describe_cut(self, text: str) -> CallProblem:
        if self._place == "lines":
            return not_run(self._named_on_line(), "it was cut off before its end")
        meant = self._is_meant(text) or is_begun_mark(text)
        return describe_cut(text) if meant else NO_CALL

    def _named_on_line(self) -> str:
        return self._opening.split("\n", 1)[0].partition(":")[2].strip()

    def _parse(self, value: Any) -> ParseOutcome:
        if self._place == "lines":
            value = {"tool_call": {"name": self._named_on_line(), "arguments": value}}
        elif self._place == "tag":  # the tag says that it is a call
            items = value if isinstance(value, list) else [value]
            value = [_in_tool_call(item) for item in items]
            value = value[0] if len(value) == 1 else value
        return parse_calls(value, self._tools, self._repairer)

    def _settle(self, outcomes: ParseOutcome, ending: ObjectEnding, text: str) -> bool:
        """Return the calls, or the text that was none, and continue after it."""
        fallback = self._object.fallback if ending != "whole" else -1
        after = _skip_closing_mark(text[fallback:]) if fallback >= 0 else ""
        rest, self._opening = self._opening + text, ""
        self._object = JsonObjectScanner("", self._tools.names)
        outcomes, self._example = (NO_CALL,) if self._example else outcomes, False
        runs = any(isinstance(outcome, ParsedCall) for outcome in outcomes)
        if runs:
            self._emit_calls(outcomes)
            rest = after
        else:
            self._add_problems(outcomes)
        if ending == "stopped":
            return self._continue_at_next(rest, after if fallback >= 0 else text)
        self._emit(rest)
        if runs:
            return self._go(self._after_call)
        if not self._fence:
            return self._go(self._inline)
        if ending == "whole" and outcomes != (NO_CALL,):
            return self._go(self._after_failed)
        return self._code_from("" if ending == "closed" else "x")

    def _after_failed(self) -> bool:
        """After a call in a fence that does not run: the fence may hold more calls."""
        end = past_spaces(self._buf, self._at)
        if self._waits(end):
            return False
        first = self._buf[end : end + 1]
        tag = begins(self._buf, end, END_TAG, final=self._final) if first == "<" else False
        if tag is None:
            return False
        if tag or first in ("}", "]"):  # brackets too many are part of what failed
            self._emit_to(end + (len(END_TAG) if tag else 1))
            return True
        if first not in ("{", "<"):
            return self._code_from("x")
        self._emit_to(end)
        return self._begin_object("fence") if first == "{" else self._go(self._in_fence)

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


def _in_tool_call(value: Any) -> Any:
    explicit = isinstance(value, dict) and "tool_call" in value
    return value if explicit else {"tool_call": value}


def _skip_closing_mark(text: str) -> str:
    """The text without the closing fence or tag at its beginning."""
    closing = CLOSING.match(text)
    return text[closing.end() :] if closing else text.removeprefix(END_TAG)
