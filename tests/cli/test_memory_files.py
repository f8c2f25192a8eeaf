"""Memory files through the door: each once, whichever way it is named, and nothing in silence."""

from __future__ import annotations

import os

import pytest

from tests.cli.model_server import ENV, server, texts
from tests.cli.runner import Cli
from tests.models.server import HELLO, http


def told(cli: Cli, *, more: str = "") -> tuple[str, str]:
    """What a new session is told at its start, and the warnings that the user gets."""
    with server(cli, http(HELLO), more=more) as on:
        done = cli.ok("-p", "hi", env=ENV)
    return next(text for text in texts(on) if "currently working" in text), done.err


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_file_under_two_names_is_told_once(cli: Cli, link: object) -> None:
    assert callable(link)
    cli.ok("trust", "--yes")
    (cli.project / "AGENTS.md").write_text("Use tabs.\n")
    link(cli.project / "AGENTS.md", cli.project / "CLAUDE.md")
    (cli.project / "sub").mkdir()
    link(cli.project / "AGENTS.md", cli.project / "sub" / "GEMINI.md")
    assert told(cli)[0].count("Use tabs.") == 1
    (file,) = cli.ok("memory", "list", "--json").json["files"]
    assert file["path"] == str(cli.project / "AGENTS.md")


def test_the_user_is_told_that_not_all_folders_were_searched(cli: Cli) -> None:
    cli.ok("trust", "--yes")
    for number in range(200):
        (cli.project / f"d{number:03}").mkdir()
    assert "folders" not in told(cli)[1]
    (cli.project / "e").mkdir()
    (cli.project / "e" / "AGENTS.md").write_text("Deep.\n")
    memory, warnings = told(cli)
    assert "Deep." not in memory
    said = f"only the first 200 folders below {cli.project} were searched for memory files"
    assert said in warnings
    assert said in cli.ok("memory", "list").err


def test_the_global_memory_of_other_agents_can_be_named(cli: Cli) -> None:
    home = cli.home.parent  # of the user; recollect's own is below it
    for name in (".gemini/GEMINI.md", ".claude/CLAUDE.md"):
        (home / name).parent.mkdir()
        (home / name).write_text(f"From {name}.\n")
    names = '["AGENTS.md", "~/.gemini/GEMINI.md", "' + str(home / ".claude/CLAUDE.md") + '"]'
    memory, _ = told(cli, more=f"[agent]\nmemory_files = {names}\n")
    assert "From .gemini/GEMINI.md." in memory
    assert "From .claude/CLAUDE.md." in memory
    assert cli.ok("memory", "list").out.count("global") == 2
    cli.ok("memory", "add", "a fact")
    assert (cli.home / "AGENTS.md").exists()
    assert "a fact" not in (home / ".gemini/GEMINI.md").read_text()


def test_a_project_cannot_name_files_of_the_user(cli: Cli) -> None:
    (cli.home.parent / "private.md").write_text("Private.\n")
    file = cli.project / ".recollect" / "settings.toml"
    file.parent.mkdir()
    file.write_text('[agent]\nmemory_files = ["~/private.md", "NOTES.md"]\n')
    (cli.project / "NOTES.md").write_text("Notes.\n")
    cli.ok("trust", "--yes")
    memory, warnings = told(cli)
    assert "Notes." in memory
    assert "Private." not in memory
    assert "only bare names that end in .md or .txt count" in warnings


@pytest.mark.parametrize("name", ["sub/AGENTS.md", "~/", "/", "/a/..", "a:b", "~other/x.md", "."])
def test_other_paths_are_refused(cli: Cli, name: str) -> None:
    assert cli("config", "--add", "agent.memory_files", name).code != 0


def test_memory_that_the_user_hides_is_neither_read_nor_imported(cli: Cli) -> None:
    cli.ok("trust", "--yes")
    (cli.project / ".geminiignore").write_text("CLAUDE.md\nsecret.md\n")
    (cli.project / "CLAUDE.md").write_text("Not for you.\n")
    (cli.project / "secret.md").write_text("A secret.\n")
    (cli.project / "AGENTS.md").write_text("See @secret.md for more.\n")
    memory, warnings = told(cli)
    assert "Not for you." not in memory
    assert "A secret." not in memory
    assert "Import failed: @secret.md: it is hidden by .geminiignore" in memory
    assert "CLAUDE.md" not in warnings
    assert "CLAUDE.md: it is hidden by .geminiignore" in cli.ok("memory", "list").err


def test_memory_in_a_hidden_folder_is_named_in_the_list(cli: Cli) -> None:
    cli.ok("trust", "--yes")
    (cli.project / ".geminiignore").write_text("/private/\n")
    for folder in ("private", "private/deep", "node_modules/x", "shown"):
        (cli.project / folder).mkdir(parents=True)
        (cli.project / folder / "AGENTS.md").write_text(f"In {folder}.\n")
    memory, warnings = told(cli)
    assert "In shown." in memory
    assert "In private" not in memory
    assert "private" not in warnings
    listed = cli.ok("memory", "list").err
    for folder in ("private", "private/deep"):
        path = cli.project / folder / "AGENTS.md"
        assert f"not read: {path}: it is hidden by .geminiignore" in listed
    assert "node_modules" not in listed


def test_a_named_file_that_does_not_exist_is_told(cli: Cli) -> None:
    more = '[agent]\nmemory_files = ["AGENTS.md", "NOTES.md", "~/.claude/CLAUD.md"]\n'
    said = f"{cli.home.parent}/.claude/CLAUD.md: there is no such file; agent.memory_files names it"
    warnings = told(cli, more=more)[1]
    assert said in warnings
    listed = cli.ok("memory", "list").err
    assert f"not read: {said}" in listed
    for plain in ("AGENTS.md", "NOTES.md"):
        assert plain not in warnings + listed
    assert cli.ok("memory", "list", "--json").json["problems"] == [said]
