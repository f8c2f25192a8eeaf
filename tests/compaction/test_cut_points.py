from __future__ import annotations

from hypothesis import given

from recollect.compaction.cut_points import KEEP_SHARE, NEAR_SHARES, find_cut_points
from recollect.entries import Body, Entry, ToolCall, ToolResult
from recollect.testing import call, model, result, user
from recollect.view.curation import is_spoken
from recollect.view.view import View
from tests.compaction.sessions import entries, is_prompt, turns
from tests.view.logs import logs


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


def best_share(*bodies: Body) -> tuple[float, bool]:
    """How much the best cut keeps, and whether it is before a message of the user."""
    view = View.fold(entries(*bodies))
    best = find_cut_points(view.items)[0]
    return best.kept_tokens / view.tokens, is_spoken(view.items[best.at].message)


def test_without_a_message_of_the_user_the_newest_third_stays() -> None:
    share, spoken = best_share(user("do it all"), *[b for b in turns(20) if not is_prompt(b)])
    assert 0.25 < share < 0.35
    assert not spoken


def test_a_message_of_the_user_near_the_goal_is_preferred() -> None:
    share, spoken = best_share(*turns(20))
    assert 0.2 < share < 0.4
    assert spoken


def test_a_prompt_that_has_just_come_does_not_take_the_work_before_it_away() -> None:
    work = [body for body in turns(20) if not is_prompt(body)]
    share, spoken = best_share(user("do it all"), *work, user("go on"))
    assert 0.25 < share < 0.35
    assert not spoken


def test_a_place_just_above_the_goal_is_nearer_than_one_that_keeps_next_to_nothing() -> None:
    reads: list[Body] = []
    for number in range(3):
        use = call("read_file", id=f"c{number}", path=f"{number}.txt")
        reads += (model("", use), result(use, "some words here\n" * 2_000))
    share, spoken = best_share(user("看一下"), *reads, model("好"))
    assert 0.3 < share < 0.4
    assert not spoken


@given(logs(edits=False, max_size=40))
def test_the_nearest_places_come_first_and_those_before_a_message_of_the_user_before_others(
    log: tuple[Entry, ...],
) -> None:
    items = View.fold(log).items
    total = sum(item.tokens for item in items)
    low, high = (total * share for share in NEAR_SHARES)
    found = [cut for cut in find_cut_points(items) if cut.at < len(items)]
    near = [cut for cut in found if low <= cut.kept_tokens <= high]
    assert found[: len(near)] == near
    places = [
        (not is_spoken(items[cut.at].message), abs(cut.kept_tokens - total * KEEP_SHARE))
        for cut in near
    ]
    assert places == sorted(places)
