"""A session as another program's file tells it, before anything is stored.

Entry ids are derived from the file's content and the entry before, so the same history always has
the same ids, and a different one never does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PureWindowsPath
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from recollect.entries import Entry, Note
from recollect.store.ids import derived_id
from recollect.transcripts.json_values import Json, canonical_json
from recollect.transcripts.source_file import SourceFile

_LONGEST_PATH = 4_096


def is_folder_path(text: str) -> bool:
    """Whether this is an absolute path, of this system or of another (`C:/p`, `//server/p`)."""
    absolute = text.startswith("/") or PureWindowsPath(text).is_absolute()
    return absolute and "\0" not in text and len(text) < _LONGEST_PATH


class ImportProblem(NamedTuple):
    line: int  # 0 when it is about no single line
    reason: str


class SubagentInfo(msgspec.Struct, frozen=True):
    """What a file tells about a subagent, whose conversation is a session of its own."""

    parent: str  # our id of the session that called it
    call: str = ""  # the id of the call that it answers
    description: str = ""
    kind: str = ""


class EntryRun(NamedTuple):
    """Entries that follow each other, each with the bytes of the file that it takes, roughly."""

    starts_path: bool  # whether the first is the first one on the way to the leaf
    entries: Iterator[tuple[Entry, int]]


class EntryStream(Protocol):
    """The entries of a file that is too large to have all of them in memory."""

    def __iter__(self) -> Iterator[Entry]:
        """Parents first."""
        ...

    def __len__(self) -> int: ...

    @property
    def updated(self) -> int:
        """The latest time of any entry."""
        ...

    @property
    def ends_with_leaf(self) -> bool:
        """Whether nothing follows the leaf: the program may have gone back to it."""
        ...

    def find_leaf(self) -> str | None:
        """The id of the leaf, which follows from every entry above it."""
        ...

    def load(self) -> tuple[tuple[Entry, ...], str | None]:
        """All entries at once, and the id of the leaf."""
        ...

    def runs(self) -> list[EntryRun]:
        """In the order in which a session that has none of them gets them, one run after the other;
        the last one ends with the leaf, unless something follows it."""
        ...

    def compare(self, is_held: Callable[[str], bool]) -> MissingEntries:
        """What a session lacks that has some of the entries."""
        ...


class MissingEntries(Protocol):
    """The entries of a stream that a session lacks."""

    held: int  # how many it has
    count: int  # how many it lacks
    is_closed: bool  # whether it has the parents of all that it has; else nothing else holds
    ends_with_leaf: bool
    fork: str | None  # the last entry on the way to the leaf that it has
    leaf: str | None

    def runs(self) -> list[EntryRun]:
        """In the order in which they are appended, without those that it has; if the leaf is
        missing, the last run ends with it, unless something follows it, and one run `starts_path`:
        it follows `fork`."""
        ...

    def main(self) -> Iterator[Entry]:
        """All entries on the way to the leaf."""
        ...


class Transcript(msgspec.Struct, frozen=True):
    """A tree of entries, and the leaf at which the program stood. With a `stream`, the entries and
    the leaf are there only after `with_entries`."""

    format: str
    session: str  # our id for it
    created: int
    entries: tuple[Entry, ...]  # parents first
    leaf: str | None
    title: str = ""  # for the list of sessions only
    folder: str = ""  # the absolute path of the folder that it was in
    folder_hash: str = ""  # the SHA-256 of that path, when the file has no more
    is_own: bool = False  # an export of a session of ours, whose ids it carries
    heading: str = ""  # the title in the file; becomes an entry
    header: str = ""  # JSON: `extra` of the source, so that the file can be written again
    problems: tuple[ImportProblem, ...] = ()
    notes: tuple[Note, ...] = ()  # about the session, for users; appended after its entries
    subagent: SubagentInfo | None = None  # when the session is a subagent's
    subagents: tuple[Transcript, ...] = ()  # found in the same file
    stream: EntryStream | None = None

    def each_entry(self) -> Iterator[Entry]:
        """Parents first; those of a stream are made anew."""
        return iter(self.entries if self.stream is None else self.stream)

    @property
    def count(self) -> int:
        return len(self.entries if self.stream is None else self.stream)

    def with_entries(self) -> Transcript:
        """With all entries in memory."""
        if self.stream is None:
            return self
        entries, leaf = self.stream.load()
        return msgspec.structs.replace(self, entries=entries, leaf=leaf, stream=None)

    @property
    def path(self) -> tuple[Entry, ...]:
        return path_to(self.leaf, self.entries)

    @property
    def updated(self) -> int:
        if self.stream is not None:
            return self.stream.updated
        return max((entry.time for entry in self.entries), default=self.created)


class TranscriptFile(NamedTuple):
    """A session and the bytes it was read from; no bytes when another session's file holds it."""

    transcript: Transcript
    name: str
    source: SourceFile | None


class TranscriptBundle(NamedTuple):
    """What one import brings in: a session and its subagents' sessions."""

    main: TranscriptFile
    subagents: tuple[TranscriptFile, ...] = ()
    warnings: tuple[str, ...] = ()  # what was left out, and why


ReadTranscript: TypeAlias = Callable[[SourceFile, str], Transcript]  # from a file and its name


def path_to(leaf: str | None, entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """From the first entry to the leaf, without those above an entry that is not there."""
    known, path = {entry.id: entry for entry in entries}, list[Entry]()
    while leaf is not None and (entry := known.pop(leaf, None)) is not None:
        path.append(entry)
        leaf = entry.parent
    return tuple(reversed(path))


def derive_session_id(format_: str, id_in_file: object, first_record: Json) -> str:
    """Our id for a session of theirs; without an id in the file, its first record identifies it."""
    if isinstance(id_in_file, str) and id_in_file:
        return derived_id(format_, id_in_file)
    text = canonical_json(first_record).encode("utf-8", "surrogatepass")
    return derived_id(format_, "", hashlib.blake2b(text, digest_size=16).hexdigest())


def report_non_objects(messages: Sequence[object]) -> tuple[ImportProblem, ...]:
    return tuple(
        ImportProblem(1, f"message {position} is a {type(record).__name__}, not an object")
        for position, record in enumerate(messages, 1)
        if not isinstance(record, dict)
    )
