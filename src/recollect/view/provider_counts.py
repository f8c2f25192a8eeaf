"""How many tokens a view has as its provider counts them.

The input that a reply reports is the count of what its request sent; our own count, corrected by
the model's `Calibration`, is only for what was added since, and for everything after a compaction.
What was left out since takes its share of the report away. Only replies to recorded requests of the
same model count: an imported reply answered a request of another program, and sub-agents and
summaries have no request in this log.

Reports are taken from the log once and kept up to date with it. A report can be wrong or a lie: the
result is never below half of our count, an absurd report is not used, and neither is one of more
than twice our count that does not fall when the request becomes smaller.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import Literal, TypeAlias

import msgspec

from recollect.entries import Message, Request, Usage
from recollect.tokens import MAX_FACTOR, MAX_REPORT, MIN_FACTOR, Calibration
from recollect.view.entry_log import EntryLog
from recollect.view.view import View

CLEARLY_SMALLER = 0.95  # of the request before: its report has to be smaller too


class UsageReport(msgspec.Struct, frozen=True, gc=False):
    """What a provider reported for one request, and what was learned from the reports so far."""

    request: int  # positions in the log
    reply: int
    counted: int  # our count of the request, with the tools' declarations
    usage: Usage
    calibration: Calibration
    credible: bool

    @property
    def reported(self) -> int:
        """Everything the provider read, from its cache or not."""
        return self.usage.input


# What a count stands on. `ours`: there is no report, or none that can be believed; `reported`: the
# last report, and our corrected count of what was added since; `corrected`: our corrected count.
CountBasis: TypeAlias = Literal["ours", "reported", "corrected"]
# the provider may count more, or less: the correction is not allowed to be any larger
CountBound: TypeAlias = Literal["", "at least", "at most"]


class ProviderCount(msgspec.Struct, frozen=True):
    """The tokens of a view and of the tools that are declared beside it."""

    tokens: int  # as the provider would count them
    counted: int  # as we count them
    calibration: Calibration = Calibration()
    last: UsageReport | None = None  # the newest report of this model
    basis: CountBasis = "ours"
    bound: CountBound = ""

    @property
    def ratio(self) -> float:
        """The provider's tokens for one of ours."""
        return self.tokens / self.counted if self.counted > 0 else 1.0


def count_as_provider(
    view: View, tool_tokens: int, model: str, most: int = MAX_REPORT
) -> ProviderCount:
    """Count what the next request would send to this model. No report above `most` is believed."""
    counted = view.tokens + tool_tokens
    last = _find_reports(view.log, view.n).last(view.n, model)
    if last is None:
        return ProviderCount(counted, counted)
    calibration, compactions = last.calibration, view.state.compactions
    compacted = bool(compactions) and compactions[-1] > last.request
    basis: CountBasis = "reported"
    corrected = max(0, counted - last.counted)  # of our tokens: those that no report covers
    if compacted or not last.credible or last.reported > most:
        basis = "corrected" if last.credible and last.reported <= most else "ours"
        tokens, corrected = calibration.apply(counted), counted
    elif counted < last.counted:  # what was left out had its share of the report
        tokens, basis = last.reported * counted // last.counted, "corrected"
    else:
        tokens = last.reported + calibration.apply(corrected)
    least = int(MIN_FACTOR * counted)
    bound: CountBound = "at most" if tokens < least else ""
    if corrected and calibration.factor in (MIN_FACTOR, MAX_FACTOR):
        bound = "at least" if calibration.factor == MAX_FACTOR else "at most"
    return ProviderCount(max(tokens, least), counted, calibration, last, basis, bound)


class _UsageReports:
    """The reports of a log, by model. Grows with it; a view ignores those beyond its own end."""

    def __init__(self, log: EntryLog) -> None:
        self._log, self._done = log, 0
        self._open: tuple[int, Request] | None = None  # the newest request, until its reply
        self._reports: dict[str, list[UsageReport]] = {}

    def advance(self, end: int) -> None:
        entries = self._log.entries
        for position in range(self._done, end):
            body = entries[position].body
            if type(body) is Request:
                self._open = position, body
            elif type(body) is Message and body.role == "model" and self._open is not None:
                if body.usage is not None:
                    self._add(*self._open, position, body.usage)
                self._open = None
        self._done = max(self._done, end)

    def _add(self, position: int, request: Request, reply: int, usage: Usage) -> None:
        if usage.input <= 0 or request.tokens <= 0:
            return
        known = self._reports.setdefault(request.model, [])
        before = known[-1] if known else None
        credible = _is_credible(before, request.tokens, usage.input)
        calibration = before.calibration if before is not None else Calibration()
        if credible:
            calibration = calibration.learn(request.tokens, usage.input)
        known.append(UsageReport(position, reply, request.tokens, usage, calibration, credible))

    def last(self, n: int, model: str) -> UsageReport | None:
        """The newest report among the first n entries."""
        known = self._reports.get(model, [])
        at = bisect_left(known, n, key=attrgetter("reply"))
        return known[at - 1] if at else None


def _is_credible(before: UsageReport | None, counted: int, reported: int) -> bool:
    """Whether a report can be a count of its request."""
    if reported > MAX_REPORT:
        return False
    if reported <= MAX_FACTOR * counted or before is None:
        return True
    if counted < CLEARLY_SMALLER * before.counted and reported >= before.reported:
        return False
    return before.credible or before.reported > MAX_REPORT


def _find_reports(log: EntryLog, n: int) -> _UsageReports:
    found = log.usage_reports
    if not isinstance(found, _UsageReports):
        found = log.usage_reports = _UsageReports(log)
    found.advance(n)
    return found
