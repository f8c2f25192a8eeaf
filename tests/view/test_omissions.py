from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import (
    Compaction,
    Elide,
    Elided,
    Entry,
    Message,
    Pin,
    Restore,
    Text,
    Thought,
    ToolResult,
)
from recollect.testing import call, model, result, user
from recollect.view.omissions import (
    CATEGORIES,
    compare_views,
    count_by_category,
    find_omissions,
    items_replaced,
    total_by_rule,
)
from recollect.view.view import View
from tests.view.logs import logs, name

GREP = call("grep", pattern="x")
LOGS = logs(max_size=15)


def numbered(*bodies: object) -> list[Entry]:
    return [Entry(name(i), None, i * 1_000, body) for i, body in enumerate(bodies)]  # type: ignore[arg-type]


def elide(entry: int, *parts: int, rule: str = "drop", text: str = "…") -> Elide:
    return Elide(
        rule=rule, items=(Elided(entry=name(entry), placeholder=text, parts=tuple(parts)),)
    )


@given(LOGS)
def test_the_categories_share_out_every_token(log: tuple[Entry, ...]) -> None:
    view = View.fold(log)
    shares = count_by_category(view)
    assert sum(shares.values()) == view.tokens
    assert tuple(shares) == CATEGORIES


@given(LOGS)
def test_shown_and_omitted_tokens_add_up_to_the_whole_log(
    log: tuple[Entry, ...],
) -> None:
    view = View.fold([e for e in log if not isinstance(e.body, Compaction)])
    said = sum(view.log.tokens(p) for p in range(view.n) if view.log.message(p) is not None)
    assert view.tokens + sum(one.tokens for one in find_omissions(view)) == said


@given(LOGS)
def test_everything_left_out_names_a_message_in_sight_and_a_handle_that_brings_it_back(
    log: tuple[Entry, ...],
) -> None:
    view = View.fold(log)
    for one in find_omissions(view):
        if not one.handle:
            assert one.rule == "invalid"
            continue
        undo = Entry(name(9_999), view.head, 0, Restore(entries=(one.handle,)))
        after = find_omissions(view.append(undo))
        assert (one.by, one.entry) not in {(o.by, o.entry) for o in after}


@given(LOGS, st.data())
def test_the_tokens_of_a_difference_are_the_difference_of_the_tokens(
    log: tuple[Entry, ...], data: st.DataObject
) -> None:
    old = View.fold(log[: data.draw(st.integers(0, len(log)))])
    new = View.fold(log[: data.draw(st.integers(0, len(log)))])
    assert compare_views(old, new).tokens == new.tokens - old.tokens
    assert compare_views(new, old).tokens == old.tokens - new.tokens
    same = compare_views(new, new)
    assert (same.appeared, same.gone, same.changed) == ((), (), ())


def test_each_category_gets_what_belongs_to_it() -> None:
    view = View.fold(
        numbered(
            Message(role="system", parts=(Text(text="a" * 4),)),
            Message(role="user", parts=(Text(text="b" * 8),), context="initial"),
            Message(role="user", parts=(Text(text="c" * 12),), context="memory"),
            user("d" * 16),
            Message(role="model", parts=(Thought(text="e" * 20), Text(text="f" * 24), GREP)),
            result(GREP, "g" * 400),
        )
    )
    assert count_by_category(view) == {
        "instructions": 1,
        "environment": 2,
        "memory": 3,
        "messages": 10,
        "thoughts": 5,
        "calls": 1 + (len(GREP.arguments) + 3) // 4,
        "results": 101,
        "snapshot": 0,
    }


def test_a_thing_left_out_says_which_part_by_which_rule_since_when_and_how_it_comes_back() -> None:
    log = numbered(
        user("hello"),
        model("looking", GREP),
        result(GREP, "found " * 100),
        elide(2, 0, rule="stale-search"),
    )
    (one,) = find_omissions(View.fold(log))
    assert (one.rule, one.entry, one.parts) == ("stale-search", name(2), (0,))
    assert (one.since, one.by, one.handle) == (3_000, name(3), name(2))
    assert one.tokens == 148


def test_a_message_that_is_omitted_altogether_is_still_listed() -> None:
    log = numbered(user("secret " * 20), model("ok"), elide(0, text=""))
    view = View.fold(log)
    assert [item.entry.id for item in view.items] == [name(1)]
    assert [(one.entry, one.tokens) for one in find_omissions(view)] == [(name(0), 35)]


def test_two_cuts_of_one_message_each_tell_what_they_save() -> None:
    two = Message(
        role="user",
        parts=(
            ToolResult(call_id="1", name="", content=(Text(text="a" * 400),)),
            ToolResult(call_id="2", name="", content=(Text(text="b" * 800),)),
        ),
    )
    view = View.fold(numbered(two, elide(0, 0), elide(0, 1, rule="stale-shell")))
    # the placeholder is one character beyond ASCII: two tokens
    assert [(o.rule, o.tokens) for o in find_omissions(view)] == [
        ("drop", 98),
        ("stale-shell", 198),
    ]
    assert {rule: tuple(s) for rule, s in total_by_rule(find_omissions(view)).items()} == {
        "drop": (1, 98),
        "stale-shell": (1, 198),
    }


def test_an_invalid_reply_is_listed_and_has_no_handle() -> None:
    (one,) = find_omissions(View.fold(numbered(user("a"), Message(role="model"), user("b"))))
    assert (one.rule, one.entry, one.handle) == ("invalid", name(1), "")


def test_a_compaction_replaced_what_the_view_before_it_showed() -> None:
    log = numbered(
        user("old question"),
        model("old answer"),
        user("pinned"),
        user("new question"),
        Pin(entries=(name(2),)),
        Compaction(
            status="COMPRESSED",
            snapshot="the state",
            first_kept=name(3),
            kept=(name(2),),
            tokens_before=900,
            tokens_after=200,
        ),
    )
    before, now = View.fold(log[:5]), View.fold(log)
    assert [item.entry.id for item in items_replaced(before, now)] == [name(0), name(1)]
    (one,) = find_omissions(now)
    assert (one.rule, one.entry, one.tokens, one.handle) == ("compaction", name(5), 700, name(5))


def test_a_difference_says_what_came_what_went_why_and_what_changed() -> None:
    log = numbered(
        user("look"),
        model("looking", GREP),
        result(GREP, "found " * 100),
        user("secret"),
        elide(2, rule="stale-search"),
        elide(3, text=""),
        model("done"),
    )
    told = compare_views(View.fold(log[:4]), View.fold(log))
    assert [item.entry.id for item in told.appeared] == [name(6)]
    assert [(one.item.entry.id, one.why) for one in told.gone] == [(name(3), "drop")]
    assert [change.after.entry.id for change in told.changed] == [name(2)]
    assert told.changed[0].tokens == -148


def test_a_difference_across_a_compaction_and_its_undoing_says_so() -> None:
    log = numbered(
        user("old"),
        user("new"),
        Compaction(status="COMPRESSED", snapshot="the state", first_kept=name(1)),
        Restore(entries=(name(2),)),
    )
    before, held, undone = View.fold(log[:2]), View.fold(log[:3]), View.fold(log)
    assert [(g.item.entry.id, g.why) for g in compare_views(before, held).gone] == [
        (name(0), "compaction")
    ]
    assert {g.why for g in compare_views(held, undone).gone} == {"undone"}
    assert compare_views(before, undone).tokens == 0
    assert {g.why for g in compare_views(held, before).gone} == {"elsewhere"}
