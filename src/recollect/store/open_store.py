"""Opens a store by its path or its URL.

A path, or a `sqlite:///` URL, is a file of SQLite; `postgresql://` and `postgres://` name a
database that several machines can share. Passwords of URLs appear in no error and no output.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, overload

from recollect.errors import CannotOpen
from recollect.settings import load_settings
from recollect.store.contract import Store
from recollect.store.sqlite import SqliteStore, open_sqlite
from recollect.store.store_address import default_address, hide_password, parse_address

if TYPE_CHECKING:
    from recollect.store.postgres.postgres_store import PostgresStore

DEFAULT_WAIT = 30.0  # seconds, where the settings are not asked


@overload
def open_store(where: Path) -> AbstractAsyncContextManager[SqliteStore]: ...
@overload
def open_store(
    where: Path | str | None = None, *, wait: float | None = None
) -> AbstractAsyncContextManager[Store]: ...
def open_store(
    where: Path | str | None = None, *, wait: float | None = None
) -> AbstractAsyncContextManager[Store]:
    """Open the store at `where` (by default the user's own), and close it at the end. A database
    that is away may take `wait` seconds to come back (by default as the settings say)."""
    address = default_address(load_settings().store) if where is None else parse_address(where)
    if isinstance(address, Path):
        return open_sqlite(address)
    return open_database(address, load_settings().store_wait if wait is None else wait)


def open_database(
    url: str, wait: float = DEFAULT_WAIT
) -> AbstractAsyncContextManager[PostgresStore]:
    check_driver(url)
    # late: psycopg is an extra, and takes 100 ms to load
    from recollect.store.postgres.postgres_store import open_postgres

    return open_postgres(url, patience=wait)


def check_driver(url: str) -> None:
    """Raise if what a database needs is not installed."""
    try:
        import_module("psycopg_pool")
    except ImportError as error:  # also where psycopg finds no libpq
        why = f"{error.name or error} is missing; `pip install 'recollect[postgres]'` brings it"
        raise CannotOpen(hide_password(url), why) from error
