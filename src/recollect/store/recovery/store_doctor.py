"""Examines a store and repairs it.

Examining changes nothing. It verifies every entry's hash, every checksum, every stored content,
SQLite's own structure, and the search index against the words of the log. Repairing deletes
nothing: damaged data moves to the quarantine inside the store or, if the file's structure is
broken, a new file is built from every row that can still be read and the old file is kept.
"""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec

from recollect.errors import CannotOpen, Damaged, NewerStore, RecollectError
from recollect.settings import is_open_to_others
from recollect.store.durable_files import sync_directory
from recollect.store.journal_mark import set_aside_foreign_journal
from recollect.store.log_writer import LogWriter
from recollect.store.open_file import connect_to_store, refuse_special_files
from recollect.store.recovery import integrity_checks, journal_rescue, quarantine, salvage
from recollect.store.recovery.integrity_checks import Finding
from recollect.store.sql_schema import FORMAT
from recollect.store.store_facts import count_contents, file_bytes
from recollect.store.wal_journal import committed_frames, journal_path, report_lost_frames

ReportProgress = Callable[[str], None]


def _silent(_: str) -> None:
    return None


class DoctorReport(msgspec.Struct, frozen=True):
    path: str
    findings: tuple[Finding, ...]
    facts: dict[str, Any]

    @property
    def healthy(self) -> bool:
        return all(finding.repaired for finding in self.findings)


def examine_store(path: Path, progress: ReportProgress = _silent) -> DoctorReport:
    """What is wrong with the store at `path`, and how large it is. Changes nothing."""
    refuse_special_files(path)
    set_aside_foreign_journal(path)  # or SQLite would apply it
    if not path.exists() or (path.stat().st_size == 0 and not journal_path(path).exists()):
        facts = {"store": _describe_missing(path)}
        return DoctorReport(str(path), tuple(_asides(path)), facts)
    expected = committed_frames(path)
    try:
        db = connect_to_store(path)
    except RecollectError as error:
        may_be_foreign = isinstance(error, CannotOpen) and path.stat().st_size > 0
        if isinstance(error, NewerStore) or (may_be_foreign and not salvage.is_store_file(path)):
            raise  # not ours to repair
        return _unreadable(path, error)
    try:
        report_lost_frames(path, db, expected)
        findings = integrity_checks.check_structure(db)
        is_broken = bool(findings)
        findings += _asides(path)
        if not is_broken:
            findings += integrity_checks.check_contents(LogWriter(db), progress)
        facts = _file_facts(path) | count_contents(db)
        return DoctorReport(str(path), tuple(findings), facts)
    except (apsw.Error, Damaged, ValueError, TypeError, LookupError, AttributeError) as error:
        return _unreadable(path, error)
    finally:
        db.close()


def repair_store(path: Path, progress: ReportProgress = _silent) -> DoctorReport:
    """Repair what `examine_store` finds; the report says what was done."""
    before = examine_store(path, progress)
    if not before.findings:
        return before
    done = [_rescue_orphan(path, aside) for aside in journal_rescue.orphaned_journals(path)]
    if not path.exists():
        return DoctorReport(str(path), tuple(done), before.facts)
    if any(finding.place == "structure" for finding in before.findings):
        progress("building a new file from every readable row")
        done.append(_rebuild(path))
    with closing(connect_to_store(path, migrate=True)) as db:
        writer = LogWriter(db)
        done += [_rescue(writer, path, aside) for aside in journal_rescue.damaged_journals(path)]
        done += quarantine.repair_rows(writer, progress)
    after = examine_store(path, progress)
    return DoctorReport(str(path), (*done, *after.findings), after.facts)


def _asides(path: Path) -> list[Finding]:
    damaged = "a damaged journal was saved as"
    orphaned = "a journal that does not belong to this file was not applied, but kept as"
    return [
        *(_aside(damaged, aside) for aside in journal_rescue.damaged_journals(path)),
        *(_aside(orphaned, aside) for aside in journal_rescue.orphaned_journals(path)),
    ]


def _aside(what: str, aside: Path) -> Finding:
    return Finding(what=f"{what} {aside.name}", place="journal")


def _rescue_orphan(path: Path, aside: Path) -> Finding:
    finding = journal_rescue.rescue_orphan(path, aside)
    aside.rename(aside.with_name(aside.name.replace("orphaned-", "rescued-")))
    return finding


def _rescue(writer: LogWriter, path: Path, aside: Path) -> Finding:
    writer.db.pragma("foreign_keys", "off")
    try:
        with writer.transaction():
            finding = journal_rescue.rescue_journal(writer, path, aside)
    finally:
        writer.db.pragma("foreign_keys", "on")
    aside.rename(aside.with_name(aside.name.replace("damaged-", "rescued-")))
    return finding


def _rebuild(path: Path) -> Finding:
    """Replace the broken file by a salvaged one; the broken one keeps another name."""
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
        repaired=f"rebuilt with {saved}; the broken file is kept as {aside.name}",
    )


def _unreadable(path: Path, error: Exception) -> DoctorReport:
    finding = Finding(what=str(error), place="structure")
    return DoctorReport(str(path), (finding,), _file_facts(path))


def _file_facts(path: Path) -> dict[str, Any]:
    return {
        "sqlite": apsw.sqlite_lib_version(),
        "format": FORMAT,
        "bytes_on_disk": file_bytes(path),
        "bytes_free_on_disk": shutil.disk_usage(path.parent).free,
        "permissions": _describe_mode(path, 0o600),
        "folder_permissions": _describe_mode(path.parent, 0o700),
        "put_aside": [
            name for kind in ("damaged", "orphaned", "saved") for name in _kept(path, kind)
        ],
    }


def _describe_missing(path: Path) -> str:
    if not (saved := _kept(path, "saved")):
        return "there is none yet; the first session creates it"
    newest = shlex.quote(str(path.with_name(saved[-1])))
    copy = f"recollect store copy {newest} {shlex.quote(str(path))}"
    return f"there is none, but what one held was saved; `{copy}` brings it back"


def _kept(path: Path, kind: str) -> list[str]:
    return sorted(aside.name for aside in path.parent.glob(f"{path.name}*{kind}-*"))


def _describe_mode(path: Path, private: int) -> str:
    mode = f"{path.stat().st_mode & 0o777:04o}"
    if not is_open_to_others(path):
        return mode
    return f"{mode}: open to other users; `chmod {private:o} {path}` closes it"
