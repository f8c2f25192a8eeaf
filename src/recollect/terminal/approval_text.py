"""What is asked about a tool call, in full, for the screen and for plain lines."""

from __future__ import annotations

from collections.abc import Iterator

from recollect.display.display_text import one_line, sanitize
from recollect.runtime.approval_preview import ApprovalPreview
from recollect.terminal.palette import StyleName
from recollect.terminal.wrapped_lines import ReadLine, difference_lines

MAX_SHOWN = 20_000  # characters of one argument


def approval_lines(shown: ApprovalPreview) -> tuple[ReadLine, ...]:
    """What is asked, in full; nothing in it can move the cursor."""
    return (*_question_lines(shown), *_text_lines(shown.reason, "dim"))


def _question_lines(shown: ApprovalPreview) -> Iterator[ReadLine]:
    if shown.command:
        yield from _command_lines("$", shown.command)
        if shown.normal_form:
            yield from _command_lines("which means:", shown.normal_form)
        yield from _named_lines("in", shown.folder)
        yield from _text_lines(shown.sandbox, "plain")
    if shown.failure:
        yield from _named_lines("it would fail:", shown.failure, "warned")
    for name, value in shown.arguments:
        yield from _named_lines(f"{one_line(name)}:", value)
    if shown.diff:
        yield from difference_lines(_safe(shown.diff))


def _named_lines(name: str, value: str, style: StyleName = "plain") -> Iterator[ReadLine]:
    first, *others = _safe(value).split("\n")
    yield ReadLine([(f"{name} ", "dim"), (first, style)])
    yield from (ReadLine([(line, style)]) for line in others)


def _command_lines(name: str, command: str) -> Iterator[ReadLine]:
    """To the letter."""
    return (line._replace(exact=True) for line in _named_lines(name, command, "strong"))


def _text_lines(text: str, style: StyleName) -> Iterator[ReadLine]:
    yield from (ReadLine([(line, style)]) for line in _safe(text).split("\n"))


def _safe(text: str) -> str:
    left = len(text) - MAX_SHOWN
    cut = f"\n… {left:,} more characters" if left > 0 else ""
    return sanitize(text[:MAX_SHOWN]).expandtabs(4) + cut


def approval_title(shown: ApprovalPreview) -> str:
    asks = "A sub-agent asks: " if shown.by_subagent else ""
    return asks + _question(shown)


def _question(shown: ApprovalPreview) -> str:
    if shown.command:
        return "Run this command?"
    if shown.diff:
        return "Create this file?" if shown.creates else "Change this file?"
    return f"Call {one_line(shown.tool)}?"
