"""Which store a command uses: `--store`, RECOLLECT_STORE, the user's settings."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg

from recollect.testing import user
from tests.cli.runner import Cli
from tests.postgres_server import PostgresServer

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
    cli.ok("trust", "--yes")
    (folder / "settings.toml").write_text('store = "elsewhere.db"\n')
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


def test_the_doctor_checks_a_database_too(cli: Cli, postgres: PostgresServer) -> None:
    url = postgres.new_url()
    cli.session([user("one")])
    cli.ok("store", "copy", str(cli.store), url)
    report = cli.ok("doctor", "--json", env={"RECOLLECT_STORE": url}).json
    assert report["healthy"]
    assert report["facts"]["kind"].startswith("PostgreSQL")
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE sessions SET title = 'forged'")
    found = cli("doctor", "--store", url)
    assert found.code == 1
    assert "cannot be repaired" in found.out
    refused = cli("doctor", "--store", url, "--repair")
    assert refused.code == 1
    assert "replica or backup" in refused.err


def test_the_doctor_works_whatever_is_wrong_with_the_settings(cli: Cli) -> None:
    cli.session([user("one")])
    Path(cli.home / "settings.toml").write_text("store = 5\n")
    assert "healthy" in cli.ok("doctor").out
