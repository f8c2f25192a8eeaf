from __future__ import annotations

from hypothesis import given

from recollect.compaction.budget import Budget
from recollect.compaction.cut_points import find_cut_points
from recollect.entries import Entry, ToolCall, ToolResult
from recollect.view.view import View
from tests.view.logs import logs

SMALL = Budget(window=8_192, threshold=4_000, target=3_000, snapshot=1_000)


@given(logs(edits=False, max_size=40))
def test_no_cut_separates_a_call_from_its_result(log: tuple[Entry, ...]) -> None:
    items = View.fold(log).items
    for cut in find_cut_points(items):
        assert 0 < cut.at <= len(items)
        assert cut.kept_tokens == sum(item.tokens for item in items[cut.at :])
        waiting: set[str] = set()
        for item in items[: cut.at]:
            for part in item.message.parts:
                if isinstance(part, ToolCall):
                    waiting.add(part.id)
                elif isinstance(part, ToolResult):
                    waiting.discard(part.call_id)
        later: set[str] = set()
        for item in items[cut.at :]:
            for part in item.message.parts:
                if isinstance(part, ToolCall):
                    later.add(part.id)
                elif isinstance(part, ToolResult):
                    assert part.call_id not in waiting - later
