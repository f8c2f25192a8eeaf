"""An append is on disk before it is acknowledged: seen in the system calls."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.reliability.children import new_session
from tests.reliability.tracing import Call, needs_strace, traced

APPENDS = 80
_BYTES = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FRAME_HEADER = 24


def _data(call: Call) -> bytes:
    found = _BYTES.search(call.rest)
    return bytes.fromhex(found[1].replace("\\x", "")) if found else b""


def unsynced(calls: list[Call], wal: str, acks: str) -> tuple[int, list[str]]:
    """How many acknowledgements left, and which of them before their commit was synced.

    The commit of an entry ends with the first frame, at or after the page that has its id, whose
    header says how large the database is now. A sync must follow before the id is told.
    """
    pages: list[bytes] = []  # written since the last commit
    committed: list[bytes] = []  # pages of commits that no sync has followed yet
    synced = b""
    closing = False
    told, early = 0, []
    for call in calls:
        if call.file == wal and call.name == "pwrite64":
            data = _data(call)
            if len(data) == _FRAME_HEADER:
                closing = data[4:8] != bytes(4)
                continue
            pages.append(data)
            if closing:
                committed, pages, closing = [*committed, *pages], [], False
        elif call.file == wal and call.name in ("fdatasync", "fsync"):
            synced, committed = synced + b"".join(committed), []
        elif call.file == acks:
            fact = json.loads(_data(call))
            for entry in fact.get("ids", ()):
                raw = bytes.fromhex(entry)
                told += 1
                if raw not in synced:
                    early.append(entry)
            synced = b"" if fact["what"] == "ok" else synced
    return told, early


@needs_strace
def test_the_commit_is_synced_before_the_acknowledgement_leaves(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    session = new_session(path)
    # a pause now and then lets the index, which needs no sync of its own, write in between
    facts, calls = traced(path, "starved", session, str(APPENDS), "0.004", options="-xx -s 70000")
    assert not [fact for fact in facts if fact["what"] == "error"]
    hexed = [call._replace(file=_path(call.file)) for call in calls]
    told, early = unsynced(hexed, f"{path}-wal", str(path.with_suffix(".acks")))
    assert told == APPENDS
    assert early == []


def _path(shown: str) -> str:
    """strace writes file names in hexadecimal as well when it is asked for hexadecimal strings."""
    if shown.startswith("\\x"):
        return bytes.fromhex(shown.replace("\\x", "")).decode()
    return shown


@needs_strace
def test_the_check_itself_sees_a_missing_sync(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    session = new_session(path)
    _, calls = traced(path, "starved", session, "5", options="-xx -s 70000")
    without = [
        call._replace(file=_path(call.file)) for call in calls if not call.name.endswith("sync")
    ]
    told, early = unsynced(without, f"{path}-wal", str(path.with_suffix(".acks")))
    assert told == len(early) == 5
