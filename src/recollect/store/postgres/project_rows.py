"""The projects that sessions belong to: known by git history, else by path, else as a moved folder.

The key of a project is derived from what it is known by, so that two servers which see it first at
the same moment make one row.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TypeAlias

from recollect.store.contract import Project
from recollect.store.ids import now
from recollect.store.postgres.connections import Connection
from recollect.store.row_encoding import row_checksum
from recollect.store.session_rows import is_moved_folder, path_from_bytes, path_to_bytes

ProjectFields: TypeAlias = tuple[bytes | None, bytes, bytes, bytes]  # git, path, inode, names


def project_fields(project: Project) -> ProjectFields:
    git = None if project.git is None else path_to_bytes(project.git)
    names = path_to_bytes("\0".join(project.names))
    return git, path_to_bytes(project.path), path_to_bytes(project.inode), names


async def find_project(db: Connection, project: Project) -> bytes | None:
    git, path, inode, _ = project_fields(project)
    known = "SELECT project FROM projects WHERE git = %s"
    for (key,) in await (await db.execute(known, (git,))).fetchall():
        return bytes(key)
    at_path = (
        "SELECT project FROM projects WHERE path = %s AND (git IS NULL OR %s::bytea IS NULL)"
        " ORDER BY created DESC, project LIMIT 1"
    )
    for (key,) in await (await db.execute(at_path, (path, git))).fetchall():
        return bytes(key)
    if not project.inode or not project.names:
        return None
    moved = (
        "SELECT project, path, names FROM projects"
        " WHERE inode = %s AND (git IS NULL OR %s::bytea IS NULL)"
    )
    for key, old_path, names in await (await db.execute(moved, (inode, git))).fetchall():
        if is_moved_folder(project, old_path, names):
            return bytes(key)
    return None


async def save_project(db: Connection, project: Project) -> bytes:
    """In a transaction: the key of the project's row, which is updated, or inserted."""
    fields = project_fields(project)
    key = await find_project(db, project)
    if key is None:
        return await insert_project(db, fields)
    query = "SELECT git FROM projects WHERE project = %s FOR UPDATE"
    ((known,),) = await (await db.execute(query, (key,))).fetchall()
    # without a git history, git may have failed this time: the known one stays
    now_known = (fields[0] if fields[0] is not None else known, *fields[1:])
    await db.execute(
        "UPDATE projects SET git = %s, path = %s, inode = %s, names = %s, seal = %s"
        " WHERE project = %s AND seal <> %s",
        (*now_known, row_checksum(*now_known), key, row_checksum(*now_known)),
    )
    return key


async def insert_project(db: Connection, fields: ProjectFields) -> bytes:
    """The key of a row that says exactly this: a new one, or one that is there."""
    git, path, *_ = fields
    identity = (b"git", git) if git is not None else (b"path", path)
    for number in range(1_000):
        named = b"\0".join((*identity, str(number).encode()))
        key = blake2b(named, digest_size=16).digest()
        added = await db.execute(
            "INSERT INTO projects VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            (key, *fields, now(), row_checksum(*fields)),
        )
        if added.rowcount == 1 or await read_fields(db, key) == fields:
            return key
    raise AssertionError("a thousand projects at one path")


async def read_fields(db: Connection, key: bytes) -> ProjectFields | None:
    query = "SELECT git, path, inode, names FROM projects WHERE project = %s"
    return await (await db.execute(query, (key,), binary=True)).fetchone()


async def read_project(db: Connection, key: bytes | None) -> Project | None:
    fields = None if key is None else await read_fields(db, key)
    if fields is None:
        return None
    git, path, inode, names = fields
    return Project(
        path_from_bytes(path),
        None if git is None else path_from_bytes(git),
        path_from_bytes(inode),
        tuple(filter(None, path_from_bytes(names).split("\0"))),
    )
