"""Which tools were used for what: read from the log once, then kept up to date with it.

A use is a result with the call it answers: the newest call with that id before the result. The
tool's name and arguments say what it does, never the look of its output. A result without its call,
or whose call names no file, is not a use of a file; a file that failed in a batch was not read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from recollect.entries import Message, Text, ToolCall, ToolResult
from recollect.stale_rules import STALE_RULES
from recollect.toolkinds import (
    PathRange,
    ToolKind,
    classify_call,
    classify_tool,
    find_patched_paths,
    has_failed,
    has_failed_change,
    has_failed_file,
    normalize_path,
    parse_arguments,
    parse_paths,
    parse_usual_path,
)
from recollect.view.entry_log import EntryLog
from recollect.view.shown_lines import Ends, LineRange, find_shown_lines, hash_lines, numbered_lines

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
    block_lines: int  # of the longest block
    is_read: bool


class FileBlock(NamedTuple):
    """Where a result holds what was read of a file."""

    path: str
    block: int  # -1: somewhere in the result, which does not have one block for each file
    requested: PathRange

    @property
    def whole(self) -> bool:
        """Whether the whole file was requested."""
        return self.requested == PathRange(self.path)


class ToolUses:
    """Grows with its log; a view ignores positions beyond its own end.

    What a read showed is parsed only when its file was read often.
    """

    def __init__(self, log: EntryLog, root: str) -> None:
        self._log, self._root = log, root
        self._calls: dict[str, ToolCall] = {}
        self._done = 0
        self._first_reads: dict[str, ToolUse] = {}  # by file
        self.often: dict[str, list[ToolUse]] = {}  # all reads of files read more than once
        self.changes: dict[str, list[int]] = {}  # positions at which a file was changed
        # by stale rule: the successful uses it looks at
        self.aging: dict[str, list[ToolUse]] = {rule.name: [] for rule in STALE_RULES}
        self._aging_kinds: dict[str, list[ToolUse]] = {
            kind: self.aging[rule.name] for rule in STALE_RULES for kind in rule.tool_kinds
        }
        self.large: list[LargeResult] = []
        self.unidentified: list[int] = []  # positions of reads that name no file
        self.memory: object = None  # intermediate results of `elision_rules`
        self._file_blocks: dict[ToolUse, tuple[FileBlock, ...]] = {}
        self._shown: dict[tuple[ToolUse, int, Ends | None], tuple[LineRange, ...] | None] = {}
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
            self._measure(part, ToolUse(position, number, part.name, "", time), is_read=False)
            return
        use = ToolUse(position, number, call.name, call.arguments, time)
        kind = _classify(call)
        content = part.content
        if (
            len(content) != 1
            or type(content[0]) is not Text
            or len(content[0].text) >= LARGE_RESULT
        ):
            self._measure(part, use, is_read=kind == "read")  # most results are one short text
        if kind == "read":
            usual = parse_usual_path(call.arguments, self._root)
            for path in (usual,) if usual else self._paths(use):
                self._touches.append(position)
                self._touched.append(path)
                first = self._first_reads.setdefault(path, use)
                if first is not use:
                    self.often.setdefault(path, [first]).append(use)
        elif (aging := self._aging_kinds.get(kind)) is not None:
            if not has_failed(part):
                aging.append(use)
        elif kind in _CHANGING_KINDS and not has_failed_change(part):
            self._change(use)

    def _change(self, use: ToolUse) -> None:
        paths = {file.path for file in self.files(use)}
        if value := parse_arguments(use.arguments) if not paths else None:
            paths = {normalize_path(path, self._root) for path in find_patched_paths(value)}
        for path in paths:
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

    def _measure(self, part: ToolResult, use: ToolUse, *, is_read: bool) -> None:
        texts = [item.text for item in part.content if type(item) is Text]
        characters = sum([len(text) for text in texts])
        if characters >= LARGE_RESULT:
            lines = [text.count("\n") + 1 for text in texts]
            self.large.append(LargeResult(use, characters, sum(lines), max(lines), is_read))

    def result(self, use: ToolUse) -> ToolResult:
        message = self._log.entries[use.position].body
        part = message.parts[use.part] if isinstance(message, Message) else None
        assert isinstance(part, ToolResult)
        return part

    def file_blocks(self, use: ToolUse) -> tuple[FileBlock, ...]:
        """Where a read's result holds what of which file, without files that failed."""
        found = self._file_blocks.get(use)
        if found is None:
            found = self._file_blocks[use] = tuple(self._find_file_blocks(use))
        return found

    def _find_file_blocks(self, use: ToolUse) -> Iterator[FileBlock]:
        files, content = self.files(use), self.result(use).content
        for number, file in enumerate(files):
            block = content[number] if len(files) == len(content) else None
            if not isinstance(block, Text) or not has_failed_file(block.text):
                yield FileBlock(file.path, -1 if block is None else number, file)

    def _texts(self, use: ToolUse, path: str) -> Iterator[tuple[FileBlock, str]]:
        for file in self.file_blocks(use):
            block = self.result(use).content[file.block] if file.block >= 0 else None
            if file.path == path and isinstance(block, Text):
                yield file, block.text

    def is_same(
        self, one: ToolUse, other: ToolUse, path: str, ranges: Sequence[LineRange]
    ) -> bool | None:
        """Whether two results show these lines of a file alike; None if that cannot be told."""
        if self.result(one).content == self.result(other).content:
            return True
        mine, theirs = list(self._texts(one, path)), list(self._texts(other, path))
        if one.name == other.name and len(mine) == len(theirs) == 1:
            first, second = numbered_lines(mine[0][1]), numbered_lines(theirs[0][1])
            if first is not None and second is not None:  # the numbers are written alike, too
                return all(
                    first[1][a - first[0] : b + 1 - first[0]]
                    == second[1][a - second[0] : b + 1 - second[0]]
                    for a, b in ranges
                )
        same = _compare_hashes(mine, theirs, ranges)
        # another tool may write the same line differently, or cut it elsewhere
        return same if same or one.name == other.name else None

    def shown_lines(
        self, use: ToolUse, file: FileBlock, ends: Ends | None
    ) -> tuple[LineRange, ...] | None:
        """The lines of a file that a block shows, or the ends that stay of it; None if that cannot
        be told."""
        key = use, file.block, ends
        if key not in self._shown:
            content = self.result(use).content
            block = content[file.block] if file.block >= 0 else None
            text = block.text if isinstance(block, Text) else None
            self._shown[key] = (
                None if text is None else find_shown_lines(text, whole=file.whole, ends=ends)
            )
        return self._shown[key]

    def files(self, use: ToolUse) -> tuple[PathRange, ...]:
        found = parse_paths(use.arguments)
        return tuple([file._replace(path=normalize_path(file.path, self._root)) for file in found])


def _compare_hashes(
    one: Sequence[tuple[FileBlock, str]],
    other: Sequence[tuple[FileBlock, str]],
    ranges: Sequence[LineRange],
) -> bool | None:
    mine, theirs = (
        {n: line for file, text in texts for n, line in hash_lines(text, whole=file.whole).items()}
        for texts in (one, other)
    )
    both = [n for n in mine.keys() & theirs.keys() if any(a <= n <= b for a, b in ranges)]
    if any(mine[n] != theirs[n] for n in both):
        return False
    return True if len(both) == sum(b - a + 1 for a, b in ranges) else None


def _classify(call: ToolCall) -> ToolKind:
    """Only tools that do several things name which in an argument."""
    given = call.arguments
    if '"command"' in given and '"path"' in given and (value := parse_arguments(given)):
        return classify_call(call.name, value)
    return classify_tool(call.name)


def find_tool_uses(log: EntryLog, n: int, root: str) -> ToolUses:
    found = log.uses.get(root)
    if not isinstance(found, ToolUses):
        found = log.uses[root] = ToolUses(log, root)
    found.advance(n)
    return found
