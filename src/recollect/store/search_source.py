"""What a search asks of a store: its index for rows that match, its log for entries.

A match is an expression over words: `"word"`, `"prefix" *`, `AND`, `OR`, `NOT`, parentheses. A
source is made for one query; its rows are those that the query may see.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

from recollect.entries import Entry
from recollect.store.contract import SessionInfo

RowKey: TypeAlias = Any  # a store's own key of an entry or a session; newer entries are greater


class EntrySource(Protocol):
    def up_to(self, key: RowKey, count: int) -> tuple[Entry, ...]:
        """The last `count` entries of the path that ends with this one; damaged ones are marked."""
        ...

    def after(self, key: RowKey, count: int) -> tuple[Entry, ...]:
        """What was appended after this entry in its own segment: at most `count` entries."""
        ...


class SearchSource(EntrySource, Protocol):
    def session(self, owner: RowKey) -> SessionInfo: ...

    def candidates(self, match: str) -> Iterable[tuple[RowKey, RowKey]]:
        """The entries that match, newest first, each with the session that wrote it; of a session
        only what it wrote itself."""
        ...

    def entries_in_scope(self) -> int | None:
        """About how many; None if nothing can be in scope. For the methods below, a session's scope
        includes what it inherited as a fork."""
        ...

    def count(self, match: str, most: int) -> int:
        """How many rows match, trashed sessions among them; counts no further than `most`."""
        ...

    def newest(self, match: str, most: int | None = None) -> Iterable[tuple[RowKey, RowKey]]:
        """The rows that match, each with its session; newest first if there is no limit, else those
        of the newest `most` that are in scope."""
        ...

    def heaviest(
        self, matches: Sequence[tuple[str, float]], each: int, most: int
    ) -> Iterable[tuple[RowKey, RowKey]]:
        """The `most` rows with the greatest sum of weights, of the newest `each` of each match."""
        ...
