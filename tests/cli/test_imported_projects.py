"""Imported sessions through the door: the project that a file names, and a title for each."""

from __future__ import annotations

import pytest

from tests.cli.runner import Cli
from tests.cli.session_files import claude_file, only_session

INIT = "<command-message>init is analyzing…</command-message>\n<command-name>/init</command-name>"
CLEAR = "<command-name>/clear</command-name>\n<command-args></command-args>"


@pytest.mark.parametrize(
    ("cwd", "project"),
    [
        ("C:\\proj", "C:\\proj"),
        ("c:\\proj\\", "C:\\proj"),
        ("C:/proj/sub", "C:\\proj\\sub"),
        ("\\\\server\\share\\proj", "\\\\server\\share\\proj"),
        ("/mnt/c/proj", "/mnt/c/proj"),
        ("/gone/proj", "/gone/proj"),
    ],
)
def test_a_session_belongs_to_the_folder_that_its_file_names(
    cli: Cli, cwd: str, project: str
) -> None:
    done = cli.ok("import", str(claude_file(cli.project / "a.jsonl", ["Hello."], cwd=cwd)))
    assert f"(of {project})" in done.out + done.err
    assert only_session(cli)["project"] == project
    assert cli.ok("sessions", "--json").json == []


@pytest.mark.parametrize("cwd", ["proj", "C:proj", "\\proj", "./proj", "", "/a\0b"])
def test_a_path_that_names_no_folder_leaves_the_session_here(cli: Cli, cwd: str) -> None:
    cli.ok("import", str(claude_file(cli.project / "a.jsonl", ["Hello."], cwd=cwd)))
    assert only_session(cli)["project"] == str(cli.project)


def test_paths_that_differ_in_the_drives_case_are_one_project(cli: Cli) -> None:
    for number, cwd in enumerate(("C:\\proj", "c:\\proj")):
        file = cli.project / f"{number}.jsonl"
        cli.ok("import", str(claude_file(file, [f"Hello {number}."], id_=f"s-{number}", cwd=cwd)))
    sessions = cli.ok("sessions", "--all", "--json").json
    assert [one["project"] for one in sessions] == ["C:\\proj"] * 2


def test_a_session_of_a_command_alone_has_its_name_as_the_title(cli: Cli) -> None:
    prompt = {"content": "Please analyze this codebase.", "isMeta": True}
    file = claude_file(cli.project / "a.jsonl", [INIT, prompt], cwd=cli.project)
    cli.ok("import", str(file))
    assert only_session(cli)["title"] == "/init"
    assert "/init" in cli.ok("sessions").out


def test_a_prompt_takes_the_place_of_a_commands_name_even_later(cli: Cli) -> None:
    file = cli.project / "a.jsonl"
    for contents, title in (
        ([CLEAR], "/clear"),
        ([CLEAR, INIT], "/clear"),
        ([CLEAR, INIT, "Repair the door."], "Repair the door."),
        ([CLEAR, INIT, "Repair the door.", "And the window."], "Repair the door."),
    ):
        cli.ok("import", str(claude_file(file, contents, cwd=cli.project)))
        assert only_session(cli)["title"] == title


def test_a_title_in_the_file_counts_more_than_a_command(cli: Cli) -> None:
    title = {"content": INIT, "type": "custom-title", "customTitle": "Doors"}
    cli.ok("import", str(claude_file(cli.project / "a.jsonl", [INIT, title], cwd=cli.project)))
    assert only_session(cli)["title"] == "Doors"
