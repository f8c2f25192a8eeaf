"""Spreads the store's tables over the machines of a Citus cluster, with Citus' own functions.

Tables of the log are distributed by the tree, together: every statement names one, so one machine
answers it. What was distributed by an earlier, interrupted run is left as it is.
"""

from __future__ import annotations

from psycopg.sql import SQL

from recollect.errors import CannotOpen
from recollect.store.postgres.connections import Connection, Database
from recollect.store.postgres.tables import TABLES, TableSpec, migrate

_FIRST = "sessions"  # the others refer to it, and are placed beside it
_REMEMBER = "UPDATE recollect SET spread = true WHERE one = 1"


def citus_statements(done: frozenset[str] = frozenset()) -> list[str]:
    """What is to be run, without the tables that are distributed already."""
    ordered = sorted(TABLES, key=lambda table: (table.spread != "", table.name != _FIRST))
    missing = (table for table in ordered if table.name not in done)
    return [*(_statement(table) for table in missing), _REMEMBER]


def _statement(table: TableSpec) -> str:
    if not table.spread:
        return f"SELECT create_reference_table('{table.name}')"
    beside = _FIRST if table.spread == "tree" and table.name != _FIRST else "none"
    call = f"'{table.name}', '{table.spread}', colocate_with => '{beside}'"
    return f"SELECT create_distributed_table({call})"


async def distribute_over_citus(url: str) -> list[str]:
    """Create or migrate the tables and distribute them; the statements that were run."""
    database = Database(url)
    async with await database.connect() as db:
        if not await _rows(db, "SELECT 1 FROM pg_extension WHERE extname = 'citus'"):
            why = (
                "it has no extension `citus`, nothing was distributed; run "
                "`CREATE EXTENSION citus` on every machine and add them with `citus_add_node`"
            )
            raise CannotOpen(database.address, why)
        await migrate(db, database.address)
        distributed = await _rows(db, "SELECT logicalrelid::text FROM pg_dist_partition")
        statements = citus_statements(frozenset(str(name) for (name,) in distributed))
        for statement in statements:
            await db.execute(SQL(statement))
    return statements


async def _rows(db: Connection, query: str) -> list[tuple[object, ...]]:
    return await (await db.execute(SQL(query))).fetchall()
