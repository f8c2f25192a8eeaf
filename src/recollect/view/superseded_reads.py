"""Which reads of files newer ones make superfluous, and what leaving them out saves.

A read goes when newer reads that the view shows cover every line it shows, and its placeholder
names them; or when its file was changed since, and its placeholder says so. Lines count as shown by
the evidence of the result (`shown_lines`), without what elisions hide; what cannot be told by lines
is covered by the same content only. The newest reads of each file stay in any case. What is known
is kept from plan to plan: the next one looks only at files that were read, changed or elided since.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeAlias

from recollect.entries import Elide, Elided, Text
from recollect.toolkinds import has_failed
from recollect.view.elision import is_whole
from recollect.view.elision_plan import PlannedElision
from recollect.view.placeholders import Language, may_name, write_read_placeholder
from recollect.view.shown_lines import Ends, LineRange, LineSet, join_ranges, subtract_ranges
from recollect.view.tool_uses import ToolUse, ToolUses
from recollect.view.view import View

SUPERSEDED_READ = "superseded-read"
_MAX_RANGES = 3  # that a placeholder names
PlannedCuts: TypeAlias = Mapping[tuple[int, int], tuple[Elided, ...]]  # by position and part


class ReadRules(Protocol):
    @property
    def keep_reads(self) -> int: ...
    @property
    def keep_read_tokens(self) -> int: ...
    @property
    def language(self) -> Language: ...


class ReadCopy(NamedTuple):
    """What the view shows of a file in one result."""

    use: ToolUse
    blocks: tuple[int, ...]
    ranges: tuple[LineRange, ...]
    contents: tuple[object, ...]  # of which the lines are not known
    whole_contents: tuple[object, ...]  # those of them that are shown whole


class SupersededRead(NamedTuple):
    read: ReadCopy
    shown_by: tuple[str, ...]  # none: its file was changed since


class _Cover(NamedTuple):
    names: tuple[str, ...]  # of entries
    reads: list[tuple[ReadCopy, tuple[LineRange, ...]]]  # each with the lines it is there for


class ReadMemory:
    """What was decided for the reads of one view, for the next view that extends it."""

    def __init__(self) -> None:
        self.end = -1
        self.taken: dict[str, int] = {}  # by file: how many of its reads were looked at
        self.live: dict[str, list[ToolUse]] = {}  # those that may be shown
        self.superseded: dict[str, dict[ToolUse, SupersededRead]] = {}  # by file
        self.by_use: dict[ToolUse, dict[str, SupersededRead]] = {}
        self.savings: dict[ToolUse, tuple[PlannedElision, ...]] = {}
        self.cuts: PlannedCuts = {}

    def update(self, path: str, now: dict[ToolUse, SupersededRead]) -> set[ToolUse]:
        """Set which reads of a file are superseded; returns those for which that changed."""
        before = self.superseded.pop(path, {})
        if now:
            self.superseded[path] = now
        changed = {use for use in before.keys() | now.keys() if before.get(use) != now.get(use)}
        for use in changed:
            found = self.by_use.setdefault(use, {})
            found.pop(path, None)
            if use in now:
                found[path] = now[use]
            if not found:
                del self.by_use[use]
        return changed


def visible_ends(cuts: Iterable[Elided], block: int) -> tuple[bool, Ends | None]:
    """Whether a block of a result is shown despite these cuts, and if so, the ends that stay."""
    ends: Ends | None = None
    for cut in cuts:
        if is_whole(cut):
            return False, None
        if cut.blocks and block not in cut.blocks:
            continue
        if not cut.head and not cut.tail:
            return False, None
        ends = ends or (cut.head, cut.tail)
    return True, ends


class ReadPlanner:
    def __init__(
        self, view: View, uses: ToolUses, rules: ReadRules, memory: ReadMemory, cuts: PlannedCuts
    ) -> None:
        """`cuts` are those that the same plan makes for other reasons."""
        self._view, self._uses, self._rules = view, uses, rules
        self._memory, self._cuts = memory, cuts

    def plan(self) -> Iterator[PlannedElision]:
        known = self._memory
        changed: set[ToolUse] = set()
        for path in self._paths_to_judge():
            changed |= known.update(path, {one.read.use: one for one in self._judge(path)})
        for use in changed:
            known.savings.pop(use, None)
            if saved := tuple(self._savings(use, known.by_use.get(use, {}))):
                known.savings[use] = saved
        known.end, known.cuts = self._view.n, self._cuts
        for use in sorted(known.savings, key=attrgetter("position", "part")):
            yield from known.savings[use]

    def _paths_to_judge(self) -> Iterable[str]:
        known, uses, view = self._memory, self._uses, self._view
        if known.end < 0:
            return list(uses.often)
        before, now = known.cuts, self._cuts
        places = {key[0] for key in before.keys() | now.keys() if before.get(key) != now.get(key)}
        for entry in view.log.entries[known.end : view.n]:
            if isinstance(entry.body, Elide):
                places |= {view.log.at.get(item.entry, -1) for item in entry.body.items}
        found = uses.touched(known.end, view.n)
        for place in places:
            found |= uses.touched(place, place + 1)
        return found

    def _judge(self, path: str) -> Iterator[SupersededRead]:
        rules, room, kept = self._rules, self._rules.keep_read_tokens, list[ReadCopy]()
        lines, contents = LineSet(), dict[object, str]()
        live = self._live_reads(path)
        if len(live) <= rules.keep_reads and not room:
            return
        for use in reversed(live):
            read = self._find_copy(use, path)
            if read is None:
                continue
            if rules.keep_read_tokens:
                room -= self._view.log.part_tokens(use.position)[use.part]
            stays = len(kept) < rules.keep_reads and (room >= 0 or not kept)
            names = None
            if not stays and not self._is_exempt(use):
                has_changed = self._uses.changed(path, use.position, self._view.n)
                found = None if has_changed else self._find_cover(read, kept, lines, contents)
                names = () if has_changed else found and self._compare(path, read, found)
            if names is not None:
                yield SupersededRead(read, names)
                continue
            kept.append(read)
            for first, last in read.ranges:
                lines.add(first, last)
            contents = dict.fromkeys(read.whole_contents, self._entry(use)) | contents

    def _live_reads(self, path: str) -> list[ToolUse]:
        """The reads of a file that the view shows and that did not fail."""
        known, reads = self._memory, self._uses.often.get(path, [])
        end = bisect_left(reads, self._view.n, key=attrgetter("position"))
        new = reads[known.taken.get(path, 0) : end]
        known.taken[path] = end
        live = known.live.get(path, []) + [u for u in new if not has_failed(self._uses.result(u))]
        known.live[path] = live = [use for use in live if self._is_in_sight(use)]
        return live

    def _is_in_sight(self, use: ToolUse) -> bool:
        state = self._view.state
        shown = state.base <= use.position and use.position not in state.dropped
        return shown and not any(is_whole(cut) for cut in self._cuts_of(use))

    def _cuts_of(self, use: ToolUse) -> list[Elided]:
        """That are in force."""
        changed = self._view.state.changed.get(self._entry(use))
        cuts = (cut.what for cut in changed.cuts) if changed is not None else ()
        return [cut for cut in cuts if not cut.parts or use.part in cut.parts]

    def _entry(self, use: ToolUse) -> str:
        return self._view.log.entries[use.position].id

    def _is_exempt(self, use: ToolUse) -> bool:
        """From every rule."""
        entry, state = self._entry(use), self._view.state
        return entry in state.pins or entry in state.restored

    def _find_copy(self, use: ToolUse, path: str) -> ReadCopy | None:
        cuts = [*self._cuts_of(use), *self._cuts.get((use.position, use.part), ())]
        content = self._uses.result(use).content
        blocks, ranges = list[int](), list[LineRange]()
        contents: dict[object, bool] = {}  # whether it is shown whole
        for file in self._uses.file_blocks(use):
            is_shown, ends = visible_ends(cuts, file.block)
            if file.path != path or not is_shown:
                continue
            blocks.append(file.block)
            lines = self._uses.shown_lines(use, file, ends)
            if lines is not None:
                ranges += lines
            elif file.block >= 0:
                contents[file.requested, content[file.block]] = ends is None
            else:
                contents[file.requested, content] = not cuts
        if not blocks:
            return None
        whole = tuple(one for one, is_whole_content in contents.items() if is_whole_content)
        return ReadCopy(use, tuple(blocks), join_ranges(ranges), tuple(contents), whole)

    def _find_cover(
        self, read: ReadCopy, kept: list[ReadCopy], lines: LineSet, contents: dict[object, str]
    ) -> _Cover | None:
        """The newest reads that together show the lines that a read shows; None if one is missing,
        or if they are too many to name."""
        if not all(lines.holds(first, last) for first, last in read.ranges):
            return None
        if not all(one in contents for one in read.contents):
            return None
        same = dict.fromkeys(contents[one] for one in read.contents)
        cover, left = list[tuple[ReadCopy, tuple[LineRange, ...]]](), read.ranges
        for other in kept:
            if not left:
                break
            rest = subtract_ranges(left, other.ranges)
            if rest != left:
                cover.append((other, subtract_ranges(left, rest)))
            left = rest
        names = (*same, *(self._entry(other.use) for other, _ in cover))
        return _Cover(tuple(dict.fromkeys(names)), cover) if may_name(set(names)) else None

    def _compare(self, path: str, read: ReadCopy, cover: _Cover) -> tuple[str, ...] | None:
        """The entries of a cover, if they show the lines just as the read does. No entries if the
        same tool showed a line differently: then the file has changed. None if it is uncertain."""
        for other, ranges in cover.reads:
            same = self._uses.is_same(read.use, other.use, path, ranges)
            if not same:
                return None if same is None else ()
        return cover.names

    def _savings(
        self, use: ToolUse, superseded: Mapping[str, SupersededRead]
    ) -> Iterator[PlannedElision]:
        files, content = self._uses.file_blocks(use), self._uses.result(use).content
        superseded = {f.path: superseded[f.path] for f in files if f.path in superseded}
        is_joint = any(file.block < 0 for file in files)
        blocks = sorted({block for one in superseded.values() for block in one.read.blocks})
        whole = is_joint or blocks == list(range(len(content)))
        if is_joint and {file.path for file in files} != superseded.keys():
            return  # what is left of it could not be told apart
        names = tuple(dict.fromkeys(e for one in superseded.values() for e in one.shown_by))
        changed = [not one.shown_by for one in superseded.values()]
        if whole and superseded and (all(changed) or (not any(changed) and may_name(names))):
            what = ", ".join(_describe(path, one.read) for path, one in superseded.items())
            yield from self._saving(use, what, (), names)
        elif not is_joint:
            for path, one in superseded.items():
                what = _describe(path, one.read)
                yield from self._saving(use, what, one.read.blocks, one.shown_by)

    def _saving(
        self, use: ToolUse, what: str, blocks: tuple[int, ...], shown_by: tuple[str, ...]
    ) -> Iterator[PlannedElision]:
        """Nothing when the placeholder would be as long as what it replaces."""
        log, entry = self._view.log, self._entry(use)
        tokens = log.block_tokens(use.position, use.part)
        gone = blocks or range(len(tokens))
        whole = sum(tokens[block] for block in gone)
        written = write_read_placeholder(what, whole, entry, shown_by, self._rules.language)
        count = log.counter.text
        left = max(count(written.text), count(written.fallback)) * max(1, len(blocks))
        now = sum(self.shown_tokens(use, block, tokens[block]) for block in gone)
        if now > left:
            elided = Elided(
                entry=entry,
                placeholder=written.text,
                shown_by=shown_by,
                fallback=written.fallback,
                parts=(use.part,),
                blocks=blocks,
                tokens=now - count(written.text) * max(1, len(blocks)),
            )
            yield PlannedElision(SUPERSEDED_READ, what, elided)

    def shown_tokens(self, use: ToolUse, block: int, tokens: int) -> int:
        """Of a block, of which cuts in force may hide something."""
        is_shown, ends = visible_ends(cuts := self._cuts_of(use), block)
        item = self._uses.result(use).content[block]
        if ends is None or not isinstance(item, Text):
            return tokens if is_shown else 0
        placeholder = next(c.placeholder for c in cuts if block in c.blocks or not c.blocks)
        head, tail = ends
        if head + tail >= len(item.text):
            return tokens
        ends_text = item.text[:head] + placeholder + (item.text[-tail:] if tail else "")
        return self._view.log.counter.text(ends_text)


def _describe(path: str, read: ReadCopy) -> str:
    named = ", ".join(f"{first}-{last}" for first, last in read.ranges[:_MAX_RANGES])
    if not named or read.contents:
        return path
    return f"{path} lines {named}{', …' if len(read.ranges) > _MAX_RANGES else ''}"
