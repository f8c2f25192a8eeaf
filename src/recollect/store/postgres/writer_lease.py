"""Replies in progress, stored outside the log until they are complete.

A draft has the id of the entry it will become; appending that entry removes the draft. It belongs
to a writer: a store that is open somewhere, which says every few seconds that it lives, by the
clock of the database. The drafts of a writer that has been silent for `LEASE` seconds, or that
closed, are appended as interrupted messages by whoever deletes the draft's row.
Taking a slow writer for a dead one loses nothing: the log has the draft, and the writer gets
`HeadMoved` or `AlreadyExists`.
"""

from __future__ import annotations

import os

import msgspec

from recollect.entries import Entry, Message, decode
from recollect.errors import AlreadyExists
from recollect.store.ids import now
from recollect.store.log_writer import prepare_entries
from recollect.store.postgres.branches import append_draft
from recollect.store.postgres.connections import Connection, Database
from recollect.store.postgres.path_reader import new_packer
from recollect.store.postgres.session_states import SessionState, find_place, place_in_session

LEASE = 30.0  # seconds
HEARTBEAT = 5.0
_ABANDONED = (
    "SELECT d.tree, d.id, d.writer FROM drafts d LEFT JOIN writers w ON w.writer = d.writer"
    " WHERE w.writer IS NULL OR w.seen < now() - make_interval(secs => %s)"
)
_DELETE_WRITERS = (
    "DELETE FROM writers w WHERE w.seen < now() - make_interval(secs => %s)"
    " AND NOT EXISTS (SELECT 1 FROM drafts d WHERE d.writer = w.writer)"
)


class WriterLease:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._writer = os.urandom(16)
        self._held = False

    async def save_draft(
        self, db: Connection, state: SessionState, draft: bytes, json: bytes, parent: str | None
    ) -> None:
        if parent is not None:
            await place_in_session(db, state.tree, state.id, parent)
        if await find_place(db, draft) is not None:
            raise AlreadyExists("an entry", draft.hex())
        if not self._held:
            await self.renew(db, first=True)
        base = b"" if parent is None else bytes.fromhex(parent)
        body = new_packer().pack(json, moved=False)
        fields = (state.id, base, self._writer, now(), body)
        updated = await db.execute(
            "UPDATE drafts SET session = %s, parent = %s, writer = %s, time = %s, body = %s"
            " WHERE tree = %s AND id = %s",
            (*fields, state.tree, draft),
        )
        if not updated.rowcount:
            await db.execute(
                "INSERT INTO drafts (tree, id, session, parent, writer, time, body)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (state.tree, draft, *fields),
            )

    async def renew(self, db: Connection, *, first: bool = False) -> None:
        """Say that this writer lives, if it has drafts."""
        if not (first or self._held):
            return
        update = "UPDATE writers SET seen = now() WHERE writer = %s"
        if not (await db.execute(update, (self._writer,))).rowcount:
            insert = "INSERT INTO writers VALUES (%s, now()) ON CONFLICT DO NOTHING"
            await db.execute(insert, (self._writer,))
        self._held = True

    async def recover(self) -> list[tuple[str, str]]:
        """Append the drafts whose writers are gone; their (session, entry) ids."""
        recovered = []
        for tree, draft, writer in await self._database.run(_abandoned):
            session = await self._database.run(
                lambda db, row=(tree, draft, writer): _recover_draft(db, *row)  # type: ignore[misc]
            )
            if session is not None:
                recovered.append((session.hex(), draft.hex()))
        return recovered

    async def release(self) -> None:
        """The writer closes: its drafts, if any are left, are for others to recover."""
        if self._held:
            delete = "DELETE FROM writers WHERE writer = %s"
            await self._database.run(lambda db: db.execute(delete, (self._writer,)))


async def _abandoned(db: Connection) -> list[tuple[bytes, bytes, bytes]]:
    found = await (await db.execute(_ABANDONED, (LEASE,), binary=True)).fetchall()
    if not found:
        await db.execute(_DELETE_WRITERS, (10 * LEASE,))
    return found


async def _recover_draft(db: Connection, tree: bytes, draft: bytes, writer: bytes) -> bytes | None:
    """The session, if this call is the one that recovered the draft."""
    async with db.transaction():
        delete = (
            "DELETE FROM drafts WHERE tree = %s AND id = %s AND writer = %s"
            " RETURNING session, parent, time, body"
        )
        row = await (await db.execute(delete, (tree, draft, writer), binary=True)).fetchone()
        if row is None or await find_place(db, draft) is not None:
            return None
        session, parent, time, body = row
        message = decode(new_packer().unpack(body)[0])
        if isinstance(message, Message):
            message = msgspec.structs.replace(message, finish="interrupted")
        new = prepare_entries([Entry(draft.hex(), None, time, message)])
        await append_draft(db, tree, session, parent, new)
    return bytes(session)
