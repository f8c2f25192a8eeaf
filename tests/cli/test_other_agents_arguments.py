"""Arguments as other agents' tools have them: taken if they mean the same, or refused."""

from __future__ import annotations

import json

import pytest

from recollect.entries import Text, ToolCall
from recollect.testing import call
from tests.cli.model_server import ENV, reply, server, texts
from tests.cli.runner import Cli
from tests.cli.test_other_agents_calls import run_calls

COUNT = "".join(f"line {n}\n" for n in range(1, 10))


@pytest.fixture
def folder(cli: Cli) -> Cli:
    (cli.project / "a.txt").write_text(COUNT)
    (cli.project / "b.txt").write_text("bee\n")
    (cli.project / ".gitignore").write_text("b.txt\n")
    return cli


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (call("read_file", paths=["a.txt", "b.txt"]), "bee"),
        (call("read_file", file_paths=["b.txt"]), "bee"),
        (call("read_file", path="b.txt", should_read_entire_file=True), "bee"),
        (call("read_file", path="b.txt", should_read_entire_file=False), "bee"),
        (call("read_file", file_path="b.txt", absolute_path="b.txt"), "bee"),
        (call("read_file", path="a.txt", start_line=4, end_line=5), "lines 4-5 of 9"),
        (call("read_file", path="a.txt", startLine="8"), "lines 8-9 of 9"),
        (call("read_file", path="a.txt", end_line=2), "lines 1-2 of 9"),
        (call("read_file", path="a.txt", view_range=[7, -1]), "lines 7-9 of 9"),
        (call("read_file", files=[{"file_path": "a.txt", "start_line": 3, "end_line": 4}]), "3-4"),
        (call("read_file", paths=[{"path": "a.txt", "offset": 3, "limit": 1}]), "lines 3-3 of 9"),
        (call("note", file_path="a.txt", note="mind it"), "mind it"),
        (call("list_directory", path=".", ignore=[]), "a.txt"),
        (call("list_directory", file_filtering_options={"respect_git_ignore": False}), "b.txt"),
        (call("search_file_content", pattern="4", respect_gemini_ignore=True), "line 4"),
        (call("todo", todos=[{"description": "x", "status": "done"}]), "1 of 1 done\n[x] x"),
        (call("todo", items=[{"title": "x", "status": "canceled"}]), "[-] x"),
        (call("todo", items=[{"content": "x", "state": "In Progress"}]), "[>] x"),
    ],
)
def test_what_means_the_same_is_taken(folder: Cli, asked: ToolCall, wanted: str) -> None:
    (seen,) = run_calls(folder, asked)
    assert wanted in seen
    assert "Error" not in seen


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (
            call("read_file", path="a.txt", file_path="b.txt"),
            "'path' and 'file_path' both name absolute_path",
        ),
        (call("read_file", absolute_path="a.txt", path="b.txt"), "give absolute_path alone"),
        (call("read_file", path="a.txt", start_line=5, end_line=2), "use offset and limit"),
        (call("read_file", path="a.txt", start_line=5, offset=2), "use offset and limit"),
        (call("read_file", path="a.txt", should_read_entire_file=True, limit=2), "contradict"),
        (call("read_file", paths=[{"path": "a.txt", "lines": "1-2"}]), "`lines`"),
        (
            call("read_file", paths=[{"path": "a.txt", "startLine": 2}], offset=100),
            "a.txt has lines of its own, and offset is for all files",
        ),
        (call("list_directory", path=".", ignore=["*.py"]), "find names with glob"),
        (call("list_directory", respect_gemini_ignore=False), "stays hidden"),
        (
            call("list_directory", file_filtering_options={"respect_gemini_ignore": False}),
            "stays hidden",
        ),
        (call("todo", todos=[{"description": "x", "status": "started"}]), "started"),
    ],
)
def test_what_would_change_the_result_is_refused_with_a_sentence(
    folder: Cli, asked: ToolCall, wanted: str
) -> None:
    (seen,) = run_calls(folder, asked)
    assert "Error" in seen
    assert wanted in seen
    assert "is missing" not in seen


def test_files_are_written_and_changed(folder: Cli) -> None:
    run_calls(
        folder,
        call("write_file", id="a", path="c.txt", file_text="one\n"),
        call("write_file", id="b", path="d.txt", text="two\n"),
        call("replace", id="c", path="b.txt", search="bee", replace="wasp"),
        "--mode=edit",
    )
    names = ("c.txt", "d.txt", "b.txt")
    assert [(folder.project / name).read_text() for name in names] == ["one\n", "two\n", "wasp\n"]


@pytest.mark.parametrize("arguments", [{"job": "1"}, {"job_id": "job-1"}, {"jobId": "1"}])
def test_a_job_is_known_by_its_number(cli: Cli, arguments: dict[str, str]) -> None:
    begun = call("run_shell_command", id="a", command="sleep 60", background=True)
    seen = run_calls(cli, begun, call("end_job", id="b", **arguments), "--mode=free")
    assert "no job" not in seen[1]
    assert "Error" not in seen[1]


def test_history_is_searched_and_recalled(cli: Cli) -> None:
    seen = run_calls(
        cli,
        call("search_history", id="a", query="Go"),
        call("recall", id="b", handles=["12345678"]),
    )
    assert "parameters are" not in "".join(seen)


@pytest.mark.parametrize(
    ("name", "arguments", "wanted"),
    [
        ("todo", {"todos": [{"description": "x", "status": "done"}]}, "[x] x"),
        ("todo", {"items": [{"task": "x", "status": "complete"}]}, "[x] x"),
        ("read_file", {"paths": ["b.txt"]}, "bee"),
        ("read_file", {"path": "a.txt", "start_line": "4", "end_line": "5"}, "lines 4-5 of 9"),
        ("read_file", {"path": "a.txt", "file_path": "b.txt"}, "both name absolute_path"),
    ],
)
def test_calls_in_text_have_the_same_names(
    folder: Cli, name: str, arguments: dict[str, object], wanted: str
) -> None:
    written = json.dumps({"tool_call": {"name": name, "arguments": arguments}})
    answers = (reply(Text(text=written)), reply(Text(text="Done.")))
    with server(folder, *answers, more='tools = "text"\n', window=30_000) as on:
        folder.ok("-p", "Go.", env=ENV)
        assert wanted in texts(on)[-1]
