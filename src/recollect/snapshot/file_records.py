"""The files of a session: what was done to each, and the names that stand in it.

The files touched last come first, each with the handle of the entry that changed it last, or else
that read it last. What an earlier snapshot says of a file is added to what was done since. Names
only point to where to look: each file is named before any name in one is, and the files touched
last get most of the room for names. A long list repeats its file's name, to stand near it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

import msgspec

from recollect.code_names import find_names
from recollect.snapshot.quotes import Quote, format_item, share_room
from recollect.text import clean, clip
from recollect.work_journal import JournalRead, WorkJournal

_MAX_FILES, _MAX_NAMES, _MAX_READ = 60, 300, 20_000
_CHUNK = 360  # characters of names after which the file's name is repeated
_CHANGED = 3  # a name in a change counts as often as in so many reads
_OLDER = 0.7  # of the room for the names of one file, what the file touched before it gets
_HEADS = 0.5  # of the room, at most, for what was done to the files
_MAX_SHOWN, _MAX_CONTENT = 6, 1_200  # files whose beginning may be quoted; characters of each
_DONE = r"(read|edited|wrote|deleted)(?: ×(\d{1,6}))?"
_LINE = re.compile(rf"(?:\[(\w{{8}})\] )?(.{{1,300}}?): ({_DONE}(?:, {_DONE}){{0,3}})(?: · (.*))?")


class FileRecord(msgspec.Struct):
    path: str
    entry: str = ""  # that changed it last, or else that read it last
    done: Counter[str] = msgspec.field(default_factory=Counter)
    names: dict[str, int] = {}  # how often each was seen; those seen last at the end
    content: JournalRead | None = None  # none if it was changed since

    @property
    def head(self) -> str:
        done = (f"{how} ×{n}" if n > 1 else how for how, n in self.done.items())
        return format_item(Quote(f"{self.path}: {', '.join(done)}", self.entry))

    def touch(self, how: str, entry: str, content: JournalRead | None = None) -> None:
        if how != "read" or not self.done.keys() - {"read"}:
            self.entry = entry
        self.done[how] += 1
        self.content = content

    def see(self, text: str, times: int = 1) -> None:
        found = find_names(text)
        for name in sorted(found.words | found.chains):
            self.names[name] = self.names.pop(name, 0) + times


def parse_record(item: str) -> FileRecord | None:
    """The line of a file in an earlier snapshot."""
    found = _LINE.fullmatch(item)
    if found is None:
        return None
    done = Counter({how: int(times or 1) for how, times in re.findall(_DONE, found[3])})
    words = [word for word in (found[8] or "").split()[:_MAX_NAMES] if word[-1] not in ":·"]
    return FileRecord(found[2], found[1] or "", done, dict.fromkeys(reversed(words), 1))


class FileRecords:
    def __init__(self, journal: WorkJournal, earlier: Iterable[str] = ()) -> None:
        """`earlier` are items of an earlier snapshot, of which those of files count."""
        self._records = _collect_files(journal, earlier)
        self._names = [_distinct_names(record.names) for record in self._records]
        self._mentioned = _mentioned_files(journal, self._records)
        self._demands = list(map(_demand, self._records, self._names))

    @property
    def size(self) -> int:
        heads = sum(len(record.head) + 1 for record in self._records)
        return sum(self._demands) + heads + len(self._mentioned) + 20

    def quote_contents(self, quoted: Collection[str]) -> list[Quote]:
        """How the files begin that were read last, not changed since, and not quoted already."""
        reads = (record.content for record in self._records if record.content is not None)
        found = [read for read in reads if read.text.strip() and read.entry not in quoted]
        return [_quote_content(read, rank) for rank, read in enumerate(found[:_MAX_SHOWN])]

    def write(self, room: int) -> list[str]:
        sizes, demands = [len(record.head) + 1 for record in self._records], self._demands
        also = clip(self._mentioned, room // 5) if room > 200 else ""
        also = f"- Also named: {also}" if also else ""
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


def _collect_files(journal: WorkJournal, earlier: Iterable[str]) -> list[FileRecord]:
    """The files that were read or changed, those touched last first."""
    known = [record for item in earlier if (record := parse_record(item)) is not None]
    files = {record.path: record for record in reversed(known)}

    def newest(path: str) -> FileRecord:
        files[path] = found = files.pop(path, None) or FileRecord(path)
        return found

    for item in journal.items:
        for read in item.reads:
            newest(read.path).touch("read", read.entry, read)
        for change in item.changes:
            newest(change.path).touch(change.verb, item.entry)
            files[change.path].see("\n".join(change.lines), _CHANGED)
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


def _quote_content(read: JournalRead, rank: int) -> Quote:
    text = clip(clean(read.text[: 2 * _MAX_CONTENT]).strip(), _MAX_CONTENT)
    return Quote(f"Last read of {read.path}:\n{text}", read.entry, _OLDER**rank, clip)


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
