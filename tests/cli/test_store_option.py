"""Which store a command uses: `--store`, RECOLLECT_STORE, the user's settings."""

from __future__ import annotations

import shutil
from pathlib import Path

from recollect.testing import user
from tests.cli.runner import Cli

SECRET_URL = "mysql://me:secret@host/db"


def titles(cli: Cli, *arguments: str, **env: str) -> list[str]:
    return [each["title"] for each in cli.ok("sessions", "--json", *arguments, env=env).json]


def test_a_store_is_named_by_option_variable_or_setting(cli: Cli) -> None:
    cli.session([user("one")])
    for name in ("option", "variable", "setting"):
        shutil.copy(cli.store, cli.project / f"{name}.db")
        cli.ok("rename", "last", name, "--store", f"{name}.db")
    assert titles(cli, "--store", f"sqlite:///{cli.project}/option.db")[0] == "option"
    assert titles(cli, RECOLLECT_STORE="variable.db")[0] == "variable"
    cli.ok("config", "store", str(cli.project / "setting.db"))
    assert titles(cli)[0] == "setting"
    assert titles(cli, RECOLLECT_STORE="variable.db")[0] == "variable"
    assert titles(cli, "--store", "option.db", RECOLLECT_STORE="variable.db")[0] == "option"


def test_a_project_cannot_choose_the_store(cli: Cli) -> None:
    folder = cli.project / ".recollect"
    folder.mkdir()
    (folder / "settings.toml").write_text('store = "elsewhere.db"\n')
    cli.ok("trust")
    refused = cli("context", "last")
    assert refused.code != 0
    assert "a project may not set `store`" in refused.err


def test_no_command_shows_the_password_of_a_store(cli: Cli) -> None:
    for command in (("sessions",), ("doctor",), ("show", "last"), ("-p", "hi")):
        for given in (("--store", SECRET_URL), ()):
            env = {} if given else {"RECOLLECT_STORE": SECRET_URL}
            refused = cli(*command, *given, env=env)
            assert refused.code == 1 or command[0] == "-p"
            assert "mysql://me@host/db" in refused.err
            assert "secret" not in refused.out + refused.err


def test_the_doctor_says_that_it_checks_files(cli: Cli) -> None:
    for env in ({"RECOLLECT_STORE": "postgresql://me:secret@host/db"}, None):
        given = () if env else ("--store", "postgresql://me:secret@host/db")
        refused = cli("doctor", *given, env=env)
        assert refused.code == 1
        assert "cannot open postgresql://me@host/db: `recollect doctor` checks" in refused.err


def test_the_doctor_works_whatever_is_wrong_with_the_settings(cli: Cli) -> None:
    cli.session([user("one")])
    Path(cli.home / "settings.toml").write_text("store = 5\n")
    assert "healthy" in cli.ok("doctor").out
