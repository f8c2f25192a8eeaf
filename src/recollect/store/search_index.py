"""Updates the search index and the compression dictionary in the background.

An append marks its segment as pending in its own transaction; indexing reads the new entries, adds
their words, records its position and clears the mark, all in one transaction. So a crash loses
neither, and a search is always complete, because it indexes pending segments first. Indexing needs
no sync of its own: after a power cut it is repeated.
"""

from __future__ import annotations

import apsw

from recollect.errors import Damaged, NotFound
from recollect.store import row_encoding
from recollect.store.log_reader import load_dictionaries, segment_bounds
from recollect.store.log_writer import LogWriter
from recollect.store.search_tokenizer import index_text
from recollect.store.sql_schema import SEGMENT_MASK

SLICE = 512  # entries in one transaction; appends wait about ten milliseconds for it
LARGE_SLICE = 4_096  # when no append waits: a quarter less work for each
SAMPLES = 1_000


def is_behind(db: apsw.Connection) -> bool:
    return bool(list(db.execute("SELECT 1 FROM pending LIMIT 1")))


def index_slice(writer: LogWriter, size: int = SLICE) -> int:
    """Index up to `size` entries; returns how many."""
    db = writer.db
    db.pragma("synchronous", "normal")
    try:
        with writer.transaction():
            room = size
            for (segment,) in list(db.execute("SELECT line FROM pending LIMIT ?", (size,))):
                room -= _index_segment(writer, segment, room)
                if room <= 0:
                    break
        writer.forget_pending()
    finally:
        db.pragma("synchronous", "full")
    return size - room


def _index_segment(writer: LogWriter, segment: int, room: int) -> int:
    db = writer.db
    floor, top = segment_bounds(segment)
    ((done,),) = db.execute("SELECT indexed FROM lines WHERE line = ?", (segment,))
    query = "SELECT key, body FROM entries WHERE key > ? AND key <= ? ORDER BY key LIMIT ?"
    found = list(db.execute(query, (floor + done, top, room)))
    texts = ((key, _index_text(writer, key, body)) for key, body in found)
    insert = "INSERT INTO search(rowid, text) VALUES (?, ?)"
    db.executemany(insert, (pair for pair in texts if pair[1]))  # one text in memory at a time
    if found:
        reached = found[-1][0] & SEGMENT_MASK
        db.execute("UPDATE lines SET indexed = ? WHERE line = ?", (reached, segment))
    if len(found) < room:
        db.execute("DELETE FROM pending WHERE line = ?", (segment,))
    return len(found)


def _index_text(writer: LogWriter, key: int, stored: bytes) -> str:
    try:
        fresh = key in writer.fresh
        return index_text(writer.fresh.pop(key) if fresh else writer.body(stored))
    except (Damaged, NotFound, ValueError):
        return ""  # reading it reports the damage


def index_all(writer: LogWriter) -> None:
    while is_behind(writer.db):
        index_slice(writer, LARGE_SLICE)


def rebuild_index(writer: LogWriter) -> None:
    """Delete the index and build it again."""
    db = writer.db
    with writer.transaction():
        db.execute("INSERT INTO search(search) VALUES ('delete-all')")
        mark_all_pending(db)
    index_all(writer)


def mark_all_pending(db: apsw.Connection) -> None:
    db.execute("UPDATE lines SET indexed = 0")
    db.execute("INSERT OR IGNORE INTO pending SELECT line FROM lines")


def train_dictionary_once(writer: LogWriter) -> None:
    """Make the store's dictionary as soon as there are enough bodies to learn from."""
    if writer.packer.trained:
        return
    newest = writer.db.execute("SELECT body FROM entries ORDER BY key DESC LIMIT ?", (SAMPLES,))
    samples = [body for (stored,) in list(newest) if (body := _json(writer, stored))]
    if (dictionary := row_encoding.train_dictionary(samples)) is not None:
        with writer.transaction():
            save_dictionary(writer, dictionary)


def save_dictionary(writer: LogWriter, dictionary: bytes) -> None:
    """Within a transaction: store the first dictionary twice; later ones are dropped."""
    for number, data in load_dictionaries(writer.db).items():
        writer.packer.learn(number, data)
    if not writer.packer.trained:
        row = (1, row_encoding.content_address(dictionary), dictionary)
        insert = "INSERT INTO dictionaries(number, address, data) VALUES (?, ?, ?)"
        writer.db.executemany(insert, [row, row])
        writer.packer.learn(1, dictionary)


def _json(writer: LogWriter, stored: bytes) -> bytes:
    try:
        return writer.packer.unpack(stored)[0] if stored else b""
    except Damaged:
        return b""
