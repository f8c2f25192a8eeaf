"""`recollect rename`, `fork`, `trash` and `restore`: one change each, reported in a sentence.

None of them deletes anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeAlias

import click
import msgspec

from recollect.cli.console import print_json
from recollect.cli.options import command, json_and_store_options
from recollect.cli.session_arguments import session_argument, session_before
from recollect.cli.session_choice import (
    find_session,
    find_trashed_session,
    find_writable_session,
)
from recollect.cli.store_access import use_store
from recollect.display.display_text import pluralize, sanitize
from recollect.display.short_ids import find_entry, shorten_session_id
from recollect.store.contract import SessionInfo, Store
from recollect.store.store_address import StoreAddress

ChangeResult: TypeAlias = tuple[SessionInfo, str]  # the session, and what it now is or has
Change: TypeAlias = Callable[..., Awaitable[ChangeResult]]


def _session_change(
    find: Callable[[Store, str], Awaitable[SessionInfo]],
) -> Callable[[Change], Callable[..., None]]:
    """Find the session, change it, and print what happened."""

    def decorate(change: Change) -> Callable[..., None]:
        @wraps(change)
        def run(*, session: str, as_json: bool, file: StoreAddress | None, **given: Any) -> None:
            async def work(store: Store) -> tuple[SessionInfo, str]:
                changed, outcome = await change(store, await find(store, session), **given)
                return changed, f"session {await shorten_session_id(store, changed.id)} {outcome}"

            changed, sentence = use_store(file, work)
            if as_json:
                print_json(msgspec.to_builtins(changed))
            else:
                click.echo(sanitize(sentence))

        return run

    return decorate


@command(
    ("recollect rename 5f3a9c21 'Rate limiter, second try'", "a clearer title"),
    ("recollect rename 'Rate limiter, third try'", "the session used last"),
)
@session_before("title", is_id=False)
@json_and_store_options
@_session_change(find_writable_session)
async def rename(store: Store, session: SessionInfo, title: str) -> ChangeResult:
    """Give a session another title."""
    renamed = await store.rename(session.id, title)
    return renamed, f"is now called {renamed.title!r}"


@command(
    ("recollect trash 5f3a9c21", "hide it"),
    ("recollect trash last", "hide the session used last"),
    ("recollect sessions --trash", "list the trash"),
    ("recollect restore 5f3a9c21", "bring it back"),
)
@session_argument(required=True)
@json_and_store_options
@_session_change(find_session)
async def trash(store: Store, session: SessionInfo) -> ChangeResult:
    """Move a session to the trash; nothing is deleted."""
    trashed = await store.trash(session.id)
    short = await shorten_session_id(store, session.id)
    return trashed, f"is in the trash; `recollect restore {short}` brings it back"


@command(
    ("recollect restore 5f3a9c21", "bring it back"),
    ("recollect restore last", "bring back the session trashed last"),
)
@session_argument()
@json_and_store_options
@_session_change(find_trashed_session)
async def restore(store: Store, session: SessionInfo) -> ChangeResult:
    """Bring a session back from the trash."""
    if session.trashed is None:
        return session, "is not in the trash"
    return await store.restore(session.id), "is back"


@command(
    ("recollect fork 5f3a9c21", "continue from its head in a new session"),
    ("recollect fork 5f3a9c21 --at 77f0b1de", "from an earlier entry"),
)
@session_argument()
@click.option("--at", metavar="ENTRY", help="Fork here instead of at the head.")
@click.option("--title", default="", help="The new session's title.  [default: the old one's]")
@json_and_store_options
@_session_change(find_writable_session)
async def fork(store: Store, session: SessionInfo, at: str | None, title: str) -> ChangeResult:
    """Start a session that shares another's beginning."""
    entry = await find_entry(store, at, session)
    forked = await store.fork(session.id, at=entry, title=title)
    origin = await shorten_session_id(store, session.id)
    return forked, f"shares its first {pluralize(forked.entries, 'entry')} with {origin}"
