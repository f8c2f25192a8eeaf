"""Exporting: a stored session as a file of another program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from recollect.store.contract import Store
from recollect.transcripts.format_table import writer_of

IsNameTaken: TypeAlias = Callable[[str, str], bool]


async def export_session(
    store: Store, session_id: str, to: str, taken: IsNameTaken | None = None
) -> tuple[str, bytes]:
    """A proposed file name, and the session's path to its head as a file of that format.

    `taken` says whether a name belongs to another session than the one with this id in the file.
    """
    session = await store.session(session_id)
    file = writer_of(to).compose(session, await store.path(session.id))
    free = (name for name in file.names if taken is None or not taken(name, file.id_in_file))
    return next(free, file.names[-1]), file.data
