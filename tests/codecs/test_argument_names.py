"""Arguments under other agents' names reach the tool, and nothing that matters is dropped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.argument_names import (
    ARGUMENT_ALIASES,
    find_name_conflict,
    fit_arguments,
    rename_arguments,
)
from recollect.codecs.item_names import fit_items

REPLACE = ("file_path", "old_string", "new_string", "expected_replacements")
SHELL = ("command", "directory", "timeout", "background")


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


@pytest.mark.parametrize(
    ("tool", "canonical", "used"),
    [
        (tool, canonical, spelt)
        for tool, table in ARGUMENT_ALIASES.items()
        for canonical, accepted in table.items()
        for name in (canonical, *accepted)
        for spelt in dict.fromkeys((name, camel(name)))
    ],
)
def test_every_spelling_of_the_table_is_mapped(tool: str, canonical: str, used: str) -> None:
    assert rename_arguments(tool, {used: "x"}, ARGUMENT_ALIASES[tool]) == {canonical: "x"}


def test_a_name_that_the_tool_has_is_never_taken_for_another() -> None:
    parameters = ("path", "file_path")
    given_ = {"path": "a"}
    assert rename_arguments("write_file", given_, parameters) == given_


@pytest.mark.parametrize(
    "arguments", [{"file_path": "a", "path": "b"}, {"path": "a", "filePath": "b"}]
)
def test_two_names_for_one_argument_are_left_to_the_tool(arguments: dict[str, str]) -> None:
    assert rename_arguments("replace", arguments, REPLACE) == arguments


@pytest.mark.parametrize(
    "arguments",
    [{"file_path": "a", "path": "a"}, {"path": "a", "filePath": "a"}, {"path": None, "file": "a"}],
)
def test_two_names_with_the_same_value_are_one_argument(arguments: dict[str, str]) -> None:
    assert rename_arguments("replace", arguments, REPLACE) == {"file_path": "a"}
    assert find_name_conflict("replace", arguments, REPLACE) == ""


def test_true_is_not_one() -> None:
    given_ = {"background": 1, "is_background": True}
    assert rename_arguments("run_shell_command", given_, SHELL) == given_
    assert "'background' and 'is_background'" in find_name_conflict(
        "run_shell_command", given_, SHELL
    )


lines = st.one_of(st.none(), st.integers(-2, 40))


@given(lines, lines)
def test_numbers_of_lines_become_the_same_lines_or_stay(start: int | None, end: int | None) -> None:
    given_ = {"absolute_path": "a", "start_line": start, "endLine": end}
    fitted = fit_arguments("read_file", given_, ("absolute_path", "offset", "limit"))
    first, last = start or 1, 50 if end is None else end
    if (start is not None and start < 1) or last < max(first, 1):
        assert fitted.keys() & {"start_line", "endLine"}
        return
    offset = fitted.get("offset", 1)
    assert (offset, offset + fitted.get("limit", 51 - offset) - 1) == (first, last)
    assert not fitted.keys() & {"start_line", "endLine"}


def test_a_tool_of_somebody_else_keeps_the_items_of_its_lists() -> None:
    items = {"items": [{"description": "x", "status": "done"}]}
    item = {"properties": {"description": {}, "content": {}, "status": {"enum": ["done"]}}}
    assert fit_items("todo", items, {"items": {"type": "array", "items": item}}) == items
    assert fit_items("todo", items, {"items": {"type": "array"}}) == items
    assert fit_items("plan", items, {"items": {"type": "array", "items": item}}) == items


def test_comments_and_what_a_tool_does_anyway_are_left_out() -> None:
    comments = {"instruction": "do it", "explanation": "why", "replaceAll": False}
    assert fit_arguments("replace", {"file_path": "a", **comments}, REPLACE) == {"file_path": "a"}
    shell = {"command": "ls", "description": "lists", "is_background": True}
    assert fit_arguments("run_shell_command", shell, SHELL) == {"command": "ls", "background": True}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("replace", {"replace_all": True}),
        ("replace", {"allow_multiple": True}),
        ("glob", {"respect_git_ignore": False}),
        ("list_directory", {"ignore": ["*.py"]}),
        ("weather", {"description": "mine"}),
        ("weather", {"explanation": "mine"}),
    ],
)
def test_what_would_change_something_is_not_left_out(tool: str, arguments: dict[str, bool]) -> None:
    assert fit_arguments(tool, arguments, ("file_path",)) == arguments


names = st.sampled_from(["path", "filePath", "file_path", "cmd", "description", "replace_all", "x"])
tools = st.sampled_from([*ARGUMENT_ALIASES, "mine"])


@given(tools, st.dictionaries(names, st.integers()), st.sets(names))
def test_fitting_twice_is_fitting_once_and_loses_no_value_of_the_tools_own(
    tool: str, arguments: dict[str, int], parameters: set[str]
) -> None:
    once = fit_arguments(tool, arguments, sorted(parameters))
    assert fit_arguments(tool, once, sorted(parameters)) == once
    assert all(once[key] == arguments[key] for key in parameters & arguments.keys())
