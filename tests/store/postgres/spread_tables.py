"""A PostgreSQL whose tables are hash-partitioned by tree over three other PostgreSQL servers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import psycopg

from recollect.store.postgres.tables import FORMAT, TABLES, TableSpec
from tests.postgres_server import PostgresServer, running_postgres

SHARDS = 3
_numbers = count()


def binaries_with_fdw() -> Path | None:
    """Debian's PostgreSQL brings the module that the wheel lacks."""
    for binaries in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        version = binaries.parent.name
        if Path(f"/usr/share/postgresql/{version}/extension/postgres_fdw.control").exists():
            return binaries
    return None


class SpreadPostgres:
    """Stores in schemas whose tables are on the shards."""

    def __init__(self, front: PostgresServer, shards: list[PostgresServer]) -> None:
        self.front, self._shards = front, shards
        with psycopg.connect(front.url(), autocommit=True) as db:
            db.execute("CREATE EXTENSION postgres_fdw")
            for number, shard in enumerate(shards):
                options = f"host '{shard.folder}', port '{shard.port}', dbname 'postgres'"
                db.execute(
                    f"CREATE SERVER shard_{number} FOREIGN DATA WRAPPER postgres_fdw"
                    f" OPTIONS ({options})"
                )
                db.execute(
                    f"CREATE USER MAPPING FOR postgres SERVER shard_{number}"
                    " OPTIONS (user 'postgres', password_required 'false')"
                )

    def new_url(self) -> str:
        schema = f"spread_{os.getpid()}_{next(_numbers)}"
        for shard in self._shards:
            with psycopg.connect(shard.url(schema=schema), autocommit=True) as db:
                db.execute(f"CREATE SCHEMA {schema}")
                for table in TABLES:
                    for statement in table.statements:
                        db.execute(statement)
        with psycopg.connect(self.front.url(schema=schema), autocommit=True) as db:
            db.execute(f"CREATE SCHEMA {schema}")
            db.execute("CREATE TABLE recollect (one integer, format integer, spread boolean)")
            db.execute("INSERT INTO recollect VALUES (1, %s, true)", (FORMAT,))
            for table in TABLES:
                for statement in _front_statements(table, schema):
                    db.execute(statement)
        return self.front.url(schema=schema)

    def rows(self, url: str, table: str) -> list[int]:
        """How many rows of a table each shard has."""
        schema = url.rpartition("%3D")[2]
        found = []
        for shard in self._shards:
            with psycopg.connect(shard.url(schema=schema)) as db:
                ((number,),) = db.execute(f"SELECT count(*) FROM {table}").fetchall()
                found.append(number)
        return found


def _front_statements(table: TableSpec, schema: str) -> Iterator[str]:
    if not table.spread:
        yield from table.statements
        return
    yield f"CREATE TABLE {table.name} ({table.columns}) PARTITION BY HASH ({table.spread})"
    for number in range(SHARDS):
        yield (
            f"CREATE FOREIGN TABLE {table.name}_on_{number} PARTITION OF {table.name}"
            f" FOR VALUES WITH (MODULUS {SHARDS}, REMAINDER {number}) SERVER shard_{number}"
            f" OPTIONS (schema_name '{schema}', table_name '{table.name}')"
        )


@contextmanager
def spread_postgres(binaries: Path) -> Iterator[SpreadPostgres]:
    with ExitStack() as stack:
        shards = [stack.enter_context(running_postgres(fsync="off")) for _ in range(SHARDS)]
        for shard in shards:  # the front server's user opens their sockets
            shard.folder.chmod(0o755)
        yield SpreadPostgres(stack.enter_context(running_postgres(binaries, fsync="off")), shards)
