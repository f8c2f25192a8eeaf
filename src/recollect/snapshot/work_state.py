"""The state of the work as tools last reported it: tickets, commits, pushes, changed files, checks.

Everything here is quoted from commands and what they printed, with the entry that has the whole of
it. Where files were changed it is also said that nothing was committed or pushed: whoever goes on
must know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from recollect.call_outcome import counts_something
from recollect.snapshot.quotes import Quote
from recollect.text import one_line
from recollect.work_journal import CommandRun, JournalItem, check_key, show_run

_COMMITTED = re.compile(r"^\[([\w./ ()-]{1,120}) ([0-9a-f]{7,40})\] (.{1,200})", re.M)
_GIT = re.compile(r"\bgit(?: -C \S{1,200})? (\w{2,20})")
_PUSHED = re.compile(r"^.{0,200}(?: -> |up.to.date|set up to track).{0,200}$", re.M | re.I)
_LOOKS = "show view list ls ready get cat search stats status log diff"
_LOOKING = frozenset(_LOOKS.split())
_CLOSING = re.compile(r"\b(?:close[sd]?|done|resolved?|completed?|finish(?:ed)?|merged?)\b")
_MAX_COMMITS, _MAX_CHECKS, _MAX_TICKETS, _MAX_FILES = 40, 8, 40, 40


class WorkState(NamedTuple):
    quotes: list[Quote]
    closed: set[str]  # tickets whose last command closed them


class _Run(NamedTuple):
    item: int  # its number
    entry: str
    run: CommandRun


def describe_state(items: Sequence[JournalItem], tickets: dict[str, str]) -> WorkState:
    """`tickets` has what the work is about: an id, and the line that names it."""
    runs = [_Run(n, item.entry, run) for n, item in enumerate(items) for run in item.runs]
    acts = _ticket_acts(runs, tickets)
    own = {id(act.run) for act in acts.values()}
    quotes = [*_tickets(acts, tickets), *_versions(items, runs), *_checks(runs, own)]
    closed = {ticket for ticket, act in acts.items() if _CLOSING.search(act.run.command[:80])}
    return WorkState(quotes, closed)


def _ticket_acts(runs: Sequence[_Run], tickets: dict[str, str]) -> dict[str, _Run]:
    """The last command that did something with each ticket."""
    done: dict[str, _Run] = {}
    patterns = {t: re.compile(rf"(?<![\w.-]){re.escape(t)}(?![\w-]|\.\w)") for t in tickets}
    for act in runs:
        command = act.run.command[:300]
        if not (act.run.outcome.failed or _GIT.search(command)) and not _LOOKING.intersection(
            command.split()[1:3]
        ):
            done.update({t: act for t, pattern in patterns.items() if pattern.search(command)})
    return done


def _tickets(acts: dict[str, _Run], tickets: dict[str, str]) -> Iterator[Quote]:
    told: set[int] = set()
    for ticket, title in islice(tickets.items(), _MAX_TICKETS):
        act = acts.get(ticket)
        if act is None:
            begun = any(other.startswith(f"{ticket}.") for other in acts)
            yield Quote(title if begun else f"{title} — nothing was done to it")
            continue
        command = one_line(act.run.command, 160 if id(act.run) in told else 600)
        told.add(id(act.run))
        yield Quote(f"{title} — last: `{command}`", act.entry, 1.5)


def _versions(items: Sequence[JournalItem], runs: Sequence[_Run]) -> Iterator[Quote]:
    """Commits, pushes, and the files changed since."""
    git = [(act, set(_GIT.findall(act.run.command))) for act in runs]
    commits = [(a, found) for a, ran in git if ran for found in _COMMITTED.findall(a.run.output)]
    last = commits[-1][0].item if commits else -1
    changed = [change.path for item in items[last + 1 :] for change in item.changes]
    if not changed and not any(ran for _, ran in git):
        return
    for act, (branch, commit, subject) in commits[-_MAX_COMMITS:]:
        yield Quote(f"Committed {commit} on {branch}: {subject}", act.entry)
    pushes = [act for act, ran in git if "push" in ran and not act.run.outcome.failed]
    if not commits:
        yield Quote("Commits: none was made in these messages.")
    if not pushes:
        yield Quote("Pushes: none was made in these messages.")
    else:
        said = _PUSHED.search(act.run.output) if (act := pushes[-1]) else None
        later = "; the last commit came later" if last > act.item else ""
        shown = said[0].strip() if said else "done"
        yield Quote(f"Last push: {shown}{later} (`{_last_part(act.run.command)}`)", act.entry, 1.5)
    if changed:
        since = "since the last commit" if commits else "and not committed"
        paths = list(dict.fromkeys(changed))[-_MAX_FILES:]
        yield Quote(f"Changed {since}: {', '.join(paths)}", weight=2)
    statuses = [act for act, ran in git if "status" in ran and act.item > last]
    for act in statuses[-1:]:
        lines = (line.strip() for line in act.run.output.split("\n"))
        told = "; ".join(line for line in lines if line and not line.startswith("(use "))
        yield Quote(f"Last `git status`: {one_line(told, 600)}", act.entry)


def _checks(runs: Sequence[_Run], others: set[int]) -> Iterator[Quote]:
    """How the work is checked, and what each check last said."""
    latest: dict[str, _Run] = {}
    for act in runs:
        command = act.run.command
        other = id(act.run) in others or _GIT.search(command) is not None
        if not other and counts_something(act.run.output):
            latest.pop(check_key(command), None)
            latest[check_key(command)] = act
    for act in islice(reversed(latest.values()), _MAX_CHECKS):
        yield Quote(f"Last check: {show_run(act.run)}", act.entry)


def _last_part(command: str) -> str:
    return one_line(command.rsplit("&&", 1)[-1].strip(), 120)
