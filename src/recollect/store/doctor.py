"""Examines a store, and repairs what can be repaired.

Examining changes nothing. Every entry's hash is checked, every seal, every stored content, SQLite's
own structure, and the search index against the words of the log. Repairing deletes nothing: what is
damaged is moved to the quarantine inside the store, or, when the file's structure is broken, a new
file is built from every row that can still be read and the old one is put aside beside it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec

from recollect.errors import CannotOpen, Damaged, NewerStore, RecollectError
from recollect.store import checks, mending, rescue, salvage
from recollect.store.checks import Finding
from recollect.store.place import connect, sync_directory
from recollect.store.schema import FORMAT
from recollect.store.wal import committed_frames, journal, report_loss
from recollect.store.writing import Writer

Progress = Callable[[str], None]


class Report(msgspec.Struct, frozen=True):
    path: str
    findings: tuple[Finding, ...]
    facts: dict[str, Any]

    @property
    def healthy(self) -> bool:
        return all(finding.repaired for finding in self.findings)


def examine(path: Path, progress: Progress | None = None) -> Report:
    """What is wrong with the store at `path`, and how large it is. Nothing is changed."""
    if not path.exists() or (path.stat().st_size == 0 and not journal(path).exists()):
        return Report(str(path), (), {"store": "there is none yet; the first session makes it"})
    expected = committed_frames(path)
    try:
        db = connect(path)
    except NewerStore:
        raise
    except RecollectError as error:
        if isinstance(error, CannotOpen) and path.stat().st_size and not salvage.is_ours(path):
            raise  # another program's file: nothing of ours to repair
        return Report(str(path), (_unreadable(error),), _file_facts(path))
    try:
        report_loss(path, db, expected)
        findings = checks.structure(db)
        findings += [
            Finding(what=f"a damaged journal was put aside as {name}", place="journal")
            for name in (aside.name for aside in rescue.journals(path))
        ]
        if not any(finding.place == "structure" for finding in findings):
            findings += checks.contents(Writer(db), progress or _silent)
        return Report(str(path), tuple(findings), _file_facts(path) | checks.facts(db))
    except (apsw.Error, Damaged, ValueError, TypeError, LookupError, AttributeError) as error:
        return Report(str(path), (_unreadable(error),), _file_facts(path))
    finally:
        db.close()


def repair(path: Path, progress: Progress | None = None) -> Report:
    """Repair what `examine` found; the report says what was done about each."""
    before = examine(path, progress)
    if not before.findings:
        return before
    tell = progress or _silent
    if any(finding.place == "structure" for finding in before.findings):
        tell("building a new file from what can be read")
        done = [_rebuild(path)]
    else:
        done = []
    db = connect(path)
    try:
        writer = Writer(db)
        done += [_rescue(writer, path, aside) for aside in rescue.journals(path)]
        done += mending.mend(writer, tell)
    finally:
        db.close()
    after = examine(path, progress)
    return Report(str(path), (*done, *after.findings), after.facts)


def _rescue(writer: Writer, path: Path, aside: Path) -> Finding:
    writer.db.pragma("foreign_keys", "off")
    writer.begin()
    try:
        finding = rescue.rescue(writer, path, aside)
        writer.db.execute("COMMIT")
    finally:
        if writer.db.in_transaction:
            writer.db.execute("ROLLBACK")
        writer.db.pragma("foreign_keys", "on")
    aside.rename(aside.with_name(aside.name.replace("damaged-", "rescued-")))
    return finding


def _rebuild(path: Path) -> Finding:
    """Put the broken file aside and a salvaged one in its place."""
    fresh = path.with_name(f"{path.name}.salvaged")
    fresh.unlink(missing_ok=True)
    saved = salvage.rebuild(path, fresh)
    aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            companion.rename(aside.with_name(aside.name + suffix))
    fresh.rename(path)
    sync_directory(path.parent)
    return Finding(
        what="the file's structure was broken",
        place="structure",
        repaired=f"built anew with {saved}; the broken file is kept as {aside.name}",
    )


def _unreadable(error: Exception) -> Finding:
    return Finding(what=str(error), place="structure")


def _file_facts(path: Path) -> dict[str, Any]:
    files = [path, journal(path)]
    aside = sorted(p.name for p in path.parent.glob(f"{path.name}*damaged-*"))
    return {
        "sqlite": apsw.sqlite_lib_version(),
        "format": FORMAT,
        "bytes_on_disk": sum(f.stat().st_size for f in files if f.exists()),
        "bytes_free_on_disk": shutil.disk_usage(path.parent).free,
        "permissions": f"{path.stat().st_mode & 0o777:04o}",
        "put_aside": aside,
    }


def _silent(_: str) -> None:
    return None
