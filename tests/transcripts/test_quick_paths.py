"""The quick ways of an import give exactly what the slow ones give: ids depend on it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Text, json_text
from recollect.transcripts.json_values import canonical_json, quick_json_text
from recollect.transcripts.record_format import arguments_object
from recollect.transcripts.tolerant_json import parse_plain_line, parse_records
from recollect.user_text import find_context, strip_added_text

CHARACTERS = st.characters(exclude_categories=()) | st.sampled_from(
    '"\\:{}[], \t\x00\x7f\ud800\u2028'
)
TEXTS = st.text(CHARACTERS, max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(
    SCALARS | st.sampled_from([2**63, 2**64, -(2**63) - 1, 1e16, 1e-7, -0.0]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=5)
SPACES = st.sampled_from(["", " ", "\t", "  "])


@given(OBJECTS)
def test_the_text_that_ids_are_derived_from_is_that_of_the_first_version(
    value: dict[str, Any],
) -> None:
    first = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    assert canonical_json(value) == first


@given(VALUES)
def test_json_is_written_quickly_as_it_is_stored(value: Any) -> None:
    with suppress(ValueError):  # an infinite number is not stored
        assert json_text(value) == quick_json_text(value)


@given(OBJECTS, st.booleans(), SPACES, SPACES)
def test_a_plain_line_is_read_as_python_reads_it(
    value: dict[str, Any], ascii_only: bool, before: str, after: str
) -> None:
    separators = (f",{after}", f"{before}:{after}")
    text = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    found = parse_plain_line(text.encode("utf-8", "surrogatepass"))
    assert found is None or canonical_json(found) == canonical_json(json.loads(text))


@given(
    st.builds(json.dumps, OBJECTS, ensure_ascii=st.booleans())
    | st.text(CHARACTERS, max_size=6).map(lambda text: f'{{"a":"{text}","b":[1e400]}}')
    | st.text(CHARACTERS, max_size=6).map(lambda text: f' {{"a":"{text}"}}\n')
)
def test_arguments_are_read_as_python_reads_them(text: str) -> None:
    expected = {}
    with suppress(ValueError):
        value = json.loads(text)
        json_text(value)  # an infinite number is not stored
        expected = value
    found = arguments_object(text)
    assert json.dumps(found) == json.dumps(expected)


@given(st.lists(st.tuples(TEXTS, VALUES), max_size=5), st.data(), SPACES)
def test_a_line_with_a_key_twice_is_never_plain(
    pairs: list[tuple[str, Any]], data: st.DataObject, space: str
) -> None:
    pairs = [*pairs, *([data.draw(st.sampled_from(pairs))] if pairs else [])]
    spaces = [data.draw(SPACES) for _ in pairs]
    fields = [
        f"{json.dumps(key)}{before}:{space}{json.dumps(value)}"
        for (key, value), before in zip(pairs, spaces, strict=True)
    ]
    line = f"{{{','.join(fields)}}}".encode()
    assert not pairs or parse_plain_line(line) is None


def test_a_key_twice_is_reported_also_beside_a_key_with_a_space_after_it() -> None:
    records, problems = parse_records(b'{"uuid" :1,"b":2,"b":3,"type":4}', ())
    assert records == [(1, {"uuid": 1, "b": 3, "type": 4})]
    assert [problem.reason for problem in problems] == [
        "the key 'b' is there more than once; the last one counts"
    ]


PIECES = st.sampled_from(
    [
        *(" ", "\n", "\x1b[31m", "\x1b", "a", "b c", "\u200b", "\ufeff", "\0", "<", ">"),
        *("<command-name>/x</command-name>", "<system-reminder>", "</system-reminder>"),
        *("[Request interrupted by user", "# Context from my IDE setup:", "\n## My request for X:"),
    ]
)


@given(st.lists(PIECES, max_size=6).map("".join))
def test_a_text_is_an_aside_if_nothing_is_left_without_what_programs_added(text: str) -> None:
    is_typed = not text.strip() or bool(strip_added_text(text))
    assert (find_context([Text(text=text)]) == "") == is_typed
