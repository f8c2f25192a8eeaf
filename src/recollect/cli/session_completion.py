"""Completes session ids in a shell, with their titles.

A completion shows nothing but completions: any failure completes nothing, and no store is made.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import apsw
import click
from click.shell_completion import CompletionItem

from recollect.cli.store_access import current_project
from recollect.display.display_text import one_line
from recollect.errors import RecollectError
from recollect.settings import load_settings
from recollect.store.contract import SessionInfo
from recollect.store.ids import LAST
from recollect.store.session_lookup import SessionList, list_sessions, short_ids
from recollect.store.sql_schema import refuse_foreign_file
from recollect.store.store_address import default_address, parse_address

MAX_SESSIONS = 50


def session_items(ctx: click.Context, typed: str) -> list[CompletionItem]:
    # a shell in the middle of a word is no place for an error, whatever it is
    with suppress(OSError, RecollectError, apsw.Error, RuntimeError, ValueError):
        file = ctx.params.get("file") or ctx.find_root().params.get("file")
        file = parse_address(file) if file else default_address(load_settings().store)
        if not isinstance(file, Path):
            return []  # a database may take long to answer
        trashed = ctx.info_name == "restore"
        found, short = _read_sessions(file, typed, trashed=trashed)
        items = [
            CompletionItem(short[session.id], help=one_line(session.title) or "(no title)")
            for session in found
        ]
        if LAST.startswith(typed) and items:
            items.insert(0, CompletionItem(LAST, help="the session used last"))
        return items
    return []


def _read_sessions(
    file: Path, typed: str, *, trashed: bool
) -> tuple[list[SessionInfo], dict[str, str]]:
    """The newest sessions whose id, as it is printed or as a whole, begins like this."""
    if not file.is_file():
        return [], {}
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        refuse_foreign_file(db, str(file))
        found = list_sessions(db, SessionList(project=current_project(), trashed=trashed))
        short = short_ids(db, (session.id for session in found), ("sessions",))
    finally:
        db.close()
    fitting = [each for each in found if short[each.id].startswith(typed.lower())]
    return fitting[:MAX_SESSIONS], short
