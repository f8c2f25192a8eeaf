"""The files of a session: what was done to each, and the names that stand in it.

The files touched last come first. Names are only a pointer to where to look: each file is named
before any name in one is, and the files touched last get most of the room for names. A long list of
names repeats its file's name, so that every name stands near it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from recollect.code_names import find_names
from recollect.snapshot.quotes import share_room
from recollect.text import clip
from recollect.work_journal import WorkJournal

_MAX_FILES, _MAX_NAMES, _MAX_READ = 60, 300, 20_000
_CHUNK = 360  # characters of names after which the file's name is repeated
_CHANGED = 3  # a name in a change counts as often as in so many reads
_OLDER = 0.7  # of the room for the names of one file, what the file touched before it gets
_HEADS = 0.5  # of the room, at most, for what was done to the files


class FileRecord(msgspec.Struct):
    path: str
    done: Counter[str] = msgspec.field(default_factory=Counter)
    names: dict[str, int] = {}  # how often each was seen; those seen last at the end

    @property
    def head(self) -> str:
        done = (f"{how} ×{n}" if n > 1 else how for how, n in self.done.items())
        return f"- {self.path}: {', '.join(done)}"

    def see(self, text: str, times: int = 1) -> None:
        found = find_names(text)
        for name in sorted(found.words | found.chains):
            self.names[name] = self.names.pop(name, 0) + times


class FileRecords:
    def __init__(self, journal: WorkJournal) -> None:
        self._records = _collect_files(journal)
        self._names = [_distinct_names(record.names) for record in self._records]
        self._mentioned = _mentioned_files(journal, self._records)
        self._demands = list(map(_demand, self._records, self._names))

    @property
    def size(self) -> int:
        heads = sum(len(record.head) + 1 for record in self._records)
        return sum(self._demands) + heads + len(self._mentioned) + 20

    def write(self, room: int) -> list[str]:
        sizes, demands = [len(record.head) + 1 for record in self._records], self._demands
        also = _also(self._mentioned, room // 5)
        heads = max(int(room * _HEADS), room - sum(demands) - len(also))
        count = 0
        while count < len(sizes) and sum(sizes[: count + 1]) <= heads:
            count += 1
        left = room - sum(sizes[:count]) - len(also) - 1
        given = share_room(demands[:count], [_OLDER**rank for rank in range(count)], left)
        items: list[str] = []
        for record, names, size in zip(self._records, self._names, given, strict=False):
            listed = " ".join(items)
            fresh = sorted(names, key=lambda name: name in listed)
            items.append(record.head + _list_names(record.path, fresh, size))
        return [*items, also] if also else items


def _demand(record: FileRecord, names: Iterable[str]) -> int:
    """The characters that all names of a file take."""
    size = sum(len(name) + 1 for name in names) + 3
    return size + size // _CHUNK * (len(record.path) + 5)


def _collect_files(journal: WorkJournal) -> list[FileRecord]:
    """The files that were read or changed, those touched last first."""
    files: dict[str, FileRecord] = {}

    def touch(path: str, how: str) -> FileRecord:
        files[path] = record = files.pop(path, None) or FileRecord(path)
        record.done[how] += 1
        return record

    for item in journal.items:
        for path in item.reads:
            touch(path, "read")
        for change in item.changes:
            touch(change.path, change.verb).see("\n".join(change.lines), _CHANGED)
    for output in journal.outputs:
        if output.kind == "read" and output.asked in files:
            files[output.asked].see(output.text)
    return list(reversed(files.values()))[:_MAX_FILES]


def _distinct_names(counts: dict[str, int]) -> list[str]:
    """The most frequent first, of equals the newest, without those that are part of another."""
    newest = list(counts)[::-1]
    names = sorted(newest, key=lambda name: -counts[name])[:_MAX_NAMES]
    chains = [name for name in names if "." in name]
    parts = {part for chain in chains for part in chain.split(".")}
    parts |= {chain.rpartition(".")[0] for chain in chains}
    return [name for name in names if name not in parts]


def _list_names(path: str, names: Iterable[str], room: int) -> str:
    again = f" · {path.rsplit('/', 1)[-1]}:"
    text, since = "", 0
    for name in names:
        lead = " ·" if not text else again if since > _CHUNK else ""
        if len(text) + len(lead) + len(name) + 1 <= room:
            text += f"{lead} {name}"
            since = 0 if lead else since + len(name) + 1
    return text


def _mentioned_files(journal: WorkJournal, touched: Iterable[FileRecord]) -> str:
    """The files that tools only named, by their names alone, the newest first."""
    known = {record.path.rsplit("/", 1)[-1] for record in touched}
    found: dict[str, None] = {}
    for output in reversed(journal.outputs):
        if output.kind != "read" and len(found) < _MAX_NAMES:
            files = find_names(f"{output.asked}\n{output.text[:_MAX_READ]}").files
            names = sorted({file.rsplit("/", 1)[-1] for file in files})
            found.update(dict.fromkeys(name for name in names if name not in known))
    return " ".join(found)


def _also(mentioned: str, room: int) -> str:
    return f"- Also named: {clip(mentioned, room)}" if mentioned and room > 40 else ""
