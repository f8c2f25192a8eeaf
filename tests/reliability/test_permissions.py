"""Directories 0700, files 0600, whatever the umask says."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from recollect.settings import make_private_folder
from recollect.store.open_store import open_store
from recollect.testing import user
from tests.cli.runner import Cli


def modes(directory: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()}


def test_other_users_cannot_read_a_store_even_with_an_open_umask(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_store(tmp_path / "a" / "b" / "s.db") as store:
            session = await store.create()
            await store.append(session.id, [user("secret")], parent=None)
            assert modes(tmp_path / "a" / "b") == {
                "s.db": 0o600,
                "s.db-wal": 0o600,
                "s.db-shm": 0o600,
            }
            assert await store.path(session.id)
        assert modes(tmp_path / "a" / "b") == {"s.db": 0o600}
        assert modes(tmp_path / "a") == {"b": 0o700}
        assert modes(tmp_path)["a"] == 0o700

    before = os.umask(0)
    try:
        asyncio.run(run())
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    "line", [("token", "add", "anna"), ("memory", "add", "We use tabs."), ("import", "a.json")]
)
def test_the_first_command_makes_a_private_data_directory(cli: Cli, line: tuple[str, ...]) -> None:
    """The platform's own, with folders above it that are missing, as on a new machine."""
    (cli.project / "a.json").write_text('{"session_id": "a", "messages": [{"role": "user"}]}')
    share = cli.home.parent / "new" / "share"
    env = {"RECOLLECT_HOME": "", "XDG_DATA_HOME": str(share)}
    done = cli.process(*line, env=env, before=("sh", "-c", 'umask 000; exec "$@"', "sh"))
    assert done.code == 0, done.err
    assert modes(share) == {"recollect": 0o700}
    found = set(modes(share / "recollect").values())
    assert found
    assert found <= {0o600, 0o700}


def test_a_data_directory_that_was_open_to_others_is_closed(cli: Cli) -> None:
    own = cli.home.parent / "share" / "recollect"
    own.mkdir(parents=True, mode=0o755)
    cli.process(
        "token", "add", "anna", env={"RECOLLECT_HOME": "", "XDG_DATA_HOME": str(own.parent)}
    )
    assert modes(own.parent) == {"recollect": 0o700}


def test_doctor_names_a_folder_that_is_open_to_others(cli: Cli) -> None:
    cli.home.mkdir(mode=0o755)
    cli.home.chmod(0o755)
    cli.session([user("hello")])
    assert f"chmod 700 {cli.home}" in cli.ok("doctor").out.replace("\n", "")


def test_the_folders_above_a_new_folder_are_private_as_well(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private_folder(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert [modes(each) for each in (tmp_path, tmp_path / "a", tmp_path / "a" / "b")] == [
        {"a": 0o700},
        {"b": 0o700},
        {"c": 0o700},
    ]
