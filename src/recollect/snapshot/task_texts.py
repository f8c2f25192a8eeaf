"""The texts of the tasks that the user points to: issues, tickets and specs that tools printed.

A task is a text for people, returned by a call that names what the user named, or something that
belongs to it (`app-12.3` belongs to `app-12`). Its newest version counts. Other long texts for
people that tools returned, such as reports of sub-agents, are reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from recollect.code_names import find_names, is_identifier
from recollect.snapshot.quotes import Quote
from recollect.telling_lines import Line, choose_lines, is_prose, squeeze
from recollect.text import clean, one_line
from recollect.user_text import find_pointers
from recollect.work_journal import ToolOutputText

_NUMBERED = re.compile(r"^\s{0,6}\d{1,6}(?:→|\t)", re.M)
_STATUS = re.compile(r"\s*(?:\[[^\]]{0,40}\]|●.{0,10})\s*$")
_MIN_TITLE = 40  # characters; a shorter one may only say that it was closed
_MIN_TASK, _MAX_TASK, _MAX_TASKS = 200, 40_000, 30
_MAX_TICKETS, _MAX_LINE, _DEMANDING = 60, 300, 2.0
_DEMAND = re.compile(
    r"\b(?:must|never|only|not|exactly|keep|should|require[sd]?|forbid|always|without|no)\b"
    r"|必须|不要|不得|禁止|只能|应",
    re.I,
)


class TaskTexts(NamedTuple):
    tasks: dict[str, Quote]  # by the ids that their calls name; oldest first
    reports: list[Quote]
    tickets: dict[str, str]  # by id: the newest line that names it


def find_tasks(directives: Iterable[str], outputs: Sequence[ToolOutputText]) -> TaskTexts:
    pointers = find_pointers(directives)
    belongs = _belonging(pointers)
    tasks: dict[str, Quote] = {}
    reports: list[Quote] = []
    tickets: dict[str, str] = {}
    for output in outputs:
        if output.kind in ("search", "list", "edit", "write", "plan"):
            continue
        named = belongs.findall(output.asked[:1000])
        if any(map(_is_ticket, named)):
            _add_tickets(tickets, output.text, belongs)
        if len(output.text) < _MIN_TASK or not is_prose(output.text):
            continue
        text = clean(_NUMBERED.sub("", output.text[:_MAX_TASK])).strip()
        if named:
            key = " ".join(dict.fromkeys(named))
            tasks.pop(key, None)
            tasks[key] = Quote(text, output.entry, shorten=shorten_task)
        elif output.kind == "other":
            reports.append(Quote(text, output.entry, shorten=shorten_task))
    newest = dict(list(tickets.items())[-_MAX_TICKETS:])
    return TaskTexts(dict(list(tasks.items())[-_MAX_TASKS:]), reports[-_MAX_TASKS:], newest)


def _belonging(pointers: Sequence[str]) -> re.Pattern[str]:
    if not pointers:
        return re.compile(r"(?!)")  # matches nothing
    names = "|".join(sorted(map(re.escape, pointers), key=len, reverse=True))
    return re.compile(rf"(?<![\w.-])((?:{names})(?:\.\d[\w.-]*)?)(?![\w-])")


def _is_ticket(name: str) -> bool:
    """Names of files and of code are none."""
    return "/" not in name and not is_identifier(name) and not find_names(name).files


def _add_tickets(tickets: dict[str, str], text: str, belongs: re.Pattern[str]) -> None:
    for line in text[:_MAX_TASK].split("\n")[:400]:
        found = belongs.search(line[:200])
        if found is None or found.start() > 40 or len(line) - found.end() < 8:
            continue
        title = one_line(_STATUS.sub("", line[found.start() :]), 160)
        known = tickets.get(found[1], "")
        if (
            _is_ticket(found[1])
            and line[found.end() : found.end() + 1] in (":", " ")
            and len(known) < _MIN_TITLE
        ):
            tickets[found[1]] = max(known, title, key=len)


def shorten_task(text: str, most: int) -> str:
    """The title, and the lines that say or demand most, in their order."""
    if len(text) <= most:
        return text
    title, *lines = squeeze(text.split("\n"), _MAX_LINE)
    weights = [_DEMANDING if _DEMAND.search(line) else 1.0 for line in lines]
    chosen = choose_lines(list(map(Line.of, lines, weights)), most - len(title) - 1, title)
    body = "\n".join(lines[n] for n in sorted(chosen))
    return f"{title}\n{body}".strip()[:most]
