"""Finds the calls in a model's text while it arrives; everything else is text.

A call names a declared tool, stands outside quotations, and is one of:
- a fence marked json, tool_call, tool_calls, tool_code or nothing, that begins with an object;
- `{"tool_call": …}` anywhere, a bare `{"name", "arguments"}` alone on its lines;
- `<tool_call>…</tool_call>`; `<function=N>…</function>`; `TOOL: name` and then `ARGS: {…}`.
Quotations are fences of other languages, inline code that ends on its line, lines that begin with
`>`, anything right after a quotation mark, indented code blocks and announced examples (see
`example_text.py`). Text is returned as soon as it cannot belong to a call. Any chunking gives the
same result; each character is read a bounded number of times.
"""

from __future__ import annotations

import re

from recollect.codecs.text_tools.argument_coercion import DeclaredTools
from recollect.codecs.text_tools.call_boundaries import (
    BLANKS,
    CLOSING,
    MaybeStart,
    ToolLines,
    fence_at,
    object_at,
    tool_lines_at,
)
from recollect.codecs.text_tools.call_states import CallStates
from recollect.codecs.text_tools.call_syntax import not_run
from recollect.codecs.text_tools.example_text import IndentedCode, announces_example

_TOOL_FENCES = frozenset(("", "json", "tool_call", "tool_calls", "tool_code"))
# A brace or a tag counts only if a call may follow it, or where the text breaks off.
_INLINE = re.compile(
    r"\n|`{1,64}"
    r"|<(?=tool_call>|function=|[a-z_]{0,9}\Z)"
    r"|\{(?=[ \t\r\n]{0,64}+(?:[\"'](?:tool_call|name|arguments|parameters)[\"']|\Z"
    r"|[\"'][a-z_]{0,12}+(?:\Z|[\"']\Z)))"
)
_BLANK_LINES = re.compile(r"(?:[ \t\r]{0,40}+\n)++")
_HOLD = re.compile(r"\n|`{1,64}")
_QUOTES = frozenset("\"'“‘«‹「『")
_HEAD = 120
_LIST_MARK = 12  # characters that decide whether a line is the item of a list
_MARK_BEGUN = re.compile(r"[-*+]|[0-9]{1,9}[.)]?")


class CallScanner(CallStates):
    def __init__(self, tools: DeclaredTools) -> None:
        super().__init__(tools)
        self._indented = IndentedCode()
        self._span = 0  # backticks that opened inline code, if something closes it on this line
        self._spans_off = False  # a backtick on this line was a stray one
        self._head = ""  # the beginning of a line of code

    def _line_start(self) -> bool:
        self._alone, self._span, self._spans_off = True, 0, False
        blank = _BLANK_LINES.match(self._buf, self._at)
        if blank:
            self._indented.blank_line()
            self._emit_to(blank.end())
        buf, at = self._buf, self._at
        lead = BLANKS.match(buf, at, at + 40)
        end = lead.end() if lead else at
        if self._waits(end) or at == len(buf):
            return False
        # a list item's mark: digits, a dot and a blank
        if not self._final and len(buf) - end < _LIST_MARK and _MARK_BEGUN.fullmatch(buf, end):
            return False
        if self._indented.is_code(buf[at:end], buf[end : end + _LIST_MARK]):
            return self._go(self._quote)
        return self._go(self._line)

    def _line(self) -> bool:
        """A line that is not indented code."""
        buf, at = self._buf, self._at
        lead = BLANKS.match(buf, at, at + 40)
        end = lead.end() if lead else at
        first = buf[end : end + 1]
        if first == ">":
            return self._go(self._quote)
        if first in ("`", "~"):
            return self._at_fence(end)
        if first == "T":
            lines = tool_lines_at(buf, end, final=self._final)
            if lines is None:
                return False
            if lines:
                return self._begin_lines(lines)
        return self._go(self._inline)

    def _begin_lines(self, lines: ToolLines) -> bool:
        self._example = announces_example(self._recent, block=False)
        if self._buf[lines.end : lines.end + 1] == "{":
            self._opening, self._at = self._buf[self._at : lines.end], lines.end
            return self._begin_object("lines")
        if not self._example and lines.name in self._tools.names:
            cut = self._cut and lines.end == len(self._buf)
            why = "it was cut off before its end" if cut else "a JSON object must follow ARGS:"
            self._add_problem(not_run(lines.name, why))
        self._example = False
        return self._go(self._inline)

    def _is_in_text(self) -> bool:
        return self._state in (self._line_start, self._line, self._inline)

    def _at_fence(self, end: int) -> bool:
        buf = self._buf
        found = fence_at(buf, end, final=self._final)
        if found is None:
            return False
        if not found:
            return self._go(self._inline)
        self._fence, language, after = found
        if language in _TOOL_FENCES and not announces_example(self._recent, block=True):
            self._opening, self._at = buf[self._at : after], after
            return self._go(self._in_fence)
        self._emit_to(after)
        return self._code_from("")

    def _code_from(self, head: str) -> bool:
        self._head = head
        return self._go(self._code)

    def _quote(self) -> bool:
        end = self._buf.find("\n", self._at)
        self._emit_to(end + 1 if end >= 0 else len(self._buf))
        return self._go(self._line_start) if end >= 0 else False

    def _code(self) -> bool:
        buf = self._buf
        while True:
            end = buf.find("\n", self._at)
            stop = end if end >= 0 else len(buf)
            if len(self._head) < _HEAD:
                self._head += buf[self._at : min(stop, self._at + _HEAD)]
            if end < 0:
                self._emit_to(stop)
                return False
            self._emit_to(end + 1)
            head, self._head = self._head, ""
            closing = CLOSING.fullmatch(head) if len(head) < _HEAD else None
            if closing and closing[1].startswith(self._fence):
                self._fence = ""
                return self._go(self._line_start)

    def _inline(self) -> bool:
        buf, at = self._buf, self._at
        while True:
            match = _INLINE.search(buf, at)
            if match is None:
                self._emit_to(len(buf))
                return False
            start, end = match.span()
            first = buf[start]
            if first == "`":
                if end - start < 64 and end == len(buf) and not self._final:
                    self._emit_to(start)
                    return False
                self._see_backticks(end - start)
                at = end
                continue
            if first == "\n":
                self._emit_to(end)
                return self._go(self._line_start)
            self._emit_to(start)
            begun = self._try_candidate(first)
            if begun is None:
                return False
            if begun:
                return True
            at = start + 1

    def _see_backticks(self, count: int) -> None:
        if self._spans_off:
            return
        if not self._span:
            self._span = count
        elif self._span == count:
            self._span = 0

    def _try_candidate(self, first: str) -> bool | None:
        """Whether a call may begin here; None if more text is needed to decide."""
        buf, at = self._buf, self._at
        if first == "{":
            kind: MaybeStart[str] = object_at(buf, at, final=self._final)
        else:
            kind = self._tag_at(at)
        if kind is None:
            return None
        if not kind or self._before in _QUOTES or (kind == "bare" and not self._alone):
            return False
        if self._span:
            return self._go(self._hold)
        self._example = announces_example(self._recent, block=False)
        if kind == "mentioned":
            if not self._example:
                self._see_mentioned_function()
            self._example = False
            return False
        if kind == "function":
            return self._begin_function("")
        if kind == "tag":
            self._opening, self._at = "<tool_call>", at + len("<tool_call>")
            return self._go(self._in_tag)
        self._opening = ""
        return self._begin_object("inline")

    def _hold(self) -> bool:
        """A call in inline code, or after a stray backtick: the rest of the line decides."""
        buf = self._buf
        match = _HOLD.search(buf, self._at)
        if match is None or (
            buf[match.start()] == "`"
            and match.end() == len(buf)
            and match.end() - match.start() < 64
            and not self._final
        ):
            end = len(buf) if match is None else match.start()
            self._held.append(buf[self._at : end])
            self._at = end
            return self._unhold() if self._final else False
        start, end = match.span()
        if buf[start] == "\n":
            return self._unhold()
        self._held.append(buf[self._at : end])
        self._at = end
        if end - start == self._span:
            self._span = 0
            held, self._held = self._held, []
            self._emit("".join(held))
            return self._go(self._inline)
        return True

    def _unhold(self) -> bool:
        held, self._held = self._held, []
        self._read_again(held, self._at)
        self._span, self._spans_off = 0, True
        return self._go(self._inline)
