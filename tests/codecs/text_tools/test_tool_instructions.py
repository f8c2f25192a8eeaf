"""The instructions that describe a model's tools to it."""

from __future__ import annotations

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.text_tools.tool_instructions import (
    MAX_TOOL,
    build_call_schema,
    detect_choice,
    write_tool_instructions,
)
from recollect.codecs.wire_protocol import Declaration
from recollect.entries import json_text
from tests.codecs.text_tools.replies import TOOLS, calls, tool
from tests.strategies import json_values, text

NESTED = tool(
    "edit",
    "Edits\nfiles.",
    mode={"type": "string", "enum": ["fast", "safe"], "description": "How."},
    edits={
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"line": {"type": "integer", "description": "Where."}},
            "required": ["line"],
        },
    },
    where={"type": "object", "properties": {"file": {"type": ["string", "null"]}}},
)


def test_the_instructions_have_a_preamble_one_example_the_tools_and_the_rules() -> None:
    told = write_tool_instructions(TOOLS)
    example = '```json\n{"tool_call": {"name": "tool_name", "arguments": {"param": "value"}}}\n```'
    assert told.count(example) == told.count("```json") == 1
    assert "**read_file**: Reads a file.\n  Parameters:\n" in told
    line = '    "absolute_path": string (required) - The absolute path to the file\n'
    assert line + '    "offset": integer (optional)\n' in told
    assert told.index(example) < told.index("**read_file**") < told.index("Rules:")


def test_nested_objects_enums_and_items_are_shown() -> None:
    assert (
        "**edit**: Edits files.\n"
        "  Parameters:\n"
        '    "mode": one of "fast", "safe" (required) - How.\n'
        '    "edits": array of object (optional)\n'
        '      "line": integer (required) - Where.\n'
        '    "where": object (optional)\n'
        '      "file": string or null (optional)\n'
    ) in write_tool_instructions((NESTED,)) + "\n"


def test_a_tool_without_parameters_says_so() -> None:
    assert "**now**: Tells the time.\n  Parameters: none\n" in write_tool_instructions(
        (Declaration(name="now", description="Tells the time."),)
    )


@pytest.mark.parametrize("choice", ["auto", "none", "required", "glob", "plan"])
def test_the_instructions_show_their_tool_choice(choice: str) -> None:
    assert detect_choice(write_tool_instructions(TOOLS, choice), TOOLS) == choice
    assert detect_choice(write_tool_instructions(TOOLS[1:], choice), TOOLS) is None
    assert detect_choice(write_tool_instructions(TOOLS, choice) + ".", TOOLS) is None


def test_the_instructions_themselves_are_not_a_call() -> None:
    assert calls(write_tool_instructions(TOOLS)) == []


def test_instructions_stay_short_however_large_or_deep_a_schema_is() -> None:
    deep: object = {"type": "string"}
    for _ in range(80):
        deep = {"type": "object", "properties": {"in": deep, "list": {"items": {"items": deep}}}}
        if len(json_text(deep)) > 200_000:
            break
    wide = {f"parameter_{n}": {"type": "string", "description": "x" * 100} for n in range(2_000)}
    for hostile in (tool("deep", "", inner=deep), tool("wide", "y" * 100_000, **wide)):
        assert len(write_tool_instructions((hostile,))) < MAX_TOOL + 5_000
    assert (
        len(write_tool_instructions((Declaration(name="odd", parameters="[" * 100_000),))) < 2_000
    )


@given(text, text, st.dictionaries(text, json_values, max_size=3), json_values)
def test_foreign_text_stays_on_its_lines(
    name: str, description: str, properties: dict[str, object], required: object
) -> None:
    schema = {"type": "object", "properties": properties, "required": required}
    odd = Declaration(name=name, description=description, parameters=json_text(schema))
    plain = write_tool_instructions((tool("plain"),)).splitlines()
    told = write_tool_instructions((odd,)).split("\n")
    assert told[:8] == plain[:8]
    assert told[-6:] == plain[-6:]


def test_the_forced_schema_accepts_calls_of_the_chosen_tools_and_nothing_else() -> None:
    some = json.loads(build_call_schema(TOOLS, "required"))
    one = json.loads(build_call_schema(TOOLS, "glob"))
    glob = {"tool_call": {"name": "glob", "arguments": {"pattern": "*"}}}
    plan = {"tool_call": {"name": "plan", "arguments": {"steps": []}}}
    for schema, call, fits in ((some, glob, True), (some, plan, True), (one, glob, True)):
        assert jsonschema.Draft202012Validator(schema).is_valid(call) is fits
    assert not jsonschema.Draft202012Validator(one).is_valid(plan)
    for bad in (
        {},
        {"tool_call": {"name": "rm", "arguments": {}}},
        {"tool_call": {"name": "glob"}},
    ):
        assert not jsonschema.Draft202012Validator(some).is_valid(bad)
