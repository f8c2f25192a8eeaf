"""Opens a store by its path or its URL.

A path, or a `sqlite:///` URL, is a file of SQLite; `postgresql://` and `postgres://` name a
database that several machines can share. Passwords of URLs appear in no error and no output.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import overload

from recollect.settings import store_path
from recollect.store.contract import Store
from recollect.store.sqlite import SqliteStore, open_sqlite


@overload
def open_store(where: Path) -> AbstractAsyncContextManager[SqliteStore]: ...
@overload
def open_store(where: Path | str | None = None) -> AbstractAsyncContextManager[Store]: ...
def open_store(where: Path | str | None = None) -> AbstractAsyncContextManager[Store]:
    """Open the store at `where` (by default the user's own), and close it at the end."""
    return open_sqlite(Path(where) if where is not None else store_path())
