"""How much a SQLite file holds."""

from __future__ import annotations

from pathlib import Path

import apsw

from recollect.store.sql_schema import FORMAT
from recollect.store.wal_journal import journal_path

_COUNTS = {
    "sessions": "count(*) FROM sessions WHERE trashed IS NULL",
    "trashed_sessions": "count(*) FROM sessions WHERE trashed IS NOT NULL",
    "trashed_bytes": "coalesce(sum(length(body)), 0) FROM entries JOIN lines ON line = key >> 24"
    " JOIN sessions USING (session) WHERE trashed IS NOT NULL",
    "entries": "count(*) FROM entries",
    "contents": "count(*) FROM blobs",
    "quarantined": "count(*) FROM quarantine",
    "bytes_reclaimable": "freelist_count * page_size FROM pragma_freelist_count, pragma_page_size",
    "lines_waiting_for_index": "count(*) FROM pending",
}


def count_contents(db: apsw.Connection) -> dict[str, int]:
    return {name: int(next(db.execute(f"SELECT {what}"))[0]) for name, what in _COUNTS.items()}


def read_facts(db: apsw.Connection, path: Path) -> dict[str, int | str]:
    ((owners,),) = db.execute("SELECT count(DISTINCT owner) FROM sessions WHERE owner <> ''")
    counts = count_contents(db)
    return {
        "kind": f"SQLite {apsw.sqlite_lib_version()}",
        "format": FORMAT,
        **{name: counts[name] for name in ("sessions", "trashed_sessions")},
        "owners": owners,
        **{name: counts[name] for name in ("entries", "contents")},
        "bytes_on_disk": file_bytes(path),
    }


def file_bytes(path: Path) -> int:
    """Of the file with its journal."""
    return sum(file.stat().st_size for file in (path, journal_path(path)) if file.exists())
