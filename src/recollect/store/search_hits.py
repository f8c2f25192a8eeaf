"""What stands beside a hit: of a result the call it answers, of a call what it gave.

One reply may call several tools. A hit names those that its passage is about, and no others.
"""

from __future__ import annotations

from typing import NamedTuple

from recollect.entries import Entry, ToolCall, ToolResult
from recollect.store.contract import SearchHit
from recollect.store.readable_text import calls_of, results_of


class GivenResult(NamedTuple):
    entry: Entry
    result: ToolResult
    call: ToolCall | None  # where the hit has several


def answered_calls(hit: SearchHit) -> list[ToolCall]:
    """The calls whose results the passage is of."""
    calls = (call for entry in hit.beside for call in calls_of(entry))
    return [call for call in calls if call.id in hit.call_ids]


def given_results(hit: SearchHit) -> list[GivenResult]:
    """What the calls of the passage gave."""
    calls = {call.id: call for call in calls_of(hit.entry) if call.id in hit.call_ids}
    return [
        GivenResult(entry, result, calls[result.call_id] if len(calls) > 1 else None)
        for entry in hit.beside
        for result in results_of(entry)
        if result.call_id in calls
    ]
