"""Damage in the database is found entry by entry, and the rest stays readable."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from recollect.errors import Damaged
from recollect.store.postgres.postgres_store import open_postgres
from tests.postgres_server import PostgresServer
from tests.store.stories import grown, texts

DAMAGE = {
    "a body": "UPDATE entries SET body = replace_byte(body) WHERE n = 2",
    "an entry's time": "UPDATE entries SET time = time + 1 WHERE n = 2",
    "an entry that is gone": "DELETE FROM entries WHERE n = 2",
    "the newest entry": "DELETE FROM entries WHERE n = 3",
    "a long text": "UPDATE blobs SET data = replace_byte(data)",
    "a title": "UPDATE sessions SET title = 'forged'",
    "an owner": "UPDATE sessions SET owner = 'somebody else'",
    "a head": "UPDATE sessions SET head = (SELECT id FROM entries WHERE n = 2)",
    "a segment's depth": "UPDATE segments SET depth = 7",
}
REPLACE_BYTE = """
CREATE FUNCTION replace_byte(bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT set_byte($1, length($1) / 2, get_byte($1, length($1) / 2) # 1) $$
"""


@pytest.mark.parametrize("where", DAMAGE)
def test_damage_is_found(postgres: PostgresServer, where: str) -> None:
    url = postgres.new_url()

    async def story() -> None:
        async with open_postgres(url) as store:
            await grown(store, "one", "two", "a long text " * 1_000)
            assert await store.check() == ()
            with psycopg.connect(url, autocommit=True) as db:
                db.execute(REPLACE_BYTE)
                db.execute(DAMAGE[where])
            assert await store.check() != ()

    asyncio.run(story())


def test_a_damaged_entry_is_named_and_the_others_are_read(postgres: PostgresServer) -> None:
    url = postgres.new_url()

    async def story() -> None:
        async with open_postgres(url) as store:
            session, entries = await grown(store, "one", "two", "three")
            other, _ = await grown(store, "untouched")
            with psycopg.connect(url, autocommit=True) as db:
                db.execute(REPLACE_BYTE)
                id_ = bytes.fromhex(entries[1].id)
                db.execute("UPDATE entries SET body = replace_byte(body) WHERE id = %s", (id_,))
            with pytest.raises(Damaged) as raised:
                await store.path(session.id)
            assert raised.value.entries == (entries[1].id,)
            marked = await store.path(session.id, damaged="mark")
            assert (marked[0], marked[2]) == (entries[0], entries[2])
            assert texts(await store.path(other.id)) == ["untouched"]

    asyncio.run(story())
