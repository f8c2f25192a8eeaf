"""Damaged JSON is repaired where that has one meaning, and refused with a reason elsewhere."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.text_tools.lenient_json import JsonDamage, JsonRepairer
from recollect.entries import json_text

leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8)
objects = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        leaves | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


def read(text: str, *, complete: bool = True) -> Any:
    return JsonRepairer().read(text, complete=complete)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ('{"a": "x",}', {"a": "x"}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": "x\ny\tz\x01"}', {"a": "x\ny\tz\x01"}),
        ("{'a': 'x', 'b': \"y\"}", {"a": "x", "b": "y"}),
        ("{'a': 'say \"hi\"', 'b': 'it\\'s'}", {"a": 'say "hi"', "b": "it's"}),
        ("{'a': 'x\ny',}", {"a": "x\ny"}),
        ('{"a": {"b": "x"', {"a": {"b": "x"}}),
        ('{"a": [{"b": 1}', {"a": [{"b": 1}]}),
        ('{"a": 1\n', {"a": 1}),
        ('{"a": 1, "a": 1}', {"a": 1}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        ('{"a": 18446744073709551615}', {"a": 2**64 - 1}),
    ],
)
def test_a_defect_with_one_meaning_is_repaired(written: str, wanted: object) -> None:
    assert read(written) == wanted


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ('{"a": {"b": ,,,]]}}', "a.b has no value before ',,,]]}}'"),
        ('{"a": }', "a has no value before '}'"),
        ('{"a": "half', "a has a string without a closing quotation mark"),
        ('{"a": 1', "a is cut off"),
        ('{"a": tru', "a is cut off"),
        ('{"a": "x",', "the object is cut off"),
        ('{"a": {', "a is cut off"),
        ('{"a": [1,', "a.1 is cut off"),
        ('{"a":', "a is cut off"),
        ('{"a"', "a is cut off"),
        ('{"a": True}', "a has a value that is not JSON: 'True}'"),
        ('{a: "x"}', "the object has 'a: \"x\"}' where a key in double quotes is expected"),
        ('{"a": "x" "b": 1}', "is followed by '\"b\": 1}' where a comma or } is expected"),
        ('{"a": "say "hi" now"}', 'write a quotation mark inside a string as \\"'),
        ("{'a': 'it's'}", "single quotes, and it is not certain where they end"),
        ("{'a': 'half", "a has a string without a closing quotation mark"),
        ('{"a": "\\d+"}', "a has the escape \\d, which JSON does not know"),
        ('{"a": 1, "a": 2}', "the key 'a' has two values"),
        ('{"a": 1, "a": true}', "the key 'a' has two values"),
        ('{"a": "x", "a": "y",}', "the key 'a' has two values"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}', "-Infinity is not a JSON number"),
        ('{"a": 1e999}', "the number '1e999' cannot be kept exactly"),
        ('{"a": 0.1000000000000000055}', "cannot be kept exactly"),
        ('{"a": 18446744073709551616}', "is too large"),
        ('{"a": "\\ud800"}', "half of a surrogate pair"),
        ('{"a": "\ud800"}', "half of a surrogate pair"),
        ('{"a": "x"} y', "the object has 'y' after its end"),
        ("[" * 101 + "]" * 101, "nested deeper than 100 levels"),
    ],
)
def test_what_is_missing_or_uncertain_is_refused_with_its_place(written: str, why: str) -> None:
    found = read(written)
    assert isinstance(found, JsonDamage)
    assert why in found.problem


@given(objects)
def test_valid_json_is_read_as_it_is(value: dict[str, Any]) -> None:
    assert read(json_text(value)) == value


@given(objects, st.data())
def test_an_object_that_breaks_off_anywhere_is_never_completed(
    value: dict[str, Any], data: st.DataObject
) -> None:
    text = json_text(value)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    assert isinstance(read(cut, complete=False), JsonDamage)


@given(objects, st.data())
def test_added_brackets_only_ever_leave_out_what_came_later(
    value: dict[str, Any], data: st.DataObject
) -> None:
    text = json_text(value)
    found = read(text[: data.draw(st.integers(0, len(text) - 1))])
    assert isinstance(found, JsonDamage) or _is_beginning(found, value)


def _is_beginning(one: Any, other: Any) -> bool:
    """Whether the first value is the second without things at its end."""
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = zip(one.items(), other.items(), strict=False)
        same = all(k == j and _is_beginning(v, w) for (k, v), (j, w) in pairs)
        return same and len(one) <= len(other)
    if isinstance(one, list) and isinstance(other, list):
        pairs_of = zip(one, other, strict=False)
        return len(one) <= len(other) and all(_is_beginning(v, w) for v, w in pairs_of)
    return bool(one == other)


@given(objects)
def test_single_quotes_and_trailing_commas_change_nothing(value: dict[str, Any]) -> None:
    text = json.dumps(value, indent=1)
    commas = re.sub(r'(?<=[\]}"\w])(\n\s*[\]}])', r",\1", text)
    assert read(commas) == value
    quoted = re.sub(r'"((?:[^"\\]|\\.)*)"', _in_single_quotes, text)
    assert read(quoted) == value


def _in_single_quotes(found: re.Match[str]) -> str:
    return "'" + found[1].replace("'", "\\'") + "'"
