"""Exactness of imports and exports rests on this: a patch makes one JSON value of another."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recollect.transcripts.json_patch import MOVE_LIMIT, apply_patch, json_equal, make_patch
from tests.transcripts.call_counter import count_calls
from tests.transcripts.file_builders import anything


@given(anything, anything)
def test_a_patch_turns_any_value_into_any_other(a: Any, b: Any) -> None:
    before = copy.deepcopy((a, b))
    assert json_equal(apply_patch(a, make_patch(a, b)), b)
    assert json_equal([a, b], list(before))


@given(anything)
def test_equal_values_need_no_patch(value: Any) -> None:
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


def test_a_patch_may_move_only_so_many_items() -> None:
    """Each of these steps moves a whole list by one place."""
    patched = apply_patch([0] * 100_000, [[[], 0, 0, [1]]] * 1_000)
    assert sum(patched) == MOVE_LIMIT // 100_000


def test_a_step_costs_no_more_however_long_its_path_is() -> None:
    def cost(length: int) -> int:
        return count_calls(lambda: apply_patch([], [[[0] * length, 1]] * 100))

    assert apply_patch([], [[[0] * 100_000, 1]]) == []
    assert cost(100_000) == cost(1_000)
