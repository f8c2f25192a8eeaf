"""`recollect rename`, `fork`, `trash` and `restore`: one change each, reported in a sentence.

None of them deletes anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click
import msgspec

from recollect.cli.console import print_json
from recollect.cli.display_text import pluralize, sanitize
from recollect.cli.options import command, json_and_store_options
from recollect.cli.short_ids import find_entry, shorten_session_id
from recollect.cli.store_access import use_store
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore

ChangeResult = tuple[SessionInfo, str]  # the session, and what it now is or has


def _session_change(change: Callable[..., Awaitable[ChangeResult]]) -> Callable[..., None]:
    """Find the session, change it, and print what happened."""

    @wraps(change)
    def run(*, session: str, as_json: bool, file: Path | None, **given: Any) -> None:
        async def work(store: SqliteStore) -> tuple[SessionInfo, str]:
            changed, outcome = await change(store, await store.session(session), **given)
            return changed, f"session {await shorten_session_id(store, changed.id)} {outcome}"

        changed, sentence = use_store(file, work)
        if as_json:
            print_json(msgspec.to_builtins(changed))
        else:
            click.echo(sanitize(sentence))

    return run


@command(("recollect rename 019a8b1c 'Rate limiter, second try'", "a clearer title"))
@click.argument("session", metavar="ID")
@click.argument("title")
@json_and_store_options
@_session_change
async def rename(store: SqliteStore, session: SessionInfo, title: str) -> ChangeResult:
    """Give a session another title."""
    renamed = await store.rename(session.id, title)
    return renamed, f"is now called {renamed.title!r}"


@command(
    ("recollect trash 019a8b1c", "hide it"),
    ("recollect sessions --trash", "list the trash"),
    ("recollect restore 019a8b1c", "bring it back"),
)
@click.argument("session", metavar="ID")
@json_and_store_options
@_session_change
async def trash(store: SqliteStore, session: SessionInfo) -> ChangeResult:
    """Move a session to the trash; nothing is deleted."""
    trashed = await store.trash(session.id)
    short = await shorten_session_id(store, session.id)
    return trashed, f"is in the trash; `recollect restore {short}` brings it back"


@command(("recollect restore 019a8b1c", "bring it back"))
@click.argument("session", metavar="ID")
@json_and_store_options
@_session_change
async def restore(store: SqliteStore, session: SessionInfo) -> ChangeResult:
    """Bring a session back from the trash."""
    if session.trashed is None:
        return session, "is not in the trash"
    return await store.restore(session.id), "is back"


@command(
    ("recollect fork 019a8b1c", "continue from its head in a new session"),
    ("recollect fork 019a8b1c --at 019a8b1c77f0", "from an earlier entry"),
)
@click.argument("session", metavar="ID")
@click.option("--at", metavar="ENTRY", help="Fork here instead of at the head.")
@click.option("--title", default="", help="The new session's title.  [default: the old one's]")
@json_and_store_options
@_session_change
async def fork(
    store: SqliteStore, session: SessionInfo, at: str | None, title: str
) -> ChangeResult:
    """Start a session that shares another's beginning."""
    entry = await find_entry(store, at, session)
    forked = await store.fork(session.id, at=entry, title=title)
    origin = await shorten_session_id(store, session.id)
    return forked, f"shares its first {pluralize(forked.entries, 'entry')} with {origin}"
