"""Why an edit was made, as users read it: true of what the log cannot tell apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Body, Compaction, CompactionTrigger, Elide, Entry, Note, Request
from recollect.errors import ContextOverflow, ProviderFailed
from recollect.testing import model, user
from recollect.view.edit_reasons import (
    BUILT_BY_CODE,
    explain_compaction,
    reason_of,
    why_built_by_code,
    with_handles,
)
from recollect.view.view import View
from tests.view.logs import name

TOO_LONG = Note(text=f"mine: {ContextOverflow('at most 4096 tokens', 400, 4_096)}", level="error")
BROKEN = Note(text=f"mine: {ProviderFailed('boom', 500)}", level="error")
SENT = Request(head=name(0), as_of=0)


def reasons(*bodies: Body) -> tuple[str, str]:
    """Of the last of these entries: why, and all that is told of a compaction."""
    view = View.fold([Entry(name(n), None, n, body) for n, body in enumerate(bodies)])
    return reason_of(view.log, view.entries[-1]), explain_compaction(view.log, view.entries[-1])


def compaction(trigger: CompactionTrigger, reason: str = "") -> Compaction:
    return Compaction(status="COMPRESSED", snapshot="so far", trigger=trigger, reason=reason)


@pytest.mark.parametrize("trigger", ["auto", "overflow"])
def test_a_refusal_is_named_only_where_the_provider_refused(trigger: CompactionTrigger) -> None:
    refused = "the provider refused the request as too long"
    assert reasons(user("Hi."), SENT, TOO_LONG, compaction(trigger))[0] == refused
    ours = {"auto": "over the threshold", "overflow": "the context did not fit the window"}
    for before in (
        (user("Hi."),),
        (user("Hi."), SENT, BROKEN),
        (user("Hi."), SENT, TOO_LONG, SENT, model("Hello.")),
        (user("Hi."), SENT, TOO_LONG, user("Then shorter.")),
    ):
        assert reasons(*before, compaction(trigger))[0] == ours[trigger]


def test_a_compaction_by_hand_is_by_hand_whatever_was_refused_before() -> None:
    assert reasons(user("Hi."), SENT, TOO_LONG, compaction("manual"))[0] == "by hand"


def test_a_snapshot_that_a_model_was_to_write_and_code_built_says_why() -> None:
    trouble = "the model failed (ProviderFailed: boom)"
    made = compaction("auto", f"keep the ports; {BUILT_BY_CODE}{trouble}")
    assert why_built_by_code(made) == trouble
    assert reasons(user("Hi."), made)[1] == f"over the threshold; built by code: {trouble}"
    assert not why_built_by_code(compaction("manual", "say what is not built by code: x"))
    assert not why_built_by_code(compaction("auto", "keep the ports"))


def test_pins_that_did_not_fit_are_named_by_their_handles() -> None:
    lost = f"did not fit and was left out although it should stay: {name(7)}, {name(8)}"
    told = reasons(user("Hi."), compaction("overflow", lost))[1]
    assert told.endswith("although it should stay: 00000007, 00000008")


def test_an_elision_says_itself_why_it_was_made() -> None:
    paid = Elide(rule="r", items=(), reason="earned back after about 20 requests")
    assert reasons(user("Hi."), paid)[0] == paid.reason


@given(st.text("0123456789abcdef ,:", max_size=120))
def test_no_whole_id_is_left_and_shortening_twice_changes_nothing(text: str) -> None:
    short = with_handles(text)
    assert with_handles(short) == short
    assert all(len(word) != 32 for word in short.replace(",", " ").replace(":", " ").split())
