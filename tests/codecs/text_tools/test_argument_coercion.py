"""Arguments are fitted to the declared tool, and nothing is lost on the way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from recollect.codecs.argument_names import ARGUMENT_ALIASES
from recollect.codecs.text_tools.argument_coercion import DeclaredTools, coerce
from recollect.codecs.wire_protocol import Declaration
from tests.codecs.text_tools.replies import STRING, TOOLS, calls, fenced, tool
from tests.strategies import json_values

MAPPED = [
    (name, accepted, canonical)
    for name, table in ARGUMENT_ALIASES.items()
    for canonical, several in table.items()
    for accepted in several
]


@pytest.mark.parametrize(("name", "accepted", "canonical"), MAPPED)
def test_an_accepted_name_becomes_the_canonical_one(
    name: str, accepted: str, canonical: str
) -> None:
    box = DeclaredTools((tool(name, "", **{canonical: STRING}),))
    assert box.fit(name, {accepted: "v", "other": "w"}) == {canonical: "v", "other": "w"}


@pytest.mark.parametrize(("name", "accepted", "canonical"), MAPPED)
def test_a_name_that_the_tool_itself_has_is_left_alone(
    name: str, accepted: str, canonical: str
) -> None:
    both = DeclaredTools((tool(name, "", **{canonical: STRING, accepted: STRING}),))
    assert both.fit(name, {accepted: "v"}) == {accepted: "v"}
    neither = DeclaredTools((tool(name),))
    assert neither.fit(name, {accepted: "v"}) == {accepted: "v"}
    one = DeclaredTools((tool(name, "", **{canonical: STRING}),))
    assert one.fit(name, {accepted: "v", canonical: "w"}) == {accepted: "v", canonical: "w"}


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("integer", "3", 3),
        ("integer", 3.0, 3),
        ("integer", "3.5", "3.5"),
        ("integer", "03", "03"),
        ("integer", 3.5, 3.5),
        ("integer", "9" * 5_000, "9" * 5_000),
        ("number", "0.5", 0.5),
        ("number", "3", 3),
        ("number", "1e999", "1e999"),
        ("number", "0.1000000000000000055", "0.1000000000000000055"),
        ("number", "three", "three"),
        ("boolean", "true", True),
        ("boolean", "False", False),
        ("boolean", "yes", "yes"),
        ("boolean", 1, 1),
        ("string", 3, "3"),
        ("string", 0.5, "0.5"),
        ("string", True, True),
        ("string", None, None),
        ("object", '{"a": 1}', {"a": 1}),
        ("object", "[1]", "[1]"),
        ("object", "{broken", "{broken"),
        ("array", "[1, 2]", [1, 2]),
        ("array", "a", ["a"]),
        ("array", 3, [3]),
        ("array", {"a": 1}, {"a": 1}),
        ("array", None, None),
        ("null", "null", "null"),
    ],
)
def test_types_are_coerced_to_the_schema_only_when_nothing_is_lost(
    kind: str, value: Any, wanted: Any
) -> None:
    found = coerce(value, {"type": kind})
    assert (type(found), found) == (type(wanted), wanted)


def test_types_are_coerced_in_nested_objects_and_lists() -> None:
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"type": "integer"}}},
    }
    assert coerce('{"rows": ["1", 2]}', schema) == {"rows": [1, 2]}
    assert coerce({"rows": "7"}, schema) == {"rows": [7]}


def test_a_value_that_one_of_several_types_allows_is_left_alone() -> None:
    assert coerce("3", {"type": ["string", "integer"]}) == "3"
    assert coerce("3", {"anyOf": [{"type": "integer"}, {"type": "null"}]}) == 3


@given(json_values, json_values)
def test_coercing_never_fails_and_doing_it_twice_changes_nothing(value: Any, schema: Any) -> None:
    for each in (schema, {"type": "object", "properties": schema}, {"type": "array"}):
        once = coerce(value, each)
        assert coerce(once, each) == once


@pytest.mark.parametrize("parameters", ["", "[]", "{", "null", '{"properties": []}', "[" * 10_000])
def test_a_tool_without_a_readable_schema_takes_arguments_as_they_are(parameters: str) -> None:
    box = DeclaredTools((Declaration(name="odd", parameters=parameters),), "/root")
    assert box.fit("odd", {"a": "1"}) == {"a": "1"}


@pytest.mark.parametrize(
    ("given_path", "wanted"),
    [
        ("a/b.py", "/work/a/b.py"),
        ("./a.py", "/work/a.py"),
        ("/a.py", "/a.py"),
        ("C:\\a.py", "C:\\a.py"),
        ("~/a.py", "~/a.py"),
        ("https://x/a", "https://x/a"),
        (".", "/work"),
        ("", ""),
    ],
)
def test_a_relative_path_is_made_absolute_where_the_tool_expects_it(
    given_path: str, wanted: str
) -> None:
    box = DeclaredTools(TOOLS, "/work/")
    fitted = box.fit("read_file", {"path": given_path})
    assert fitted == {"absolute_path": wanted if given_path != "." else "/work/"}
    assert DeclaredTools(TOOLS).fit("read_file", {"path": given_path}) == {
        "absolute_path": given_path
    }


def test_a_path_is_left_alone_where_the_tool_does_not_ask_for_an_absolute_one() -> None:
    box = DeclaredTools(TOOLS, "/work")
    assert box.fit("write_file", {"path": "a"}) == {"file_path": "a"}
    wants = {"type": "string", "description": "Must be an absolute path"}
    assert DeclaredTools((tool("t", "", where=wants),), "/w").fit("t", {"where": "a"}) == {
        "where": "/w/a"
    }
    declines = {"type": "string", "description": "A relative path, not absolute"}
    assert DeclaredTools((tool("t", "", path=declines),), "/w").fit("t", {"path": "a"}) == {
        "path": "a"
    }


def test_a_call_in_text_is_fitted_to_its_tool() -> None:
    text = fenced("read_file", path="a.py", offset="3")
    (found,) = calls(text, root="/w")
    assert json.loads(found[1]) == {"absolute_path": "/w/a.py", "offset": 3}
