"""How a tool call ended: whether it failed, and the one line of its result that says most.

These are failures: the result's own flag or status, a text that begins with `Error:`, a non-zero
exit code, or a test runner's count of failures in the last lines (pipes hide exit codes). Only the
first and last few thousand characters are read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.entries import Text, ToolResult
from recollect.text import clean, one_line
from recollect.toolkinds import has_failed

_MAX_READ = 6_000
_MAX_DETAILS = 8
_EXIT = re.compile(r"\bexit(?:ed)?(?: with)?(?: code| status)?[:= ]{1,3}(-?\d{1,5})\b", re.I)
_COUNTED = re.compile(r"\b(\d{1,7}) (?:failures?|failed|errors?|failing)\b", re.I)
_TELLING = re.compile(
    r"^\W{0,8}(?:error\b|fatal\b|traceback|panic|exception|\w{1,60}(?:Error|Exception)\b|failed\b|"
    r"failure\b|✗|✘|×)|\berror[:\[]|\bError:|\bfailed\b|\bnot found\b|\bundefined\b|"
    r"\bdenied\b|^\s{0,20}[\w/.-]{1,200}\.\w{1,8}:\d{1,6}\b|\bnever\b|"
    r"\bcannot\b|\bdoes not\b|\binvalid\b",
    re.I,
)
_COUNTS = re.compile(
    r"\b\d{1,7} (?:tests?|passed|passing|examples?|doctests?|failures?|failed|errors?|warnings?|"
    r"issues?|files? changed|insertions?|modules?)\b",
    re.I,
)
_CHECKED = re.compile(
    r"\b\d{1,7} (?:tests?|passed|passing|examples?|specs?|doctests?|failures?|failed|errors?|"
    r"warnings?)\b|\bno (?:issues|errors|warnings|problems)\b",
    re.I,
)
_REFUSED = ("The user doesn't want to", "User rejected", "User denied", "[Request interrupted")
REFUSED_BY_USER = "refused by the user"


class CallOutcome(NamedTuple):
    failed: bool
    line: str  # the most telling one; may be empty
    details: tuple[str, ...] = ()  # of a failure: other lines that tell what went wrong


def result_text(result: ToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, Text))


def judge_result(result: ToolResult, text: str, *, ran: bool = False) -> CallOutcome:
    """`ran`: the tool ran a command, whose output may count failures."""
    if result.is_error and text.startswith(_REFUSED):
        return CallOutcome(failed=True, line=REFUSED_BY_USER)
    head, tail = clean(text[:_MAX_READ]), clean(text[-_MAX_READ:])
    failed = has_failed(result)
    if ran and not failed:
        exit_codes = _EXIT.findall(head[:400] + "\n" + tail[-400:])
        counts = _COUNTED.findall(tail)
        failed = any(map(int, [*exit_codes, *counts[-1:]]))
    if failed:  # a text within JSON has its line ends escaped
        head, tail = (end.replace("\\n", "\n") for end in (head, tail))
    opening, lines = ([x for x in end.split("\n") if x.strip()] for end in (head, tail))
    best = _best_line(opening, lines if ran else opening[:1], failed=failed)
    told = [one_line(x, 220) for x in (*opening, *lines) if failed and _TELLING.search(x[:300])]
    return CallOutcome(failed, one_line(best, 220), tuple(dict.fromkeys(told))[:_MAX_DETAILS])


def counts_something(text: str) -> bool:
    """Whether a text counts tests, failures, warnings and the like, as checks do."""
    return _CHECKED.search(text[-_MAX_READ:]) is not None


def _best_line(opening: list[str], lines: list[str], *, failed: bool) -> str:
    counting = _COUNTED if failed else _COUNTS
    counted = next((line for line in reversed(lines) if counting.search(line[:300])), "")
    counted = counted or next((x for x in reversed(lines) if _CHECKED.search(x[:300])), "")
    if not failed:
        return counted or (lines[-1] if lines else "")
    telling = next((line for line in opening if _TELLING.search(line[:300])), "")
    said = " | ".join(dict.fromkeys(x.strip() for x in (telling, counted) if x))
    return said or (opening[0] if opening else "")
