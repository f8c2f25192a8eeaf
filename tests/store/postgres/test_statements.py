"""Every statement that the store sends names the tree, so that a database which spreads its tables
over machines asks one of them. The exceptions are listed here, each with its reason."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from recollect.store.postgres.postgres_store import open_postgres
from recollect.store.postgres.tables import TABLES
from recollect.testing import model, user
from tests.both_stores import OpenStore
from tests.postgres_server import running_postgres
from tests.store.contract_stories import contract_stories, run_story
from tests.store.stories import grown

OF_THE_LOG = [table.name for table in TABLES if table.spread == "tree"]
NAMES_THE_TREE = re.compile(
    r"\btree (?:=|>) |= \w+\.tree\b|\(tree, |\b[sdf]\.tree = |tree = ANY|\w+\.tree = \w+\.tree"
)
# Statements on tables of the log that do not name a tree, by their beginning.
EXCEPTIONS = {
    r"SELECT s\.tree, .* FROM sessions s LEFT JOIN projects .* WHERE s\.trashed IS": "a listing",
    r"SELECT size, data FROM blobs WHERE address =": "a long text of any entry, by its address",
    r"SELECT DISTINCT address FROM blobs WHERE address >": "lists contents, to copy a store",
    r"SELECT d\.tree, d\.id, d\.writer FROM drafts": "finds the drafts of dead writers",
    r"DELETE FROM writers w": "forgets dead writers",
    r"SELECT count\((?:\*|DISTINCT owner)\) FROM (?:sessions|entries|blobs)": "`store status`",
    r"SELECT count\(\*\) FROM \(SELECT 1 FROM search": "a search: how common is a word",
}
FORBIDDEN = re.compile(
    r"advisory|LOCK TABLE|DEFERRABLE|INHERITS|jsonb|nextval|TRIGGER|EXCLUDE|DO UPDATE"
    r"|GENERATED|SERIAL|ON CONFLICT \(",
    re.IGNORECASE,
)


def _use_everything(url: str) -> None:
    """What the stories of the contract leave out."""

    async def use() -> None:
        async with open_postgres(url) as store:
            session, entries = await grown(store, "one", "x" * 10_000)
            await store.keep_counts("counter", {entries[0].id: (3,)})
            assert await store.counts("counter", [entries[0].id]) == {entries[0].id: (3,)}
            await store.short_entry_ids([entry.id for entry in entries])
            await store.short_session_ids([session.id])
            await store.sources()
            await store.page(session.id, start=0, limit=1)
            await store.sessions(limit=1, before=(session.used, session.id))
            await store.draft(session.id, model("so far"), parent=entries[-1].id)
            await store.counterparts(entries[0])
            await store.wait_for_append(session.id, session.head, 0.9)
            digests = await store.blobs()
            await store.blob(digests[0])
            info = await store.session(session.id)
            await store.adopt(info, None)
            await store.project_of(session.id)
            await store.branch(session.id, [user("y" * 5_000)], at=entries[0].id)
        async with open_postgres(url) as store:
            await store.check()

    asyncio.run(use())


def sent_statements(log: Path) -> set[str]:
    """The statements in a server's log, each on one line."""
    found = set()
    for record in log.read_text(encoding="utf-8", errors="replace").split("~~~ "):
        head, _, sql = record.partition(": ")
        kind, _, rest = sql.strip().partition(": ")
        if head == "LOG" and (kind == "statement" or kind.startswith("execute")):
            found.add(" ".join(rest.split()))
    return found


def test_every_statement_names_the_tree_or_is_listed_with_its_reason() -> None:
    with running_postgres(fsync="off", log_statement="all", log_line_prefix="'~~~ '") as server:

        def new_store() -> OpenStore:
            url = server.new_url()
            return lambda: open_postgres(url)

        log = server.folder / "log"
        for story in contract_stories().values():
            run_story(story, new_store)
        _use_everything(server.new_url())
        sent = sent_statements(log)
    tables = re.compile(rf"(?:FROM|JOIN|INTO|UPDATE) (?:{'|'.join(OF_THE_LOG)})\b")
    on_the_log = {sql for sql in sent if tables.search(sql) and not sql.startswith("CREATE")}
    assert len(on_the_log) > 50
    strays = {sql for sql in on_the_log if not NAMES_THE_TREE.search(sql)}
    unexplained = {sql for sql in strays if not any(re.match(e, sql) for e in EXCEPTIONS)}
    assert unexplained == set()
    unused = {e for e in EXCEPTIONS if not any(re.match(e, sql) for sql in strays)}
    assert unused == set()
    assert {sql for sql in sent if FORBIDDEN.search(sql)} == set()
    # a notice is a statement of its own, outside every append
    assert {sql for sql in sent if "notify" in sql.lower()} <= {"SELECT pg_notify($1, $2)"}


def test_the_tree_leads_every_key_of_the_log() -> None:
    for table in TABLES:
        assert table.key.split(", ")[0] == (table.spread or table.key)
        assert not table.references or "FOREIGN KEY (tree, " in table.references
