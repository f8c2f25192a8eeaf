"""What is said in the turns that are measured, the same for all, and the watch that times them.

A turn is: the user says something, the model calls `read_file`, the tool answers, the model
answers. The texts go on where the conversation of the session ended.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench import clock, conversation
from recollect.entries import Message, Text, ToolResult


class Script:
    """The turns after the first n messages."""

    def __init__(self, n: int, count: int) -> None:
        messages = conversation.messages(4 * count, n)
        self.questions = [text_of(message) for message in messages[0::4]]
        self.replies = [one for i, one in enumerate(messages) if i % 2]
        self.outputs = [text_of(message) for message in messages[2::4]]


def text_of(message: Message) -> str:
    found = ""
    for part in message.parts:
        pieces = part.content if isinstance(part, ToolResult) else (part,)
        found += "".join(piece.text for piece in pieces if isinstance(piece, Text))
    return found


class Watch:
    """Wall and CPU time of each turn; the first ones fill caches and do not count."""

    def __init__(self, warm_up: int) -> None:
        self._warm_up = warm_up
        self._took: list[tuple[float, float]] = []

    @contextmanager
    def turn(self) -> Iterator[None]:
        if len(self._took) == self._warm_up:
            clock.settle()
        before = clock.now()
        yield
        after = clock.now()
        self._took.append((after.wall - before.wall, after.cpu - before.cpu))

    def found(self) -> dict[str, Any]:
        counted = self._took[self._warm_up :]
        walls, cpus = zip(*counted, strict=True)
        return {
            "wall": statistics.median(walls),
            "cpu": statistics.median(cpus),
            "best": min(walls),
            "worst": max(walls),
            "mean": statistics.mean(walls),
        }
