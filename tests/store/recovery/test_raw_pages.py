"""Rows read from raw pages, compared with what SQLite reads."""

from __future__ import annotations

import tempfile
from pathlib import Path

import apsw
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.store.recovery.raw_pages import RawPages, SqlValue

PAGE = 4_096
LEAF = 0x0D
Rows = set[tuple[int, SqlValue]]

# A row's key and its new length; no length deletes it. Long ones spill over to other pages.
lengths = st.none() | st.integers(0, 300) | st.sampled_from([1_500, 9_000])
changes = st.lists(st.tuples(st.integers(1 << 24, (1 << 24) + 60), lengths), max_size=250)

# The last deleted row joins the free block of its neighbour: all its bytes are still there, and so
# is the pointer to it, after that of the last row.
joined = [(4, 100), (2, 100), (1, 100), (3, 100), (2, None), (4, None)]


def churned(path: Path, history: list[tuple[int, int | None]]) -> Rows:
    """A table after many changes, so that its pages have free blocks and rests of deleted rows."""
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE t(key INTEGER PRIMARY KEY, data BLOB); BEGIN")
    for version, (key, length) in enumerate(history):
        if length is None:
            db.execute("DELETE FROM t WHERE key = ?", (key,))
        else:
            data = f"{key} {version} ".encode().ljust(length, b".")
            db.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", (key, data))
    db.execute("COMMIT")
    rows = set(db.execute("SELECT key, data FROM t"))
    db.close()
    return rows


def read(path: Path) -> Rows:
    pages = RawPages(path, path.with_name("no journal"))
    return {(rowid, values[1]) for rowid, values in pages.rows() if len(values) == 2}


def leaves(path: Path) -> list[int]:
    """The offsets of the table's leaves; the first page is the schema's."""
    data = path.read_bytes()
    return [at for at in range(PAGE, len(data), PAGE) if data[at] == LEAF]


@given(changes)
@example(joined)
def test_the_rows_of_an_intact_file_are_those_that_sqlite_reads(
    history: list[tuple[int, int | None]],
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "t.db"
        assert churned(path, history) == read(path)


@given(changes, st.data())
def test_a_count_that_is_too_low_hides_no_row_and_revives_none(
    history: list[tuple[int, int | None]], draw: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "t.db"
        rows = churned(path, history)
        data = bytearray(path.read_bytes())
        at = draw.draw(st.sampled_from(leaves(path))) + 3
        count = int.from_bytes(data[at : at + 2], "big")
        data[at : at + 2] = draw.draw(st.integers(0, count)).to_bytes(2, "big")
        path.write_bytes(data)
        assert read(path) == rows
