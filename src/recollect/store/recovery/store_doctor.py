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
from recollect.store.log_writer import LogWriter
from recollect.store.open_file import connect_to_store, sync_directory
from recollect.store.recovery import integrity_checks, journal_rescue, quarantine, salvage
from recollect.store.recovery.integrity_checks import Finding
from recollect.store.sql_schema import FORMAT
from recollect.store.wal_journal import committed_frames, journal_path, report_lost_frames

ReportProgress = Callable[[str], None]


class DoctorReport(msgspec.Struct, frozen=True):
    path: str
    findings: tuple[Finding, ...]
    facts: dict[str, Any]

    @property
    def healthy(self) -> bool:
        return all(finding.repaired for finding in self.findings)


def examine_store(path: Path, progress: ReportProgress | None = None) -> DoctorReport:
    """What is wrong with the store at `path`, and how large it is. Nothing is changed."""
    if not path.exists() or (path.stat().st_size == 0 and not journal_path(path).exists()):
        return DoctorReport(
            str(path), (), {"store": "there is none yet; the first session makes it"}
        )
    expected = committed_frames(path)
    try:
        db = connect_to_store(path)
    except NewerStore:
        raise
    except RecollectError as error:
        if (
            isinstance(error, CannotOpen)
            and path.stat().st_size
            and not salvage.is_store_file(path)
        ):
            raise  # another program's file: nothing of ours to repair
        return DoctorReport(str(path), (_unreadable(error),), _file_facts(path))
    try:
        report_lost_frames(path, db, expected)
        findings = integrity_checks.check_structure(db)
        findings += [
            Finding(what=f"a damaged journal was put aside as {name}", place="journal")
            for name in (aside.name for aside in journal_rescue.damaged_journals(path))
        ]
        if not any(finding.place == "structure" for finding in findings):
            findings += integrity_checks.check_contents(LogWriter(db), progress or _silent)
        return DoctorReport(
            str(path), tuple(findings), _file_facts(path) | integrity_checks.count_contents(db)
        )
    except (apsw.Error, Damaged, ValueError, TypeError, LookupError, AttributeError) as error:
        return DoctorReport(str(path), (_unreadable(error),), _file_facts(path))
    finally:
        db.close()


def repair_store(path: Path, progress: ReportProgress | None = None) -> DoctorReport:
    """Repair what `examine_store` found; the report says what was done about each."""
    before = examine_store(path, progress)
    if not before.findings:
        return before
    tell = progress or _silent
    if any(finding.place == "structure" for finding in before.findings):
        tell("building a new file from what can be read")
        done = [_rebuild(path)]
    else:
        done = []
    db = connect_to_store(path)
    try:
        writer = LogWriter(db)
        done += [_rescue(writer, path, aside) for aside in journal_rescue.damaged_journals(path)]
        done += quarantine.repair_rows(writer, tell)
    finally:
        db.close()
    after = examine_store(path, progress)
    return DoctorReport(str(path), (*done, *after.findings), after.facts)


def _rescue(writer: LogWriter, path: Path, aside: Path) -> Finding:
    writer.db.pragma("foreign_keys", "off")
    writer.begin()
    try:
        finding = journal_rescue.rescue_journal(writer, path, aside)
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
    saved = salvage.rebuild_store(path, fresh)
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
    files = [path, journal_path(path)]
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
