"""`recollect memory`: what sessions are told, why not, one more fact, and what has changed."""

from __future__ import annotations

from tests.cli.model_server import ENV, server
from tests.cli.runner import Cli
from tests.models.server import HELLO, http


def test_the_memory_in_force_is_shown_and_untrusted_files_are_listed_with_the_reason(
    cli: Cli,
) -> None:
    (cli.project / "AGENTS.md").write_text("Use tabs.\n")
    assert "no memory files" in cli.ok("memory").err
    listed = cli.ok("memory", "list")
    assert listed.out == ""
    assert "AGENTS.md: not read, because the folder is not trusted" in listed.err
    cli.ok("trust", "--yes")
    assert "Use tabs." in cli.ok("memory").out
    assert "project/AGENTS.md  project" in cli.ok("memory", "list").out
    (file,) = cli.ok("memory", "list", "--json").json["files"]
    assert file["text"] == "Use tabs.\n"


def test_a_fact_is_added_to_the_users_own_file(cli: Cli) -> None:
    added = cli.ok("memory", "add", "we", "release on Mondays")
    assert "+- we release on Mondays" in added.out
    assert "- we release on Mondays" in (cli.home / "AGENTS.md").read_text()
    assert "we release on Mondays" in cli.ok("memory", "show").out
    assert cli("memory", "add").code == 1
    assert cli("memory", "list", "x").code == 2


def test_refresh_names_the_files_that_changed_since_the_last_session(cli: Cli) -> None:
    cli.ok("trust", "--yes")
    file = cli.project / "AGENTS.md"
    file.write_text("Use tabs.\n")
    with server(cli, http(HELLO)):
        cli.ok("-p", "hi", env=ENV)
    assert "nothing has changed" in cli.ok("memory", "refresh").err
    file.write_text("Use spaces.\n")
    cli.ok("memory", "add", "a fact")
    lines = cli.ok("memory", "refresh").out.splitlines()
    assert sorted(line.split()[0] for line in lines) == ["changed", "new"]
    file.unlink()
    assert "removed" in cli.ok("memory", "refresh").out
