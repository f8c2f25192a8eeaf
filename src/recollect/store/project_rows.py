"""The rows of projects, and how a project is recognized.

A project is known by its git history, else by its path, else by its inode and the names in it.
"""

from __future__ import annotations

import os

import apsw

from recollect.store import row_encoding
from recollect.store.contract import Project


def save_project(db: apsw.Connection, project: Project) -> int:
    """The number of the project's row, which is updated, or inserted if there is none."""
    number = find_project(db, project)
    git = None if project.git is None else path_to_bytes(project.git)
    names = path_to_bytes("\0".join(project.names))
    fields = (git, path_to_bytes(project.path), path_to_bytes(project.inode), names)
    if number is None:
        db.execute(
            "INSERT INTO projects(git, path, inode, names, seal) VALUES (?, ?, ?, ?, ?)",
            (*fields, row_encoding.row_checksum(*fields)),
        )
        return db.last_insert_rowid()
    if git is None:  # git failed this time: keep the known history
        ((git,),) = db.execute("SELECT git FROM projects WHERE project = ?", (number,))
        fields = (git, *fields[1:])
    db.execute(
        "UPDATE projects SET git = ?, path = ?, inode = ?, names = ?, seal = ? WHERE project = ?",
        (*fields, row_encoding.row_checksum(*fields), number),
    )
    return number


def find_project(db: apsw.Connection, project: Project) -> int | None:
    """Find by git history; else by path, unless it has another history; else as a moved folder."""
    git = None if project.git is None else path_to_bytes(project.git)
    known = db.execute("SELECT project FROM projects WHERE git = ?", (git,))
    at_path = db.execute(
        "SELECT project FROM projects WHERE path = ? AND (git IS NULL OR ? IS NULL)"
        " ORDER BY project DESC",
        (path_to_bytes(project.path), git),
    )
    for (number,) in (*known, *at_path):
        return int(number)
    return _moved_project(db, project)


def _moved_project(db: apsw.Connection, project: Project) -> int | None:
    """Find a renamed folder without git: the same inode, mostly the same names in it, and nothing
    at its old path. An inode alone is not enough: numbers are reused."""
    if not project.inode or not project.names:
        return None
    for number, path, names in db.execute(
        "SELECT project, path, names FROM projects WHERE inode = ? AND (git IS NULL OR ? IS NULL)",
        (path_to_bytes(project.inode), project.git and path_to_bytes(project.git)),
    ):
        before, current = set(path_from_bytes(names).split("\0")), set(project.names)
        similar = len(before & current) * 2 >= len(before | current)
        if similar and not os.path.lexists(path_from_bytes(path)):
            return int(number)
    return None


def path_to_bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")


def path_from_bytes(path: bytes) -> str:
    return path.decode("utf-8", "surrogatepass")
