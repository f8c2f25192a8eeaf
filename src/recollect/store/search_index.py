"""Keeps the search index up with the log, behind the writers' backs.

An append marks its line as pending in its own transaction; indexing reads what is new, adds its
words, notes how far it came and clears the mark, all in one transaction. So a crash loses neither,
and a search that finds a mark indexes first: it is always complete. Nothing here needs a sync of
its own: what a power cut takes away is done again.
"""

from __future__ import annotations

import apsw

from recollect.errors import Damaged, NotFound
from recollect.store import row_encoding
from recollect.store.log_reader import LogReader, load_dictionaries, segment_bounds
from recollect.store.log_writer import LogWriter
from recollect.store.sql_schema import SEGMENT_MASK

SLICE = 512  # entries in one transaction; appends wait some ten milliseconds for it at most
LARGE_SLICE = 4_096  # when no append waits: a quarter less work for each
SAMPLES = 1_000


def is_behind(db: apsw.Connection) -> bool:
    return bool(list(db.execute("SELECT 1 FROM pending LIMIT 1")))


def index_slice(writer: LogWriter, size: int = SLICE) -> int:
    """Index up to `size` entries; how many it were."""
    db = writer.db
    db.pragma("synchronous", "normal")
    try:
        writer.begin()
        room = size
        for (line,) in list(db.execute("SELECT line FROM pending LIMIT ?", (size,))):
            room -= _index_line(writer, line, room)
            if room <= 0:
                break
        writer.commit()
        writer.forget_pending()
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
        db.pragma("synchronous", "full")
    return size - room


def _index_line(writer: LogWriter, line: int, room: int) -> int:
    db = writer.db
    floor, top = segment_bounds(line)
    ((done,),) = db.execute("SELECT indexed FROM lines WHERE line = ?", (line,))
    found = list(
        db.execute(
            "SELECT key, body FROM entries WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
            (floor + done, top, room),
        )
    )
    words = ((key, _words(writer, key, body)) for key, body in found)
    db.executemany(
        "INSERT INTO search(rowid, text) VALUES (?, ?)", [pair for pair in words if pair[1]]
    )
    if found:
        reached = found[-1][0] & SEGMENT_MASK
        db.execute("UPDATE lines SET indexed = ? WHERE line = ?", (reached, line))
    if len(found) < room:
        db.execute("DELETE FROM pending WHERE line = ?", (line,))
    return len(found)


def _words(writer: LogWriter, key: int, stored: bytes) -> str:
    from recollect.store.search_tokenizer import index_text

    try:
        fresh = key in writer.fresh
        return index_text(writer.fresh.pop(key) if fresh else writer.body(stored))
    except (Damaged, NotFound, ValueError):
        return ""  # reading it reports the damage; the index has nothing to say about it


def index_all(writer: LogWriter) -> None:
    while is_behind(writer.db):
        index_slice(writer, LARGE_SLICE)


def rebuild_index(writer: LogWriter) -> None:
    """Forget the index and mark every line as pending, in one transaction."""
    db = writer.db
    writer.begin()
    db.execute("INSERT INTO search(search) VALUES ('delete-all')")
    db.execute("UPDATE lines SET indexed = 0")
    db.execute("INSERT OR IGNORE INTO pending SELECT line FROM lines")
    writer.commit()
    index_all(writer)


def train_dictionary_once(reader: LogReader) -> None:
    """Make the store's dictionary as soon as there is enough to learn from."""
    db = reader.db
    if reader.packer.trained:
        return
    newest = db.execute("SELECT body FROM entries ORDER BY key DESC LIMIT ?", (SAMPLES,))
    samples = [body for (stored,) in list(newest) if (body := _json(reader, stored))]
    if (dictionary := row_encoding.train_dictionary(samples)) is not None:
        db.execute("BEGIN IMMEDIATE")
        save_dictionary(reader, dictionary)
        db.execute("COMMIT")


def save_dictionary(reader: LogReader, dictionary: bytes) -> None:
    """Within a transaction: the first to arrive wins, the others use what is there."""
    for number, data in load_dictionaries(reader.db).items():
        reader.packer.learn(number, data)
    if not reader.packer.trained:
        kept = (1, row_encoding.content_address(dictionary), dictionary)
        insert = "INSERT INTO dictionaries(number, address, data) VALUES (?, ?, ?)"
        reader.db.executemany(insert, [kept, kept])
        reader.packer.learn(1, dictionary)


def _json(reader: LogReader, stored: bytes) -> bytes:
    try:
        return reader.packer.unpack(stored)[0] if stored else b""
    except Damaged:
        return b""
