"""`recollect rename`, `fork`, `trash` and `restore`: one change each, reported in a sentence.

None of them deletes anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import click
import msgspec

from recollect.cli.console import print_json
from recollect.cli.display_text import pluralize, sanitize
from recollect.cli.options import examples, json_option, store_option
from recollect.cli.short_ids import find_entry, shorten_session_id
from recollect.cli.store_access import use_store
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore

ChangeResult = tuple[SessionInfo, Callable[[str], str]]  # a sentence, given the short id
SessionChange = Callable[[SqliteStore, SessionInfo], Awaitable[ChangeResult]]


def _change(prefix: str, file: Path | None, change: SessionChange, *, as_json: bool) -> None:
    """Find the session, change it, and print what happened."""

    async def work(store: SqliteStore) -> tuple[SessionInfo, str]:
        session, sentence = await change(store, await store.session(prefix))
        return session, sentence(await shorten_session_id(store, session.id))

    session, sentence = use_store(file, work)
    if as_json:
        print_json(msgspec.to_builtins(session))
    else:
        click.echo(sanitize(sentence))


@click.command(
    epilog=examples(("recollect rename 019a8b1c 'Rate limiter, second try'", "a clearer title"))
)
@click.argument("session", metavar="ID")
@click.argument("title")
@json_option
@store_option
def rename(*, session: str, title: str, as_json: bool, file: Path | None) -> None:
    """Give a session another title."""

    async def change(store: SqliteStore, found: SessionInfo) -> ChangeResult:
        renamed = await store.rename(found.id, title)
        return renamed, lambda short: f"session {short} is now called {renamed.title!r}"

    _change(session, file, change, as_json=as_json)


@click.command(
    epilog=examples(
        ("recollect trash 019a8b1c", "hide it"),
        ("recollect sessions --trash", "list the trash"),
        ("recollect restore 019a8b1c", "bring it back"),
    )
)
@click.argument("session", metavar="ID")
@json_option
@store_option
def trash(*, session: str, as_json: bool, file: Path | None) -> None:
    """Move a session to the trash; nothing is deleted."""

    async def change(store: SqliteStore, found: SessionInfo) -> ChangeResult:
        return (
            await store.trash(found.id),
            lambda short: (
                f"session {short} is in the trash; `recollect restore {short}` brings it back"
            ),
        )

    _change(session, file, change, as_json=as_json)


@click.command(epilog=examples(("recollect restore 019a8b1c", "bring it back")))
@click.argument("session", metavar="ID")
@json_option
@store_option
def restore(*, session: str, as_json: bool, file: Path | None) -> None:
    """Bring a session back from the trash."""

    async def change(store: SqliteStore, found: SessionInfo) -> ChangeResult:
        if found.trashed is None:
            return found, lambda short: f"session {short} is not in the trash"
        return await store.restore(found.id), lambda short: f"session {short} is back"

    _change(session, file, change, as_json=as_json)


@click.command(
    epilog=examples(
        ("recollect fork 019a8b1c", "continue from its head in a new session"),
        ("recollect fork 019a8b1c --at 019a8b1c77f0", "from an earlier entry"),
    )
)
@click.argument("session", metavar="ID")
@click.option("--at", "entry", metavar="ENTRY", help="Fork here instead of at the head.")
@click.option("--title", default="", help="The new session's title.  [default: the old one's]")
@json_option
@store_option
def fork(*, session: str, entry: str | None, title: str, as_json: bool, file: Path | None) -> None:
    """Start a session that shares another's beginning."""

    async def change(store: SqliteStore, found: SessionInfo) -> ChangeResult:
        at = None if entry is None else await find_entry(store, entry, found)
        forked = await store.fork(found.id, at=at, title=title)
        shared = pluralize(forked.entries, "entry")
        origin = await shorten_session_id(store, found.id)
        return forked, lambda short: f"session {short} shares its first {shared} with {origin}"

    _change(session, file, change, as_json=as_json)
