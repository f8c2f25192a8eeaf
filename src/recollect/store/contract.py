"""The interface of every store, and the values it returns.

`append` names the head it expects. If the session's head is another one, it raises `HeadMoved` and
writes nothing: that is the whole concurrency model. An append that returned is on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from recollect.entries import Body, Entry, Message, Source

# what to do with entries that are not as they were written: raise `Damaged`, or put a note in place
# of each
OnDamage: TypeAlias = Literal["refuse", "mark"]


class Project(msgspec.Struct, frozen=True):
    """A folder that sessions belong to, known by its git history, else by its path."""

    path: str
    git: str | None = None  # the first commit's id
    inode: str = ""  # with `names`, recognizes a renamed folder that has no git history
    names: tuple[str, ...] = ()


class SessionInfo(msgspec.Struct, frozen=True):
    """What a store knows about a session without reading its entries."""

    id: str
    title: str
    head: str | None
    entries: int  # on the path to the head
    created: int
    used: int
    project: str | None = None  # the project's path as last seen
    trashed: int | None = None
    forked_from: str | None = None  # the entry at which it was forked
    owner: str = ""  # the name of the server's token it belongs to; empty: the user's own


class SearchHit(msgspec.Struct, frozen=True):
    """An entry found by a search. `marks` are the positions of the matches in the snippet."""

    session: SessionInfo
    entry: Entry
    snippet: str
    marks: tuple[tuple[int, int], ...] = ()
    missing: tuple[str, ...] = ()  # words of the query that the entry does not have
    beside: tuple[Entry, ...] = ()  # of a result its call; of a call its results
    alike: tuple[str, ...] = ()  # entries that say the same, best first
    call_ids: tuple[str, ...] = ()  # the calls that the passage is of, or whose results it is of


class SearchResult(msgspec.Struct, frozen=True):
    """The hits of a ranked search, best first."""

    hits: tuple[SearchHit, ...]
    nowhere: tuple[str, ...] = ()  # words of the query that nothing in the searched scope has
    more: bool = False


class SearchQuery(msgspec.Struct, frozen=True):
    """All words must match; "quoted words" are adjacent; word* is a prefix; -word is excluded."""

    words: str
    session: str | None = None
    role: str | None = None
    tool: str | None = None
    after: int | None = None
    before: int | None = None
    limit: int = 20
    project: Project | str | None = None  # or the project's path, as `SessionInfo.project` has it
    spoken: bool = False  # messages and imported summaries only: no notes, no titles
    owner: str | None = None  # only sessions of this owner


class Store(Protocol):
    address: str  # for people: the file, or the URL without its password
    closed: bool
    warnings: list[str]  # for the user: what opening found and repaired

    async def create(
        self,
        *,
        project: Project | None = None,
        title: str = "",
        id: str | None = None,  # noqa: A002
        created: int | None = None,
        owner: str = "",
    ) -> SessionInfo: ...

    async def sessions(
        self,
        *,
        project: Project | None = None,
        trashed: bool = False,
        owner: str | None = None,
        limit: int | None = None,
        before: tuple[int, str] | None = None,
    ) -> tuple[SessionInfo, ...]:
        """Most recently used first, of one project or owner if given; `trashed` lists the trash
        instead. `before`, the time of use and the id of a session, lists those after it."""
        ...

    async def session(self, given: str) -> SessionInfo:
        """By its id, or by a beginning or an end that no other session's id has."""
        ...

    async def entry(self, given: str, *, session: str | None = None) -> tuple[SessionInfo, Entry]:
        """By its id, or by a beginning or an end that no other entry's id has; of one session, if
        it is named."""
        ...

    async def project_of(self, session: str) -> Project | None:
        """The project that a session belongs to, as it was last seen."""
        ...

    async def counterparts(self, entry: Entry) -> tuple[Entry, ...]:
        """Of a result its call, of a call its results, as far as they are near."""
        ...

    async def sources(self) -> dict[str, Source]:
        """The file that each imported session was first read from, by the session's id."""
        ...

    async def short_session_ids(self, ids: Iterable[str]) -> dict[str, str]:
        """Of each id the end, 8 digits or more, by which `session` finds it."""
        ...

    async def short_entry_ids(self, ids: Iterable[str]) -> dict[str, str]:
        """Of each id the end, 8 digits or more, by which `entry` alone finds it."""
        ...

    async def append(
        self, session: str, items: Sequence[Body | Entry], *, parent: str | None
    ) -> tuple[Entry, ...]:
        """Add items after `parent`, one after the other, all or none. An `Entry` keeps its id and
        its time; its `parent` is replaced by its place in the chain."""
        ...

    async def branch(
        self, session: str, items: Sequence[Body | Entry], *, at: str | None
    ) -> tuple[Entry, ...]:
        """Add items after any entry of the session; the head stays where it is."""
        ...

    async def path(
        self,
        session: str,
        *,
        at: str | None = None,
        last: int | None = None,
        since: str | None = None,
        damaged: OnDamage = "refuse",
    ) -> tuple[Entry, ...]:
        """Root to head (or to `at`); only the newest `last`, or only those after `since`."""
        ...

    async def page(
        self, session: str, *, start: int, limit: int, at: str | None = None
    ) -> tuple[Entry, ...]:
        """Of the path to the head (or to `at`), `limit` entries from number `start` on, counted
        from 0 at the root. Costs what the page costs, however long the path is."""
        ...

    async def wait_for_append(self, session: str, head: str | None, timeout: float) -> bool:
        """Whether the session's head is another one than `head`, waiting for that at most `timeout`
        seconds. Appends of this process are noticed at once, those of others within a second."""
        ...

    async def tree(self, session: str, *, damaged: OnDamage = "refuse") -> tuple[Entry, ...]:
        """Every entry ever appended to the session, on all branches, parents first."""
        ...

    async def tree_page(
        self, session: str, *, limit: int, after: str | None = None
    ) -> tuple[Entry, ...]:
        """The next `limit` entries of `tree` after this one: for a session of any size."""
        ...

    async def rewind(self, session: str, to: str | None, *, head: str | None = ...) -> SessionInfo:
        """Move the head to another entry of this session; nothing is deleted."""
        ...

    async def fork(
        self, session: str, *, at: str | None = None, title: str = "", owner: str | None = None
    ) -> SessionInfo:
        """A new session with the same beginning; it belongs to the same owner if none is named."""
        ...

    async def adopt(self, info: SessionInfo, project: Project | None) -> SessionInfo:
        """Store a session as another store describes it: its id, times, title, owner, project and
        the entry at which it was forked. One that is here gets the title, owner, project and time
        in the trash; its entries and head are left alone."""
        ...

    async def rename(self, session: str, title: str) -> SessionInfo: ...

    async def trash(self, session: str) -> SessionInfo: ...

    async def restore(self, session: str) -> SessionInfo: ...

    async def draft(
        self,
        session: str,
        message: Message,
        *,
        parent: str | None,
        id: str | None = None,  # noqa: A002
    ) -> str:
        """Store the part of a reply received so far. Appending an entry with the returned id
        removes the draft; one whose writer died becomes an interrupted message on the next open."""
        ...

    async def put(self, data: bytes) -> str:
        """Store bytes under their own hash, which is returned; the same bytes are stored once."""
        ...

    async def blob(self, digest: str) -> bytes: ...

    async def blobs(self, *, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        """The hashes of stored bytes in ascending order, long texts of entries among them."""
        ...

    async def counts(self, counter: str, entries: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """The cached counts of these entries (tokens of their parts, messages up to them …) that
        this counter made."""
        ...

    async def keep_counts(self, counter: str, counts: Mapping[str, tuple[int, ...]]) -> None:
        """Cache counts. The log does not depend on them."""
        ...

    async def search(self, query: SearchQuery) -> tuple[SearchHit, ...]:
        """Entries that match, newest first; trashed sessions are not searched."""
        ...

    async def rank(self, query: SearchQuery, *, length: int = 600) -> SearchResult:
        """Entries that have all words, then those that come nearest, each with a passage of about
        `length` characters. A session's hits include what it inherited as a fork."""
        ...

    async def facts(self) -> dict[str, int | str]:
        """For people: what kind of store it is, its format, and how much it holds."""
        ...

    async def check_usable(self) -> None:
        """Raise if nothing could be read or appended now: the database is away, the file lost."""

    async def close(self) -> None: ...
