"""The entries behind a view, in columns that only grow.

Views that extend each other share one log: each reads its own first n entries and nothing more, so
a longer view never shows in a shorter one. Whoever appends where another already did gets a copy.
Token counts are made once for each entry, when somebody first asks.
"""

from __future__ import annotations

from bisect import bisect_left

from recollect.entries import Compaction, Entry, Message
from recollect.tokens import Counter

ACKNOWLEDGEMENT = "Got it. Thanks for the additional context!"


class Log:
    __slots__ = ("at", "counter", "counts", "entries", "rich", "sums", "uses")

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.entries: list[Entry] = []
        self.at: dict[str, int] = {}  # where an entry stands
        self.rich: list[int] = []  # where messages are that hold more than one text
        self.counts: dict[int, tuple[int, ...]] = {}  # tokens of each part of a message
        self.sums: list[int] = [0]  # tokens of all messages before a position
        self.uses: dict[object, object] = {}  # what rules have read from it so far; see `uses`

    def first(self, n: int) -> Log:
        """A log with the first n entries, to go on from there in another way."""
        copy = Log(self.counter)
        copy.entries = self.entries[:n]
        copy.at = {entry.id: i for i, entry in enumerate(copy.entries)}
        copy.rich = self.rich[: bisect_left(self.rich, n)]
        copy.counts = {at: counts for at, counts in self.counts.items() if at < n}
        copy.sums = self.sums[: n + 1]
        return copy

    def position(self, entry: str, n: int) -> int | None:
        found = self.at.get(entry)
        return found if found is not None and found < n else None

    def message(self, position: int) -> Message | None:
        body = self.entries[position].body
        return body if type(body) is Message else None

    def tokens_between(self, start: int, end: int) -> int:
        self._count_to(end)
        return self.sums[end] - self.sums[start]

    def tokens(self, position: int) -> int:
        return self.tokens_between(position, position + 1)

    def part_tokens(self, position: int) -> tuple[int, ...]:
        """Of a message, its parts; of a compaction, its snapshot and the acknowledgement."""
        found = self.counts.get(position)
        if found is None:
            body, count = self.entries[position].body, self.counter
            if isinstance(body, Compaction):
                found = (count.text(body.snapshot), count.text(ACKNOWLEDGEMENT))
            else:
                found = count.parts(body) if isinstance(body, Message) else ()
            self.counts[position] = found
        return found

    def _count_to(self, end: int) -> None:
        sums, entries = self.sums, self.entries
        counts, count = self.counts, self.counter.parts
        total = sums[-1]
        for position in range(len(sums) - 1, end):
            body = entries[position].body
            if type(body) is Message:
                found = counts.get(position)
                if found is None:
                    found = counts[position] = count(body)
                total += sum(found)
            sums.append(total)
