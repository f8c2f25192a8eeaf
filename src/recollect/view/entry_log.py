"""The entries behind a view, in columns that only grow.

Views that extend each other share one log: each reads only its own first n entries, so a longer
view never shows in a shorter one. A view that appends where another already did gets a copy. Each
entry's tokens are counted once, on first use, or taken from `known`, the counts that the store
kept; `fresh` collects the new ones for the store.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from recollect.entries import Compaction, Entry, Message, ToolResult
from recollect.tokens import Counter
from recollect.view.curation import is_spoken

ACKNOWLEDGEMENT = "Got it. Thanks for the additional context!"
NO_COUNTS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType({})


class EntryLog:
    def __init__(self, counter: Counter, known: Mapping[str, tuple[int, ...]] = NO_COUNTS) -> None:
        self.counter, self.known = counter, known
        self.fresh: dict[str, tuple[int, ...]] = {}  # by entry: counts not known before
        self.entries: list[Entry] = []
        self.at: dict[str, int] = {}  # an entry's position
        self.multi_part: list[int] = []  # positions of messages that are not just one text
        self.counts: dict[int, tuple[int, ...]] = {}  # tokens of each part of a message
        self.blocks: dict[int, dict[int, tuple[int, ...]]] = {}  # by part: tokens of its blocks
        self.sums: list[int] = [0]  # tokens of all messages before a position
        self._prompts: list[int] = []  # positions of what the user said, as far as looked for
        self._prompts_done = 0
        self.uses: dict[str, object] = {}  # a cache of `tool_uses`, by the project's folder
        self.usage_reports: object = None  # a cache of `provider_counts`

    def first(self, n: int) -> EntryLog:
        """A log with the first n entries, to continue from there differently."""
        copy = EntryLog(self.counter, self.known)
        copy.entries = self.entries[:n]
        copy.at = {entry.id: i for i, entry in enumerate(copy.entries)}
        copy.multi_part = self.multi_part[: bisect_left(self.multi_part, n)]
        copy.counts = {at: counts for at, counts in self.counts.items() if at < n}
        copy.blocks = {at: blocks for at, blocks in self.blocks.items() if at < n}
        copy.sums = self.sums[: n + 1]
        return copy

    def last_prompt(self, n: int) -> int:
        """Where the user last said something among the first n entries; -1 if nowhere. Each entry
        is looked at once."""
        for position in range(self._prompts_done, n):
            body = self.entries[position].body
            if type(body) is Message and is_spoken(body):
                self._prompts.append(position)
        self._prompts_done = max(self._prompts_done, n)
        at = bisect_left(self._prompts, n)
        return self._prompts[at - 1] if at else -1

    def position(self, entry: str, n: int) -> int | None:
        found = self.at.get(entry)
        return found if found is not None and found < n else None

    def message(self, position: int) -> Message | None:
        body = self.entries[position].body
        return body if type(body) is Message else None

    def find_message(self, entry: str, n: int) -> Message | None:
        """The message of this id among the first n entries."""
        found = self.position(entry, n)
        return None if found is None else self.message(found)

    def messages(self, positions: Iterable[int]) -> Iterator[tuple[int, Message]]:
        """The messages among the entries at these positions."""
        for position in positions:
            if (message := self.message(position)) is not None:
                yield position, message

    def tokens_between(self, start: int, end: int) -> int:
        self._count_to(end)
        return self.sums[end] - self.sums[start]

    def tokens(self, position: int) -> int:
        """Tokens of a message, without counting what precedes it."""
        return sum(self.part_tokens(position)) if self.message(position) is not None else 0

    def part_tokens(self, position: int) -> tuple[int, ...]:
        """Tokens of a message's parts; of a compaction, its snapshot and the acknowledgement."""
        found = self.counts.get(position)
        if found is None:
            found = self.counts[position] = self._count_entry(position)
        return found

    def block_tokens(self, position: int, part: int) -> tuple[int, ...]:
        """Tokens of each block of a tool result."""
        tokens = self.part_tokens(position)
        message = self.entries[position].body
        result = message.parts[part] if isinstance(message, Message) else None
        if not isinstance(result, ToolResult) or not result.content:
            return ()
        if len(result.content) == 1:
            return (tokens[part] - self.counter.text(result.name),)
        return self.blocks[position][part]

    def count(self, n: int) -> None:
        """Count the first n entries now instead of on first use."""
        for position in range(n):
            self.part_tokens(position)

    def _count_entry(self, position: int) -> tuple[int, ...]:
        entry, count = self.entries[position], self.counter
        body, known = entry.body, self.known.get(entry.id, ())
        if type(body) is Message:
            for part in body.parts:
                if type(part) is ToolResult and len(part.content) > 1:
                    return self._count_with_blocks(position, body, known)
            if len(known) == len(body.parts):
                return known
            found = count.parts(body)
        elif not isinstance(body, Compaction):
            return ()
        elif len(known) == 2:
            return known
        else:
            found = count.text(body.snapshot), count.text(ACKNOWLEDGEMENT)
        if count.name:
            self.fresh[entry.id] = found
        return found

    def _count_with_blocks(
        self, position: int, message: Message, known: tuple[int, ...]
    ) -> tuple[int, ...]:
        """For results of several blocks; `known` has the parts first, then their blocks."""
        results = {n: p for n, p in enumerate(message.parts) if isinstance(p, ToolResult)}
        several = {n: part for n, part in results.items() if len(part.content) > 1}
        size = len(message.parts)
        if len(known) != size + sum(len(part.content) for part in several.values()):
            contents = (content for part in several.values() for content in part.content)
            known = (*self.counter.parts(message), *map(self.counter.part, contents))
            if self.counter.name:
                self.fresh[self.entries[position].id] = known
        end, of_parts = size, {}
        for number, part in several.items():
            of_parts[number] = known[end : end + len(part.content)]
            end += len(part.content)
        self.blocks[position] = of_parts
        return known[:size]

    def _count_to(self, end: int) -> None:
        sums, entries, counts = self.sums, self.entries, self.counts
        total = sums[-1]
        for position in range(len(sums) - 1, end):
            if type(entries[position].body) is Message:
                found = counts.get(position)
                if found is None:
                    found = counts[position] = self._count_entry(position)
                total += sum(found)
            sums.append(total)
