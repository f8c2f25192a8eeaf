"""The prompts that were sent before, as one walks through them with Up and Down.

Newest first. What was being typed comes back at the end of the way, and so do changes made to an
older prompt on the way. Pure: `extend` brings older ones from wherever they are.
"""

from __future__ import annotations

from collections.abc import Iterable


class PromptHistory:
    def __init__(self) -> None:
        self._items: list[str] = []
        self._drafts: dict[int, str] = {}  # what stands at a place instead; -1: the new prompt
        self._at = -1

    def __len__(self) -> int:
        return len(self._items)

    @property
    def left(self) -> int:
        """How many older ones there are."""
        return len(self._items) - 1 - self._at

    def extend(self, older: Iterable[str]) -> None:
        known = set(self._items)
        for one in older:
            if one not in known:
                known.add(one)
                self._items.append(one)

    def add(self, text: str) -> None:
        """A prompt that was sent or cleared just now; the walk is over."""
        self._at, self._drafts = -1, {}
        if text.strip():
            if text in self._items:
                self._items.remove(text)
            self._items.insert(0, text)

    def older(self, shown: str) -> str | None:
        return self._go(shown, 1)

    def newer(self, shown: str) -> str | None:
        return self._go(shown, -1)

    def _go(self, shown: str, step: int) -> str | None:
        to = self._at + step
        if not -1 <= to < len(self._items):
            return None
        self._drafts[self._at] = shown
        self._at = to
        return self._drafts.get(to, self._items[to] if to >= 0 else "")

    def search(self, words: str, limit: int = 8) -> list[str]:
        """The newest that have all these words, whatever their case."""
        wanted = words.lower().split()
        found = (one for one in self._items if all(word in one.lower() for word in wanted))
        return [one for one, _ in zip(found, range(limit), strict=False)]
