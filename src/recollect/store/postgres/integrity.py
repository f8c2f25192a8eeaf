"""The doctor's checks on PostgreSQL, and how much a database holds. They change nothing."""

from __future__ import annotations

from recollect.errors import Damaged
from recollect.store.postgres.connections import Connection
from recollect.store.postgres.path_reader import open_blob, read_segment
from recollect.store.postgres.session_states import SessionState, seal_of
from recollect.store.postgres.tables import FORMAT
from recollect.store.recovery.integrity_checks import Finding
from recollect.store.row_encoding import row_checksum

_BATCH = 100  # trees or blobs at a time


_COUNTS = {
    "sessions": "SELECT count(*) FROM sessions WHERE trashed IS NULL",
    "trashed_sessions": "SELECT count(*) FROM sessions WHERE trashed IS NOT NULL",
    "owners": "SELECT count(DISTINCT owner) FROM sessions WHERE owner <> ''",
    "entries": "SELECT count(*) FROM entries",
    "contents": "SELECT count(*) FROM blobs",
    "bytes_on_disk": "SELECT pg_database_size(current_database())",
}


async def read_facts(db: Connection) -> dict[str, int | str]:
    facts: dict[str, int | str] = {
        "kind": f"PostgreSQL {db.info.parameter_status('server_version')}",
        "format": FORMAT,
    }
    for name, query in _COUNTS.items():
        ((facts[name],),) = await (await db.execute(query)).fetchall()
    return facts


async def check_database(db: Connection) -> tuple[Finding, ...]:
    """Tree by tree: the hashes of entries, checksums, heads, contents; then the projects."""
    findings = await _check_projects(db)
    after = b""
    while True:
        query = "SELECT DISTINCT tree FROM sessions WHERE tree > %s ORDER BY tree LIMIT %s"
        trees = await (await db.execute(query, (after, _BATCH), binary=True)).fetchall()
        for (tree,) in trees:
            findings += await _check_tree(db, tree)
            after = tree
        if len(trees) < _BATCH:
            break
    return tuple(findings + await _check_blobs(db))


async def _check_tree(db: Connection, tree: bytes) -> list[Finding]:
    found: list[Finding] = []
    query = (
        "SELECT segment, session, base_segment, base_n, depth, seal FROM segments"
        " WHERE tree = %s ORDER BY segment"
    )
    for segment, *fields, seal in await (await db.execute(query, (tree,), binary=True)).fetchall():
        place = f"segment {segment} of tree {tree.hex()}"
        session, base, base_n, depth = fields
        if row_checksum(tree, segment, session, base, base_n, depth) != seal:
            found.append(Finding(what="it is not as it was written", place=place, repairable=False))
        try:
            await read_segment(db, tree, segment, mark=False)
        except Damaged as error:
            what = error.what
            found.append(Finding(what=what, place=place, repairable=False, entries=error.entries))
    return found + await _check_sessions(db, tree)


async def _check_sessions(db: Connection, tree: bytes) -> list[Finding]:
    found = []
    query = (
        "SELECT s.tree, s.session, s.segment, s.n, s.head, s.hash, s.depth, s.version, s.used,"
        " s.created, s.trashed, s.title, s.owner, s.project, s.forked, s.seal, e.id, e.hash"
        " FROM sessions s LEFT JOIN segments g ON g.tree = s.tree AND g.segment = s.segment"
        " LEFT JOIN entries e ON e.tree = s.tree"
        " AND e.segment = CASE WHEN s.n = 0 THEN g.base_segment ELSE s.segment END"
        " AND e.n = CASE WHEN s.n = 0 THEN g.base_n ELSE s.n END WHERE s.tree = %s"
    )
    for *fields, head, digest in await (await db.execute(query, (tree,), binary=True)).fetchall():
        state = SessionState(*fields)
        place = f"session {state.id.hex()}"
        sealed = seal_of(state.id, state.title, state.owner, state.project, state.created)
        if sealed != state.seal:
            found.append(Finding(what="it is not as it was written", place=place, repairable=False))
        if state.head and (state.head, state.hash) != (head, digest):
            what = "its newest entries are missing, or are not those that were appended"
            found.append(Finding(what=what, place=place, repairable=False))
    return found


async def _check_blobs(db: Connection) -> list[Finding]:
    found: list[Finding] = []
    last = (b"", b"")
    while True:
        query = (
            "SELECT tree, address, size, data FROM blobs WHERE (tree, address) > (%s, %s)"
            " ORDER BY tree, address LIMIT %s"
        )
        rows = await (await db.execute(query, (*last, _BATCH), binary=True)).fetchall()
        for tree, address, size, data in rows:
            last = (tree, address)
            try:
                open_blob(address, size, data)
            except Damaged as error:
                place = f"content {address.hex()}"
                found.append(Finding(what=error.what, place=place, repairable=False))
        if len(rows) < _BATCH:
            return found


async def _check_projects(db: Connection) -> list[Finding]:
    query = "SELECT project, git, path, inode, names, seal FROM projects"
    return [
        Finding(what="it is not as it was written", place=f"project {key.hex()}", repairable=False)
        for key, *fields, seal in await (await db.execute(query, binary=True)).fetchall()
        if row_checksum(*fields) != seal
    ]
