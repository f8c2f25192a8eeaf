"""Which tools were used for what: read from the log once, then kept up to date with it.

A use is a result with the call it answers: the newest call with that id before the result. The
tool's name says what it does, never the look of its output. A result without its call, or whose
call names no file, is not a use of a file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import msgspec

from recollect.entries import Text, ToolCall, ToolResult
from recollect.stale_rules import STALE_RULES
from recollect.toolkinds import (
    PathRange,
    classify_tool,
    has_failed,
    normalize_path,
    parse_paths,
    parse_usual_path,
)
from recollect.view.entry_log import EntryLog

LARGE_RESULT = 1_000  # characters; shorter results have too few lines to be cut
_CHANGING_KINDS = frozenset({"write", "edit", "delete"})


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
    """Grows with its log; a view ignores positions beyond its own end.

    The lines that a read asked for are parsed only when its file was read often.
    """

    def __init__(self, log: EntryLog, root: str) -> None:
        self._log, self._root = log, root
        self._calls: dict[str, ToolCall] = {}
        self._done = 0
        self._first_reads: dict[str, ToolUse] = {}  # by file
        self.often: dict[str, list[ToolUse]] = {}  # all reads of files read more than once
        self.rank: dict[str, int] = {}  # how many files were read twice before this one was
        self.changes: dict[str, list[int]] = {}  # positions at which a file was changed
        # by stale rule: the successful uses it looks at
        self.aging: dict[str, list[ToolUse]] = {rule.name: [] for rule in STALE_RULES}
        self._aging_kinds: dict[str, list[ToolUse]] = {
            kind: self.aging[rule.name] for rule in STALE_RULES for kind in rule.tool_kinds
        }
        self.large: list[LargeResult] = []
        self.unidentified: list[int] = []  # positions of reads that name no file
        self.memory: object = None  # intermediate results of `elision_rules`
        self._touches: list[int] = []  # positions at which files were read or changed, in order
        self._touched: list[str] = []  # and which files

    def advance(self, end: int) -> None:
        log, calls = self._log, self._calls
        places = log.multi_part[self._done : bisect_left(log.multi_part, end)]
        for position in places:
            entry = log.entries[position]
            for number, part in enumerate(entry.body.parts):  # type: ignore[union-attr]
                kind = type(part)
                if kind is ToolCall:
                    calls[part.id] = part
                elif kind is ToolResult:
                    self._add(position, number, part, entry.time)
        self._done += len(places)

    def _add(self, position: int, number: int, part: ToolResult, time: int) -> None:
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
            self._measure(part, use)  # most results are one short text
        kind = classify_tool(name)
        if kind == "read":
            usual = parse_usual_path(call.arguments, self._root)
            for path in (usual,) if usual else self._paths(use):
                self._touches.append(position)
                self._touched.append(path)
                first = self._first_reads.setdefault(path, use)
                if first is not use:
                    self.often.setdefault(path, [first]).append(use)
                    self.rank.setdefault(path, len(self.rank))
        elif (aging := self._aging_kinds.get(kind)) is not None:
            if not has_failed(part):
                aging.append(use)
        elif kind in _CHANGING_KINDS and not has_failed(part):
            self._change(use)

    def _change(self, use: ToolUse) -> None:
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
        return bisect_right(places, since) < bisect_left(places, end)

    def _paths(self, use: ToolUse) -> set[str]:
        paths = {file.path for file in self.files(use)}
        if not paths:
            self.unidentified.append(use.position)
        return paths

    def _measure(self, part: ToolResult, use: ToolUse) -> None:
        texts = [item.text for item in part.content if type(item) is Text]
        characters = sum([len(text) for text in texts])
        if characters >= LARGE_RESULT:
            lines = sum([text.count("\n") + 1 for text in texts])
            self.large.append(LargeResult(use, characters, lines))

    def files(self, use: ToolUse) -> tuple[PathRange, ...]:
        found = parse_paths(use.arguments)
        return tuple([file._replace(path=normalize_path(file.path, self._root)) for file in found])


def find_tool_uses(log: EntryLog, n: int, root: str) -> ToolUses:
    found = log.uses.get(root)
    if not isinstance(found, ToolUses):
        found = log.uses[root] = ToolUses(log, root)
    found.advance(n)
    return found
