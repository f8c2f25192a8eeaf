"""The tables of the PostgreSQL store, and the steps that bring an older database to this format.

A *tree* is a session with all its forks; its key is a hash of the first session's id, so that new
trees are spread evenly. The rule for a database that spreads its tables over machines:

- `spread` names the column that leads a table's key. For everything of the log it is the tree, and
  every statement on such a table names the tree, so one machine answers it.
- `session_trees`, `entry_places` and `writers` lead from what is looked up to the tree (or say that
  a server lives); they are keyed by that. `projects` is small and read everywhere: a copy of it is
  on every machine.
- Listings and searches ask every machine; their joins name the tree. `search` can be left out or
  moved, and rebuilt from the log.

Nothing here is a sequence, a trigger, an exclusion or deferrable constraint, an inherited table or
`jsonb`; nothing takes an advisory lock or a lock on a table. Upserts have no conflict target and
change nothing, which foreign tables can do as well.

Ten servers may start at once: a row of the table `recollect` guards the steps.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import psycopg
from psycopg import AsyncConnection
from psycopg.sql import SQL

from recollect.errors import NewerStore

FORMAT = 1
LISTED_LAG = 60_000  # milliseconds


class TableSpec(NamedTuple):
    name: str
    columns: str
    key: str
    spread: str = "tree"  # empty: a copy on every machine
    indexes: tuple[str, ...] = ()
    references: str = ""
    storage: str = ""

    @property
    def statements(self) -> list[str]:
        key = f"PRIMARY KEY ({self.key})"
        parts = ", ".join(filter(None, (self.columns, key, self.references)))
        return [
            f"CREATE TABLE IF NOT EXISTS {self.name} ({parts}) {self.storage}",
            *(
                f"CREATE INDEX IF NOT EXISTS {self.name}_{number} ON {self.name} {index}"
                for number, index in enumerate(self.indexes, 1)
            ),
        ]


_OF_SESSION = "FOREIGN KEY (tree, session) REFERENCES sessions (tree, session)"
_BYTES, _NUMBER, _TIME = "bytea NOT NULL", "integer NOT NULL", "bigint NOT NULL"

TABLES = (
    TableSpec(
        "session_trees",
        f"id {_BYTES}, tree {_BYTES}",
        key="id",
        spread="id",
        indexes=("(substr(id, 13))",),
    ),
    TableSpec(
        "entry_places",
        f"id {_BYTES}, tree {_BYTES}, segment {_NUMBER}, n {_NUMBER}",
        key="id",
        spread="id",
        indexes=("(substr(id, 13))",),
    ),
    TableSpec(
        "projects",
        f"project {_BYTES}, git bytea, path {_BYTES}, inode {_BYTES}, names {_BYTES},"
        f" created {_TIME}, seal {_BYTES}",
        key="project",
        spread="",
        indexes=("(git)", "(path)", "(inode)"),
    ),
    # `segment` and `n` say where the head is (its segment is empty while n is 0), `version` grows
    # with each change of the row or of the session's segments. `listed` follows `used` at most
    # `LISTED_LAG` behind: an index on `used` itself would make every append write to it, while now
    # most leave all indexes alone, for which pages keep room
    TableSpec(
        "sessions",
        f"tree {_BYTES}, session {_BYTES}, segment {_NUMBER}, n {_NUMBER}, head {_BYTES},"
        f" hash {_BYTES}, depth {_NUMBER}, version {_TIME}, used {_TIME}, created {_TIME},"
        f" listed {_TIME},"
        " trashed bigint, title text NOT NULL, owner text NOT NULL, project bytea, forked bytea,"
        f" unindexed boolean NOT NULL, seal {_BYTES}",
        key="tree, session",
        indexes=(
            "(listed)",
            "(owner, listed)",
            "(project, listed)",
            "(tree) WHERE unindexed",
        ),
        storage="WITH (fillfactor = 50)",
    ),
    TableSpec(
        "segments",
        f"tree {_BYTES}, segment {_NUMBER}, session {_BYTES}, base_segment integer,"
        f" base_n integer, depth {_NUMBER}, indexed integer NOT NULL DEFAULT 0, seal {_BYTES}",
        key="tree, segment",
        indexes=("(tree, session)",),
        references=_OF_SESSION,
    ),
    TableSpec(
        "entries",
        f"tree {_BYTES}, segment {_NUMBER}, n {_NUMBER}, id {_BYTES}, time {_TIME},"
        f" hash {_BYTES}, body {_BYTES}",
        key="tree, segment, n",
    ),
    TableSpec(
        "blobs",
        f"tree {_BYTES}, address {_BYTES}, size {_TIME}, data {_BYTES}",
        key="tree, address",
        indexes=("(address)",),
    ),
    TableSpec(
        "drafts",
        f"tree {_BYTES}, id {_BYTES}, session {_BYTES}, parent {_BYTES}, writer {_BYTES},"
        f" time {_TIME}, body {_BYTES}",
        key="tree, id",
        indexes=("(writer)",),
        references=_OF_SESSION,
    ),
    TableSpec(
        "writers", f"writer {_BYTES}, seen timestamptz NOT NULL", key="writer", spread="writer"
    ),
    TableSpec(
        "counts",
        f"tree {_BYTES}, counter text NOT NULL, id {_BYTES}, data {_BYTES}",
        key="tree, counter, id",
    ),
    TableSpec(
        "search",
        f"tree {_BYTES}, segment {_NUMBER}, n {_NUMBER}, session {_BYTES}, time {_TIME},"
        " words tsvector NOT NULL",
        key="tree, segment, n",
        indexes=("USING gin (words)",),
    ),
)
# One step for each format. A released step never changes; a new format is a new step at the end.
_STEPS = ([statement for table in TABLES for statement in table.statements],)

_GUARD = (
    "CREATE TABLE IF NOT EXISTS recollect (one integer PRIMARY KEY, format integer NOT NULL,"
    " spread boolean NOT NULL DEFAULT false)"
)
# what a server that creates the same table at the same moment makes of `IF NOT EXISTS`
_CREATED_MEANWHILE = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DuplicateTable,
    psycopg.errors.DuplicateObject,
)


async def migrate(db: AsyncConnection, address: str) -> bool:
    """Bring the database to the current format. Whether its tables are spread over machines."""
    if (known := await _read_format(db)) is None or known[0] < FORMAT:
        with suppress(*_CREATED_MEANWHILE):
            await db.execute(_GUARD)
        await db.execute("INSERT INTO recollect VALUES (1, 0) ON CONFLICT DO NOTHING")
        async with db.transaction():
            query = "SELECT format FROM recollect WHERE one = 1 FOR UPDATE"
            ((found,),) = await (await db.execute(query)).fetchall()  # others wait here
            for step in _STEPS[found:]:
                for statement in step:
                    await db.execute(SQL(statement))
            update = "UPDATE recollect SET format = greatest(format, %s) WHERE one = 1"
            await db.execute(update, (FORMAT,))
        known = await _read_format(db)
    assert known is not None
    if known[0] > FORMAT:
        raise NewerStore(address, known[0], FORMAT)
    return known[1]


async def _read_format(db: AsyncConnection) -> tuple[int, bool] | None:
    try:
        found = await (await db.execute("SELECT format, spread FROM recollect")).fetchall()
    except psycopg.errors.UndefinedTable:
        return None
    return found[0] if found else None
