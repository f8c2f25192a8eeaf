"""Stores by path and URL: which one is meant, and what of an address is shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recollect.errors import CannotOpen
from recollect.settings import store_path
from recollect.store.store_address import default_address, hide_password, parse_address

URL = "postgresql://me:secret@host:5433/db?sslmode=require"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("a/b.db", Path("a/b.db")),
        (Path("x://y"), Path("x://y")),
        ("sqlite:///a/b%20c.db", Path("a/b c.db")),
        ("sqlite:////a/b.db", Path("/a/b.db")),
        (URL, URL),
        ("postgres:///db", "postgres:///db"),
        ("PostgreSQL://h/db", "PostgreSQL://h/db"),
    ],
)
def test_an_address_is_a_path_or_the_url_of_a_database(
    given: Path | str, meant: Path | str
) -> None:
    assert parse_address(given) == meant


@pytest.mark.parametrize(
    "given", ["mysql://me:secret@h/db", "sqlite://secret.db", "sqlite://", "sqlite:///", "://x"]
)
def test_other_addresses_are_refused(given: str) -> None:
    with pytest.raises(CannotOpen):
        parse_address(given)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (URL, "postgresql://me@host:5433/db?sslmode=require"),
        ("postgresql://me:a:b@host/db", "postgresql://me@host/db"),
        ("postgresql://me:a@b@host/db", "postgresql://me@host/db"),
        ("postgresql://me:12/34@host/db", "postgresql://…"),
        ("postgresql://me:12?34@host/db", "postgresql://…"),
        ("postgresql://me:12#34@host/db", "postgresql://…"),
        ("postgresql://me:secret", "postgresql://…"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("postgresql://[broken", "postgresql://…"),
        ("postgresql://a:1,b:2,c/db", "postgresql://a:1,b:2,c/db"),
        (
            "postgresql:///db?host=/run/pg&password=secret&PASSWORD=x",
            "postgresql:///db?host=/run/pg",
        ),
        (Path("/a:b@c/d.db"), "/a:b@c/d.db"),
    ],
)
def test_no_password_is_shown(address: Path | str, shown: str) -> None:
    assert hide_password(address) == shown


def test_the_users_store_is_the_variables_then_the_settings_then_the_data_directorys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path))
    monkeypatch.delenv("RECOLLECT_STORE", raising=False)
    assert default_address() == store_path() == tmp_path / "recollect.db"
    assert default_address(URL) == URL
    assert default_address("~/x.db") == Path.home() / "x.db"
    monkeypatch.setenv("RECOLLECT_STORE", "other.db")
    assert default_address(URL) == Path("other.db")


def test_a_database_without_its_extra_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from recollect.store.open_store import open_store\n"
        f"open_store({URL!r})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = run.stderr.splitlines()[-1]
    assert "cannot open postgresql://me@host:5433/db?sslmode=require" in last
    assert "pip install 'recollect[postgres]'" in last
    assert "secret" not in last
