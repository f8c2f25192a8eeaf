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
    Unknown,
)
from recollect.testing import call, model, result, user
from recollect.view.curation import CurationPolicy
from recollect.view.elision_rules import plan_elisions
from recollect.view.entry_log import ACKNOWLEDGEMENT
from recollect.view.view import View
from tests.view.logs import logs, name

_POLICIES = st.builds(
    CurationPolicy,
    validity=st.sampled_from(["strict", "any_part"]),
    dropping=st.sampled_from(["keep_user", "drop_pair"]),
)


def numbered(*bodies: object) -> list[Entry]:
    return [Entry(name(i), None, i * 1_000, body) for i, body in enumerate(bodies)]  # type: ignore[arg-type]


def said(view: View) -> list[str]:
    return [_text(message) for message in view.messages]


def _text(message: Message) -> str:
    from recollect.store.search_tokenizer import searchable_text

    return searchable_text(message)


@given(logs(), _POLICIES)
def test_appending_one_by_one_gives_what_folding_at_once_gives(
    log: tuple[Entry, ...], policy: CurationPolicy
) -> None:
    whole = View.fold(log, policy=policy)
    view = View.fold(policy=policy)
    for entry in log:
        view = view.append(entry)
        assert view.tokens == sum(item.tokens for item in view.items)
        fresh = View(view.log, view.n, view.policy, view.state)
        assert fresh.messages == tuple(item.message for item in view.items)
    assert view.items == whole.items
    assert view.state == whole.state


@given(logs(), st.data())
def test_a_view_never_sees_what_others_append_to_it(
    log: tuple[Entry, ...], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(log)))
    view = View.fold(log[:cut])
    before = (view.items, view.tokens, view.entries)
    longer = view.append(*log[cut:])
    other = view.append(Entry(name(10_000), None, 0, user("another way")))
    view = View(view.log, view.n, view.policy, view.state)  # without what it remembers
    assert (view.items, view.tokens, view.entries) == before
    assert longer.items == View.fold(log).items
    assert other.items == View.fold([*log[:cut], other.entries[-1]]).items


@given(logs(edits=False))
def test_without_edits_every_valid_message_is_shown_as_stored(log: tuple[Entry, ...]) -> None:
    view = View.fold(log)
    shown = [item.entry for item in view.items]
    assert all(item.message is item.entry.body for item in view.items)
    users = [e for e in log if isinstance(e.body, Message) and e.body.role != "model"]
    assert [e for e in shown if e in users] == users
    assert shown == sorted(shown, key=lambda entry: entry.id)


def test_an_elided_result_still_answers_its_call() -> None:
    c = call("read_file", path="a.py")
    log = numbered(
        user("read it"),
        model("reading", c),
        result(c, "long " * 100),
        Elide(rule="drop", items=(Elided(entry=name(2), placeholder="[left out]"),)),
    )
    view = View.fold(log)
    assert said(view) == ["read it", 'reading\nread_file {"path":"a.py"}', "[left out]"]
    assert view.items[2].message.parts[0].call_id == c.id  # type: ignore[union-attr]
    assert view.append(*numbered(*[0] * 4, Restore(entries=(name(3),)))[4:]).items[2].cuts == ()


def test_head_and_tail_of_a_cut_text_stay() -> None:
    c = call("run_shell_command", command="make")
    cut = Elided(entry=name(1), placeholder="…", parts=(0,), head=3, tail=2)
    view = View.fold(numbered(model("", c), result(c, "0123456789"), Elide(rule="r", items=(cut,))))
    assert said(view)[-1] == "012…89"


def test_after_a_compaction_come_initial_context_snapshot_pins_and_the_rest() -> None:
    setup = Message(role="user", parts=(Text(text="setup"),), context="initial")
    log = numbered(
        setup,
        user("old question"),
        model("old answer"),
        user("remember this"),
        model("fine"),
        user("new question"),
        Compaction(
            status="COMPRESSED",
            snapshot="the state",
            first_kept=name(5),
            kept=(name(0), name(3)),
        ),
        model("new answer"),
    )
    shown = ["setup", "the state", ACKNOWLEDGEMENT, "remember this", "new question", "new answer"]
    assert said(View.fold(log)) == shown
    undone = View.fold([*log, Entry(name(8), None, 0, Restore(entries=(name(6),)))])
    assert said(undone)[1] == "old question"
    assert len(undone.items) == 7


def test_a_pin_after_a_compaction_brings_the_message_back_with_its_partner() -> None:
    c = call("read_file", path="a.py")
    log = numbered(
        user("read it"),
        model("reading", c),
        result(c, "contents"),
        model("read"),
        user("next"),
        Compaction(status="COMPRESSED", snapshot="the state", first_kept=name(4)),
        Pin(entries=(name(2),)),
    )
    assert [item.entry.id for item in View.fold(log).items if item.place == "kept"] == [
        name(1),
        name(2),
    ]


def test_a_pinned_message_is_shown_word_for_word_whatever_is_elided() -> None:
    drop = Elide(rule="drop", items=(Elided(entry=name(0), placeholder=""),))
    assert said(View.fold(numbered(user("keep me"), drop))) == []
    assert said(View.fold(numbered(user("keep me"), drop, Pin(entries=(name(0),))))) == ["keep me"]
    pinned = View.fold(numbered(user("keep me"), Pin(entries=(name(0),)), drop))
    assert said(pinned) == ["keep me"]
    assert "pinned" in pinned.problems[0]


def test_a_result_whose_call_was_compacted_away_becomes_text() -> None:
    c = call("read_file", path="a.py")
    boundary = Compaction(status="COMPRESSED", snapshot="the state", first_kept=name(2))
    log = numbered(user("read"), model("reading", c), result(c, "contents"), boundary)
    assert said(View.fold(log))[-1].startswith("[result of read_file")
    late = numbered(
        user("read"), model("reading", c), Compaction(status="COMPRESSED", snapshot="s")
    )
    late.append(Entry(name(9), None, 0, result(c, "contents")))
    assert said(View.fold(late))[-1].startswith("[result of read_file")


def test_invalid_edits_are_ignored_and_listed() -> None:
    log = numbered(
        user("hello"),
        Compaction(status="COMPRESSED", snapshot="s", first_kept=name(77)),
        Compaction(status="COMPRESSED", snapshot=" "),
        Elide(rule="r", items=(Elided(entry=name(77), placeholder="x"),)),
        Elide(rule="r", items=(Elided(entry=name(0), placeholder="x", parts=(5,)),)),
        Pin(entries=(name(1),)),
        Restore(entries=(name(0), name(55))),
    )
    view = View.fold(log)
    assert said(view) == ["hello"]
    assert len(view.problems) == 6


def test_an_elided_part_cannot_be_elided_again() -> None:
    once = Elide(rule="drop", items=(Elided(entry=name(0), placeholder="", parts=(0,)),))
    view = View.fold(numbered(user("one", Text(text="two")), once, once))
    assert said(view) == ["two"]
    assert "left out already" in view.problems[0]


def test_an_entry_that_comes_twice_counts_once() -> None:
    (entry,) = numbered(user("hello"))
    view = View.fold([entry, entry])
    assert said(view) == ["hello"]
    assert "twice" in view.problems[0]


def test_ten_megabytes_in_one_result_are_no_trouble() -> None:
    c = call("run_shell_command", command="cat log")
    log = numbered(user("go"), model("", c), result(c, "x y " * 2_500_000), user("and now?"))
    view = View.fold(log)
    assert view.tokens > 2_000_000
    edits = plan_elisions(view, now=0, over_budget=True).edits
    smaller = view.append(*(Entry(f"edit {i}", None, 0, edit) for i, edit in enumerate(edits)))
    assert smaller.tokens < 1_100_000  # four million characters stay


def test_an_invalid_run_goes_as_a_whole_and_the_user_stays() -> None:
    log = numbered(user("a"), model("fine"), Message(role="model"), model("more"), user("b"))
    assert said(View.fold(log)) == ["a", "b"]
    assert said(View.fold(log, policy=CurationPolicy(dropping="drop_pair"))) == ["b"]
    blank = numbered(user("a"), Message(role="model", parts=(Text(text=""), Thought(text="x"))))
    assert said(View.fold(blank)) == ["a"]


def test_an_empty_text_beside_something_that_is_said_or_called_does_no_harm() -> None:
    empty, use = Text(text=""), call("read_file", path="a")
    spoken = Message(role="model", parts=(empty, Text(text="x")))
    called = Message(role="model", parts=(empty, Unknown(data="{}"), use))
    log = numbered(user("a"), spoken, user("b"), called, result(use, "content"), model("end"))
    for policy in (CurationPolicy(), CurationPolicy(validity="any_part")):
        view = View.fold(log, policy=policy)
        assert [item.entry for item in view.items] == list(log)


def test_a_message_that_calls_a_tool_stays_when_its_run_is_dropped() -> None:
    """Otherwise its result would answer nothing, and no provider could be sent it."""
    use, other = call("read_file", id="1", path="a"), call("read_file", id="2", path="b")
    empty = Message(role="model")
    log = numbered(user("a"), model("", use), empty, model("", other), model("gone"), user("b"))
    shown = [item.entry for item in View.fold(log).items]
    assert shown == [log[0], log[1], log[3], log[5]]
