"""What broke the prompt cache: for any log, the first byte that differs, its entry and its edit."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recollect.codecs.cache_breaks import CacheComparison, SentRequest, compare_requests
from recollect.codecs.encoder import encode
from recollect.codecs.text_tools.text_tools_wire import TextToolsWire
from recollect.codecs.wire_protocol import Declaration, Generation, RequestOptions, Wire
from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Elided,
    Entry,
    Message,
    Pin,
    Restore,
    Text,
    ToolResult,
)
from recollect.testing import call, model, result, user
from recollect.view.view import View
from tests.codecs.test_encoder import PROMPT, WIRES, each_wire, wires
from tests.view.logs import as_written, logs, name

SNAPSHOT = "<state_snapshot>…</state_snapshot>"
READ = call("read_file", id="c1", path="a.py")
TALK: tuple[Body, ...] = (
    Message(role="system", parts=(Text(text="Be brief."),), context="initial"),
    user("What is in a.py?"),
    Message(role="model", parts=(READ,)),
    result(READ, "one two three"),
    model("Three words."),
    user("And now?"),
)


def view_of(*bodies: Body) -> View:
    pairs = enumerate(bodies)
    return View.fold([Entry(name(n), name(n - 1) if n else None, n, body) for n, body in pairs])


def after(view: View, *bodies: Body) -> View:
    return view_of(*(entry.body for entry in view.entries), *bodies)


def compare(
    old: View,
    new: View,
    wire: Wire,
    options: RequestOptions = PROMPT,
    then: RequestOptions | None = None,
) -> CacheComparison:
    return compare_requests(
        SentRequest(old, wire, options), SentRequest(new, wire, then or options)
    )


def check_bytes(found: CacheComparison, was: bytes, now: bytes) -> None:
    assert found.size == len(now)
    assert was[: found.at] == now[: found.at]
    if not found.held:
        assert was[found.at : found.at + 1] != now[found.at : found.at + 1]


@given(logs(max_size=18), wires, st.data())
def test_the_first_byte_that_differs_is_found_in_any_log(
    log: tuple[Entry, ...], wire: Wire, data: st.DataObject
) -> None:
    log = as_written(log)
    cut = data.draw(st.integers(0, len(log)))
    old, new = View.fold(log[:cut]), View.fold(log)
    found = compare(old, new, wire)
    check_bytes(found, *(encode(wire, view, PROMPT).body for view in (old, new)))
    if not found.held:
        assert found.cause
        named = {entry.id for entry in log} | {""}
        assert {found.entry, found.edit} <= named
        if found.edit:
            edit = new.log.entries[new.log.at[found.edit]].body
            assert isinstance(edit, Elide | Restore | Compaction | Pin)


@given(logs(max_size=18), wires, st.data())
def test_a_break_that_edits_caused_names_one_of_them(
    log: tuple[Entry, ...], wire: Wire, data: st.DataObject
) -> None:
    log = as_written(log)
    cut = data.draw(st.integers(0, len(log)))
    old, new = View.fold(log[:cut]), View.fold(log)
    assume(old.messages)
    unedited = [e for e in log[cut:] if not isinstance(e.body, Elide | Restore | Compaction | Pin)]
    assume(compare(old, View.fold([*log[:cut], *unedited]), wire).held)
    found = compare(old, new, wire)
    if not found.held:
        assert found.edit in {entry.id for entry in log[cut:]}, found.cause


@given(logs(max_size=18, edits=False), wires, st.data())
def test_without_edits_the_cache_holds_where_every_call_has_its_result(
    log: tuple[Entry, ...], wire: Wire, data: st.DataObject
) -> None:
    plain = [
        e
        for e in as_written(log)
        if isinstance(e.body, Message)
        and e.body.role != "system"
        and all(isinstance(part, Text) and part.text.strip() for part in e.body.parts)
    ]
    assume(plain)
    cut = data.draw(st.integers(1, len(plain)))
    assert compare(View.fold(plain[:cut]), View.fold(plain), wire).held


@each_wire
def test_new_messages_leave_the_cache_as_it_is(wire: Wire) -> None:
    old = view_of(*TALK)
    found = compare(old, after(old, model("Still three."), user("Thanks.")), wire)
    assert found.held
    assert found.at > len(encode(wire, old, PROMPT).body) - 10


def elide(rule: str = "superseded-read", reason: str = "over budget") -> Elide:
    what = Elided(entry=name(3), placeholder="[recall 00000003: a.py]")
    return Elide(rule=rule, items=(what,), reason=reason)


@each_wire
def test_an_elision_is_named_with_its_message_and_its_reason(wire: Wire) -> None:
    old = view_of(*TALK)
    found = compare(old, after(old, elide()), wire)
    assert (found.held, found.entry, found.edit) == (False, name(3), name(6))
    assert found.cause == "left out by superseded-read: over budget"
    assert "one two" in found.was
    assert "[recall" in found.now


AGAIN = call("read_file", id="c2", path="a.py")
NAMING = Elide(
    rule="superseded-read",
    items=(
        Elided(
            entry=name(3),
            placeholder="[recall 00000003: shown by 00000007]",
            shown_by=(name(7),),
            fallback="[recall 00000003: in the log]",
        ),
    ),
)
TWO_READS = (*TALK, Message(role="model", parts=(AGAIN,)), result(AGAIN, "one two three"), NAMING)


def leave_out(entry: int) -> Elide:
    what = Elided(entry=name(entry), placeholder="[gone]")
    return Elide(rule="stale-shell", items=(what,), reason="over budget")


@each_wire
def test_a_placeholder_that_changes_with_the_entry_it_names_names_the_edit_of_that(
    wire: Wire,
) -> None:
    old = view_of(*TWO_READS)
    new = after(old, user("And?"), leave_out(5), leave_out(7), leave_out(6))
    found = compare(old, new, wire)
    assert (found.held, found.entry, found.edit) == (False, name(3), name(11))
    cause = "its placeholder named 00000007, which stale-shell left out: over budget"
    assert found.cause == cause
    back = compare(new, after(new, Restore(entries=(name(7),))), wire)
    assert (back.held, back.entry, back.edit) == (False, name(3), name(13))


@each_wire
def test_a_pin_that_was_undone_is_named(wire: Wire) -> None:
    cut = Compaction(status="COMPRESSED", snapshot=SNAPSHOT, first_kept=name(5), kept=(name(0),))
    old = view_of(*TALK, cut, Pin(entries=(name(4),)))
    found = compare(old, after(old, Restore(entries=(name(7),))), wire)
    assert (found.held, found.entry, found.edit) == (False, name(4), name(8))
    assert found.cause == "something was restored or undone"


@each_wire
def test_a_restore_is_named_with_its_message(wire: Wire) -> None:
    old = view_of(*TALK, elide())
    for given_entry in (name(3), name(6)):  # the message, or the edit
        found = compare(old, after(old, Restore(entries=(given_entry,))), wire)
        assert (found.entry, found.edit) == (name(3), name(7))
        assert found.cause == "it was restored"


@each_wire
def test_a_compaction_is_named_with_what_began_it(wire: Wire) -> None:
    old = view_of(*TALK)
    cut = Compaction(
        status="COMPRESSED",
        snapshot=SNAPSHOT,
        first_kept=name(5),
        kept=(name(0),),
        trigger="auto",
    )
    new = after(old, cut)
    found = compare(old, new, wire)
    assert (found.entry, found.edit) == (name(1), name(6))
    assert found.cause == "a compaction, over the threshold"
    undone = compare(new, after(new, Restore(entries=(name(6),))), wire)
    assert (undone.edit, undone.cause) == (name(7), "it was restored")
    again = compare(new, after(new, msgspec.structs.replace(cut, trigger="manual")), wire)
    assert (again.held, again.edit, again.cause) == (True, "", "")  # the very same snapshot


@each_wire
def test_a_pin_that_places_a_message_first_is_named(wire: Wire) -> None:
    old = view_of(*TALK[1:])
    block = Message(role="user", parts=(Text(text="The setup."),), context="initial")
    found = compare(old, after(old, block, Pin(entries=(name(5),), first=True)), wire)
    assert (found.entry, found.edit) == (name(5), name(6))


@each_wire
def test_other_tools_break_it_before_the_messages(wire: Wire) -> None:
    view, more = view_of(*TALK), (*PROMPT.tools, Declaration(name="ls"))
    other = msgspec.structs.replace(PROMPT, tools=more)
    in_text = isinstance(wire, TextToolsWire)
    then = msgspec.structs.replace(wire, tools=more) if isinstance(wire, TextToolsWire) else wire
    found = compare_requests(SentRequest(view, wire, PROMPT), SentRequest(view, then, other))
    assert found.cause == "other tools: ls is new"
    assert (found.entry, found.edit) == ("", "")
    assert in_text or found.field == "tools"


@each_wire
def test_another_model_breaks_it_and_another_temperature_does_not(wire: Wire) -> None:
    old = view_of(*TALK)
    other = msgspec.structs.replace(PROMPT, model="n")
    assert compare(old, old, wire, PROMPT, other).cause == "another model: m, then n"
    warm = msgspec.structs.replace(PROMPT, generation=Generation(temperature=0.5))
    assert compare(old, old, wire, PROMPT, warm).held


def test_another_format_breaks_it() -> None:
    view = view_of(*TALK)
    one, other = (SentRequest(view, wire, PROMPT) for wire in WIRES[:2])
    assert compare_requests(one, other).cause == "another format: gemini, then openai"


@each_wire
def test_other_instructions_are_named(wire: Wire) -> None:
    old = view_of(*TALK)
    gone = Elide(rule="instructions", items=(Elided(entry=name(0), placeholder=""),))
    text = Message(role="system", parts=(Text(text="Be long."),), context="initial")
    new = after(old, text, gone, Pin(entries=(name(6),), first=True))
    found = compare(old, new, wire)
    assert (found.entry, found.edit) == (name(0), name(7))
    assert found.cause == "left out by instructions"


@each_wire
@pytest.mark.parametrize("compacted", [False, True])
def test_a_rewind_that_goes_on_elsewhere_is_named(wire: Wire, *, compacted: bool) -> None:
    cut = Compaction(status="COMPRESSED", snapshot=SNAPSHOT, first_kept=name(4), kept=(name(0),))
    begin = (*TALK, *((cut,) if compacted else ()))
    old = view_of(*begin, model("Four."), user("Sure?"))
    kept = old.entries[: len(begin) + 1]
    other = Entry("f" * 32, kept[-1].id, 99, user("Something else."))
    found = compare(old, View.fold((*kept, other)), wire)
    assert (found.held, found.entry) == (False, name(len(begin) + 1))
    assert (found.edit, found.cause) == ("", "the session went on from an earlier entry")
    assert compare(old, View.fold(kept), wire).held


@each_wire
def test_a_result_that_came_late_is_named_by_its_message(wire: Wire) -> None:
    old = view_of(*TALK[:3])
    late = ToolResult(call_id="c1", name="read_file", content=(Text(text="late"),))
    found = compare(old, after(old, Message(role="user", parts=(late,))), wire)
    assert not found.held
    assert found.entry in (name(2), name(3))
