"""Tools by name, and the files that the arguments of a call name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.toolkinds import (
    PathRange,
    classify_call,
    classify_tool,
    find_command,
    find_patched_paths,
    has_failed_file,
    normalize_path,
    parse_paths,
    parse_usual_path,
)
from tests.strategies import json_values, text


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("read_file", "read"),
        ("Read", "read"),
        ("view", "read"),
        ("filesystem-read", "read"),
        ("write_file", "write"),
        ("Write", "write"),
        ("filesystem-create", "write"),
        ("replace", "edit"),
        ("MultiEdit", "edit"),
        ("apply_patch", "edit"),
        ("run_shell_command", "shell"),
        ("Bash", "shell"),
        ("terminal-execute", "shell"),
        ("search_file_content", "search"),
        ("Grep", "search"),
        ("glob", "list"),
        ("list_directory", "list"),
        ("LS", "list"),
        ("TodoWrite", "plan"),
        ("update_plan", "plan"),
        ("write_todos", "plan"),
        ("mcp__files__read_file", "read"),
        ("functions.shell", "shell"),
        ("Task", "other"),
        ("", "other"),
    ],
)
def test_the_same_tool_is_recognised_under_the_names_of_many_agents(name: str, kind: str) -> None:
    assert classify_tool(name) == kind


def test_a_tool_that_does_several_things_says_which_in_its_arguments() -> None:
    name = "str_replace_based_edit_tool"
    assert classify_call(name, {"command": "view", "path": "a.py"}) == "read"
    assert classify_call(name, {"command": "create", "path": "a.py"}) == "write"
    assert classify_call("Bash", {"command": "view"}) == "shell"


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ({"path": "a.py"}, [("a.py", None, None)]),
        ({"file_path": "/p/a.py", "offset": 10, "limit": 5}, [("/p/a.py", 10, 14)]),
        ({"file_path": "a.py", "limit": 5}, [("a.py", None, 5)]),
        ({"file_path": "a.py", "offset": 0, "limit": 5}, [("a.py", 1, 5)]),
        ({"path": "a.py", "view_range": [3, -1]}, [("a.py", 3, None)]),
        ({"path": ["a.py", "b.py"]}, [("a.py", None, None), ("b.py", None, None)]),
        ({"paths": ["a.py", 3, None, ""]}, []),  # what is not known may be any file
        (
            {"filePath": [{"path": "a.py", "startLine": 1, "endLine": 9}, {"path": "b.py"}]},
            [("a.py", 1, 9), ("b.py", None, None)],
        ),
        ({"path": '["a.py", {"path": "b.py", "startLine": "4"}]'}, [("a.py",), ("b.py", 4)]),
        ({"path": "[draft].py"}, [("[draft].py",)]),
        ({"path": ""}, []),
        ({"path": None}, []),
        ({"path": 7}, []),
        ({"path": True}, []),
        ({"path": "[]"}, []),
        ({}, []),
    ],
)
def test_the_files_a_read_names_are_found_in_every_shape_that_agents_use(
    arguments: object, paths: list[tuple[object, ...]]
) -> None:
    assert parse_paths(json.dumps(arguments)) == tuple(PathRange(*path) for path in paths)  # type: ignore[arg-type]


@pytest.mark.parametrize("chosen", [{"tail": 3}, {"pages": "1-2"}, {"symbols": ["f"]}])
def test_an_argument_that_is_not_understood_may_choose_a_part_of_the_file(chosen: object) -> None:
    assert isinstance(chosen, dict)
    harmless = {"path": "a.py", "description": "a look", "force": True, "range": None}
    assert parse_paths(json.dumps(harmless)) == (PathRange("a.py"),)
    (found,) = parse_paths(json.dumps(harmless | chosen))
    assert found == PathRange("a.py", is_chosen=True)


@pytest.mark.parametrize("arguments", ["", "null", "[1]", '"a.py"', '{"path": "a.py"', "{" * 9999])
def test_arguments_that_cannot_be_read_name_no_file(arguments: str) -> None:
    assert parse_paths(arguments) == ()


@given(text | json_values.map(json.dumps))
def test_any_arguments_give_paths_or_nothing(arguments: str) -> None:
    for found in parse_paths(arguments):
        assert isinstance(found, PathRange)
        assert found.path


def test_a_patch_names_the_files_it_changes() -> None:
    patch = "*** Begin Patch\n*** Update File: a/b.py\n@@\n-x\n+y\n*** Add File: c.py\n+z\n"
    assert find_patched_paths({"input": patch}) == ("a/b.py", "c.py")


def test_a_command_may_be_a_text_or_a_list() -> None:
    assert find_command({"command": "ls -l"}) == "ls -l"
    assert find_command({"command": ["bash", "-lc", "ls -l"]}) == "ls -l"
    assert find_command({"cmd": ["ls", "-l"]}) == "ls -l"
    assert find_command({"command": 3}) == ""


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/p/src/a.py", "src/a.py"),
        ("src/a.py", "src/a.py"),
        ("./src//x/../a.py", "src/a.py"),
        ("src\\a.py", "src/a.py"),
        ("/p/../q/a.py", "/q/a.py"),
        ("/project/a.py", "/project/a.py"),
        ("../a.py", "../a.py"),
        ("/p", "."),
        ("file:///p/a.py", "a.py"),
    ],
)
def test_the_names_of_one_file_become_one_name(path: str, normal: str) -> None:
    assert normalize_path(path, "/p") == normal


@pytest.mark.parametrize(
    "spelling",
    [
        "C:\\work\\src\\a.py",
        "c:\\work\\src\\a.py",
        "c:/work/src/a.py",
        "C:/work/./lib/../src/a.py",
        "C:\\..\\work\\src\\a.py",
        "\\\\?\\C:\\work\\src\\a.py",
        "file:///C:/work/src/a.py",
    ],
)
@pytest.mark.parametrize("root", ["C:\\work", "c:/work/", "c:\\Work\\..\\work"])
def test_a_windows_drive_has_one_name(spelling: str, root: str) -> None:
    assert normalize_path(spelling, root) == "src/a.py"
    assert normalize_path(spelling) == "c:/work/src/a.py"
    assert normalize_path(spelling, "C:\\") == "work/src/a.py"
    assert normalize_path(root, root) == "."


def test_shares_and_the_files_of_wsl_have_one_name() -> None:
    share = (
        "\\\\Server\\Docs\\A.txt",
        "\\\\server\\docs\\A.txt",
        "\\\\?\\UNC\\SERVER\\docs\\A.txt",
    )
    assert {normalize_path(path) for path in share} == {"/server/docs/A.txt"}
    inside = ("\\\\wsl$\\Ubuntu\\home\\u\\a", "\\\\wsl.localhost\\Ubuntu\\home\\u\\a", "/home/u/a")
    assert {normalize_path(path) for path in inside} == {"/home/u/a"}
    assert normalize_path("a:b") == "a:b"  # a name, not a drive
    assert normalize_path("C:\\") == normalize_path("c:/") == "c:/"


_PIECES = st.sampled_from(
    ["a", "src", ".", "..", "", " ", "[", "é", "\\", "\n", "\0", "\u3000", "file:", "C:", "?"]
)


@given(
    st.sampled_from(["path", "file_path", "absolute_path", "other"]),
    st.lists(_PIECES, max_size=6).map("/".join) | st.text(max_size=12),
    st.sampled_from(["", "/p", "src", "/a/src/"]),
    st.booleans(),
)
def test_the_short_way_to_a_path_leads_where_the_long_one_does(
    key: str, path: str, root: str, ascii_only: bool
) -> None:
    arguments = json.dumps({key: path, "limit": 3}, ensure_ascii=ascii_only)
    short = parse_usual_path(arguments, root)
    assert not short or [short] == [normalize_path(f.path, root) for f in parse_paths(arguments)]


def test_the_short_way_is_taken_by_the_reads_that_most_agents_make() -> None:
    assert parse_usual_path('{"file_path":"/p/src/a.py","offset":3}', "/p") == "src/a.py"
    assert parse_usual_path('{"path": "./a.py"}', "") == "a.py"


@given(text, text)
def test_a_normal_path_stays_as_it_is(path: str, root: str) -> None:
    once = normalize_path(path, root)
    assert normalize_path(once, "") == once


def test_lines_named_beside_a_list_apply_to_every_file_that_names_none() -> None:
    arguments = json.dumps({"filePath": ["a.ts", {"path": "b.ts", "startLine": 5}], "endLine": 10})
    assert parse_paths(arguments) == (PathRange("a.ts", None, 10), PathRange("b.ts", 5, None))


def test_a_block_says_that_its_file_could_not_be_read() -> None:
    assert has_failed_file("'b.py' was not read: permission denied")
    assert has_failed_file("Error: no such file")
    assert has_failed_file("❌ b.py: not there")
    assert not has_failed_file("'b.py', all lines 2:\n1→Error: in the file\n2→")
    assert not has_failed_file("Errors are values.")
