"""Replies in progress, stored outside the log until they are complete.

A draft has the id of the entry it will become; appending that entry removes the draft. If its
writer died, the next open appends it as an interrupted message: at the head if the session has not
moved since, else as a branch. Taking a slow writer for a dead one loses nothing: the log has the
draft, and the writer gets `HeadMoved` or `AlreadyExists`.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from recollect.entries import Entry, Message, decode
from recollect.errors import AlreadyExists
from recollect.store import session_rows
from recollect.store.ids import now
from recollect.store.log_writer import LogWriter, prepare_entries

WRITER_TIMEOUT = 30_000  # milliseconds; only for writers whose process cannot be looked up


def save_draft(
    writer: LogWriter, session: str, draft: str, json: bytes, parent: str | None
) -> None:
    db = writer.db
    number = session_rows.session_number(db, session)
    base = None if parent is None else session_rows.key_in_session(db, number, session, parent)
    if session_rows.find_key(db, draft) is not None:
        raise AlreadyExists("an entry", draft)
    packed = writer.packer.pack(json, moved=False)
    db.execute(
        "INSERT OR REPLACE INTO drafts(id, session, parent, writer, time, body)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (bytes.fromhex(draft), number, base, current_process(), now(), packed),
    )
    writer.drafts.add(draft)


def recover_drafts(writer: LogWriter) -> list[tuple[str, str]]:
    """Append drafts whose writer is gone as interrupted messages; their (session, entry) ids."""
    db, recovered = writer.db, []
    for raw_id, session, base, owner, time, body in list(
        db.execute("SELECT id, session, parent, writer, time, body FROM drafts ORDER BY id")
    ):
        if _is_running(owner, now() - time):
            continue
        db.execute("DELETE FROM drafts WHERE id = ?", (raw_id,))
        if session_rows.find_key(db, raw_id.hex()) is None:
            message = decode(writer.packer.unpack(body)[0])
            _append(writer, session, base, Entry(raw_id.hex(), None, time, message))
            ((name,),) = db.execute("SELECT id FROM sessions WHERE session = ?", (session,))
            recovered.append((name.hex(), raw_id.hex()))
    writer.clear_caches()
    return recovered


def _append(writer: LogWriter, session: int, base: int | None, draft: Entry) -> None:
    if isinstance(draft.body, Message):
        body = msgspec.structs.replace(draft.body, finish="interrupted")
        draft = msgspec.structs.replace(draft, body=body)
    head = session_rows.read_head(writer.db, session)
    if head.key == base:
        writer.append_at(session, head, prepare_entries([draft]))
    else:
        writer.branch_at(session, base, prepare_entries([draft]))


def current_process() -> str:
    """This process: its number and its start time, because numbers are reused."""
    return f"{os.getpid()}:{_start_time(os.getpid())}"


def _is_running(writer: str, silent: int) -> bool:
    """Whether a draft's writer still runs; where the system cannot tell, a timeout decides."""
    pid, _, started = writer.partition(":")
    if started:
        return _start_time(int(pid)) == started
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # another user's process
    return silent < WRITER_TIMEOUT


def _start_time(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()  # from the 3rd on; the 2nd may contain spaces
    return "" if fields[0] in "ZX" else fields[19]  # a zombie no longer runs
