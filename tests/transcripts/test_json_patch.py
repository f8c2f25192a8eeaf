"""Exactness of imports and exports rests on this: a patch makes one JSON value of another."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recollect.transcripts.json_patch import apply_patch, json_equal, make_patch
from tests.transcripts.file_builders import anything


@given(anything, anything)
def test_a_patch_makes_of_any_value_any_other(a: Any, b: Any) -> None:
    before = copy.deepcopy((a, b))
    assert json_equal(apply_patch(a, make_patch(a, b)), b)
    assert json_equal([a, b], list(before))


@given(anything)
def test_what_is_equal_needs_no_patch(value: Any) -> None:
    assert make_patch(value, copy.deepcopy(value)) == []


steps = st.lists(
    st.lists(
        st.lists(st.integers(-1, 3) | st.sampled_from("ab"), max_size=3) | anything, max_size=4
    )
)


@given(anything, steps | anything)
def test_a_patch_that_does_not_fit_does_no_harm(value: Any, patch: Any) -> None:
    before = copy.deepcopy((value, patch))
    apply_patch(value, patch)
    assert json_equal([value, patch], list(before))


def test_numbers_that_python_holds_equal_are_different_json() -> None:
    assert make_patch(1, True)
    assert make_patch(1, 1.0)
    assert make_patch(0.0, -0.0)
    assert make_patch([], {})


def test_an_item_added_to_a_list_does_not_repeat_the_others() -> None:
    assert make_patch(["a", "b"], ["new", "a", "b"]) == [[[], 0, 0, ["new"]]]


def test_a_hostile_patch_costs_no_more_than_it_may() -> None:
    apply_patch([0] * 100_000, [[[], 0, 0, [1]]] * 100_000)
    apply_patch([], [[[0] * 100_000, 1]] * 100)
