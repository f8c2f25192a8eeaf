"""The heights of blocks, and which block is at which line: in chunks, so that a change of one, an
addition at either end and a question cost little however many there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

CHUNK = 256


class HeightIndex:
    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._chunks: list[list[int]] = []
        self._sums: list[int] = []
        self.total = self.count = 0
        self.extend(heights)

    def extend(self, heights: Iterable[int]) -> None:
        for height in heights:
            if not self._chunks or len(self._chunks[-1]) >= CHUNK:
                self._chunks.append([])
                self._sums.append(0)
            self._chunks[-1].append(height)
            self._sums[-1] += height
            self.total += height
            self.count += 1

    def prepend(self, heights: Sequence[int]) -> None:
        chunks = [list(heights[at : at + CHUNK]) for at in range(0, len(heights), CHUNK)]
        self._chunks[:0] = chunks
        self._sums[:0] = map(sum, chunks)
        self.total += sum(heights)
        self.count += len(heights)

    def truncate(self, count: int) -> None:
        """Keep the first `count`."""
        while self.count > count:
            chunk = self._chunks[-1]
            excess = min(len(chunk), self.count - count)
            gone = sum(chunk[len(chunk) - excess :])
            del chunk[len(chunk) - excess :]
            self._sums[-1] -= gone
            self.total -= gone
            self.count -= excess
            if not chunk:
                self._chunks.pop()
                self._sums.pop()

    def _locate(self, position: int) -> tuple[int, int, int]:
        """The chunk of a position, its place there, and the lines before that chunk."""
        before = 0
        for number, chunk in enumerate(self._chunks):
            if position < len(chunk):
                return number, position, before
            position -= len(chunk)
            before += self._sums[number]
        raise IndexError(position)

    def __getitem__(self, position: int) -> int:
        number, place, _ = self._locate(position)
        return self._chunks[number][place]

    def __setitem__(self, position: int, height: int) -> None:
        number, place, _ = self._locate(position)
        change = height - self._chunks[number][place]
        self._chunks[number][place] = height
        self._sums[number] += change
        self.total += change

    def before(self, position: int) -> int:
        """The lines before a position, which may be the end."""
        if position >= self.count:
            return self.total
        number, place, before = self._locate(position)
        return before + sum(self._chunks[number][:place])

    def find(self, line: int) -> tuple[int, int]:
        """The position that has this line, and which of its lines it is; at the end the last."""
        first = 0
        for number, chunk in enumerate(self._chunks):
            if line < self._sums[number]:
                for place, height in enumerate(chunk):
                    if line < height:
                        return first + place, line
                    line -= height
            line -= self._sums[number]
            first += len(chunk)
        return max(0, self.count - 1), max(0, self[self.count - 1] - 1) if self.count else 0
