"""Which tool was used for what, read from the log once and kept up with it.

A use is a result together with the call it answers, found through the call's id: the newest call of
that id before the result. What a tool does is told by its name, never by what its output looks
like. A result whose call is missing, or whose call names no file, is no use of a file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from recollect.entries import Text, ToolCall, ToolResult
from recollect.toolkinds import (
    PathRange,
    ToolKind,
    classify_tool,
    has_failed,
    normalize_path,
    parse_paths,
    parse_usual_path,
)
from recollect.view.entry_log import EntryLog

LARGE_RESULT = 1_000  # characters; what is shorter has not enough lines to be cut
_CHANGING_KINDS = frozenset({"write", "edit", "delete"})
_OF_TIME = frozenset({"shell", "search"})


class ToolUse(msgspec.Struct, frozen=True, gc=False):
    position: int
    part: int
    name: str
    arguments: str  # of the call
    time: int


class LargeResult(NamedTuple):
    use: ToolUse
    characters: int
    lines: int


class ToolUses:
    """Grows with its log. Positions beyond a view's end are not that view's business.

    Which lines a read asked for is worked out only when its file was read often.
    """

    def __init__(self, log: EntryLog, root: str, names: Mapping[str, ToolKind]) -> None:
        self._log, self._root = log, root
        self._calls: dict[str, ToolCall] = {}
        self._kinds: dict[str, ToolKind] = dict(names)
        self._done = 0
        self._once: dict[str, ToolUse] = {}  # the first read of each file
        self.often: dict[
            str, list[ToolUse]
        ] = {}  # of files read more than once, failed ones as well
        self.rank: dict[str, int] = {}  # how many files were read twice before this one was
        self.changes: dict[str, list[int]] = {}  # where a file was changed
        self.shell: list[ToolUse] = []  # commands that did not fail
        self.search: list[ToolUse] = []
        self.large: list[LargeResult] = []
        self.unidentified: list[int] = []  # where reads are that name no file
        self.memory: object = None  # what rules have worked out so far; see `rules`
        self._touches: list[int] = []  # where files were read and changed, in order
        self._touched: list[str] = []  # which

    def advance(self, end: int) -> None:
        log, calls = self._log, self._calls
        places = log.rich[self._done : bisect_left(log.rich, end)]
        for position in places:
            entry = log.entries[position]
            for number, part in enumerate(entry.body.parts):  # type: ignore[union-attr]
                kind = type(part)
                if kind is ToolCall:
                    calls[part.id] = part
                elif kind is ToolResult:
                    self._use(position, number, part, entry.time)
        self._done += len(places)

    def _use(self, position: int, number: int, part: ToolResult, time: int) -> None:
        if part.time is not None:
            time = part.time
        call = self._calls.get(part.call_id)
        if call is None:
            self._measure(part, ToolUse(position, number, part.name, "", time))
            return
        name = call.name
        use = ToolUse(position, number, name, call.arguments, time)
        content = part.content
        if (
            len(content) != 1
            or type(content[0]) is not Text
            or len(content[0].text) >= LARGE_RESULT
        ):
            self._measure(part, use)  # most are one short text
        kind = self._kinds.get(name) or self._kind(name)
        if kind == "read":
            usual = parse_usual_path(call.arguments, self._root)
            for path in (usual,) if usual else self._paths(use):
                self._touches.append(position)
                self._touched.append(path)
                first = self._once.setdefault(path, use)
                if first is not use:
                    self._again(path, first, use)
        elif kind in _OF_TIME:
            if not has_failed(part):
                (self.shell if kind == "shell" else self.search).append(use)
        elif kind in _CHANGING_KINDS and not has_failed(part):
            self._changed(use)

    def _changed(self, use: ToolUse) -> None:
        for path in {file.path for file in self.files(use)}:
            self.changes.setdefault(path, []).append(use.position)
            self._touches.append(use.position)
            self._touched.append(path)

    def touched(self, start: int, end: int) -> set[str]:
        """The files that were read or changed from one position up to another."""
        first, last = (bisect_left(self._touches, at) for at in (start, end))
        return set(self._touched[first:last])

    def changed(self, path: str, since: int, end: int) -> bool:
        places = self.changes.get(path, ())
        after = bisect_right(places, since)
        return after < len(places) and places[after] < end

    def _paths(self, use: ToolUse) -> set[str]:
        paths = {file.path for file in self.files(use)}
        if not paths:
            self.unidentified.append(use.position)
        return paths

    def _again(self, path: str, first: ToolUse, use: ToolUse) -> None:
        reads = self.often.get(path)
        if reads is None:
            self.rank[path] = len(self.rank)
            self.often[path] = [first, use]
        else:
            reads.append(use)

    def _measure(self, part: ToolResult, use: ToolUse) -> None:
        characters = sum([len(item.text) for item in part.content if type(item) is Text])
        if characters >= LARGE_RESULT:
            texts = [item.text for item in part.content if type(item) is Text]
            lines = sum([text.count("\n") + 1 for text in texts])
            self.large.append(LargeResult(use, characters, lines))

    def _kind(self, name: str) -> ToolKind:
        found = self._kinds[name] = classify_tool(name)
        return found

    def files(self, use: ToolUse) -> tuple[PathRange, ...]:
        found = parse_paths(use.arguments)
        return tuple([file._replace(path=normalize_path(file.path, self._root)) for file in found])


def find_tool_uses(
    log: EntryLog, n: int, root: str, names: tuple[tuple[str, ToolKind], ...]
) -> ToolUses:
    key = (root, names)
    found = log.uses.get(key)
    if not isinstance(found, ToolUses):
        found = log.uses[key] = ToolUses(log, root, dict(names))
    found.advance(n)
    return found
