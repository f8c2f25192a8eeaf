"""Completion in shells: commands, options, ids with titles; never an error, never a new store."""

from __future__ import annotations

import subprocess

import pytest

from recollect.testing import user
from tests.cli.runner import PATIENCE, Cli


def complete(cli: Cli, line: str, shell: str = "bash", **env: str) -> str:
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    result = cli(env={**asked, "_RECOLLECT_COMPLETE": f"{shell}_complete", **env})
    assert result.err == ""
    return result.out


def test_commands_options_and_settings_are_completed(cli: Cli) -> None:
    assert "plain\tsessions\tList this project" in complete(cli, "recollect ses")
    assert "plain\t--curated\t" in complete(cli, "recollect show --cur")
    assert "plain\tagent.max_turns\t100" in complete(cli, "recollect config agent.max")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_ids_are_completed_with_titles(cli: Cli, shell: str) -> None:
    session, _ = cli.session([user("the rate limiter")])
    out = complete(cli, "recollect show ", shell)
    assert session.id[-8:] in out
    assert "the rate limiter" in out
    assert "last" in out
    assert session.id[-8:] in complete(cli, f"recollect trash {session.id[-8:-5]}", shell)
    cli.ok("trash", "last")
    assert session.id[-8:] not in complete(cli, "recollect show ", shell)
    assert session.id[-8:] in complete(cli, "recollect restore ", shell)


def test_ids_of_the_named_store_are_completed(cli: Cli) -> None:
    session, _ = cli.session([user("hi")])
    other = cli.project / "other.db"
    cli.store.rename(other)
    assert session.id[-8:] in complete(cli, f"recollect --store {other} show ")
    assert complete(cli, "recollect show ").strip() == ""
    assert not cli.store.exists()


def test_a_broken_store_completes_nothing_and_says_nothing(cli: Cli) -> None:
    cli.home.mkdir()
    cli.store.write_bytes(b"no database" * 1_000)
    assert complete(cli, "recollect show ").strip() == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_names_the_program_and_the_shell(cli: Cli, shell: str) -> None:
    script = cli.ok("completion", shell).out
    assert "recollect" in script
    assert f"_RECOLLECT_COMPLETE={shell}_complete" in script


def test_bash_accepts_the_script_and_lists_titles(cli: Cli) -> None:
    script = cli.ok("completion", "bash").out
    session, _ = cli.session([user("the rate limiter")])
    out = complete(cli, "recollect show ")
    play = (
        f"recollect() {{ printf '%s' '{out}'; }}\n{script}\n"
        "COMP_WORDS=(recollect show ''); COMP_CWORD=2; COMP_TYPE=63\n"
        '_recollect_completion recollect; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", play], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert f"{session.id[-8:]}  the rate limiter" in done.stdout
