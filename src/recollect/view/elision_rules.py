"""Rules that leave tool results out of a view: pure planners propose, the log decides.

A plan is made for a time that the caller names. It holds one edit per rule, and only when together
they save enough to be worth breaking a provider's prompt cache, or when the view is over its budget
anyway. The built-in rules never touch pinned messages, messages the user restored, failed calls, or
edits of files; `custom_rules.py` has the rules of users. Intermediate results are kept with the
log, so that planning for a view that extends an earlier one mostly looks at new entries; the plan
is the one that would be made from scratch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TypeAlias

import msgspec

from recollect.entries import Elide, Elided, Message, Text, ToolResult
from recollect.settings import Settings
from recollect.stale_rules import STALE_RULES, StaleRule
from recollect.toolkinds import has_failed
from recollect.view.curation import is_tool_result
from recollect.view.custom_rules import CustomRule, plan_custom
from recollect.view.elision_plan import ElisionPlan, PlannedElision
from recollect.view.placeholders import Language, write_placeholder
from recollect.view.tool_uses import LargeResult, ToolUse, ToolUses, find_tool_uses
from recollect.view.view import View

LineRange: TypeAlias = tuple[int, int]  # from 1, both ends included
_LAST_LINE = 1 << 60  # of a read to the end of a file


class ElisionRules(msgspec.Struct, frozen=True):
    """What the rules keep, and from when on they leave results out. Every number is a setting."""

    keep_reads: int = 5  # newest of each file
    keep_read_tokens: int = 0  # of these only as many as fit; 0 for all of them
    stale: tuple[StaleRule, ...] = STALE_RULES  # each with the keep count and age to apply
    max_characters: int = 4_000_000
    max_lines: int = 1_000
    min_saving: int = 2_000  # tokens
    language: Language = "en"
    root: str = ""  # the project's folder, so that absolute and relative paths are one file
    custom: tuple[CustomRule, ...] = ()  # of the user's own

    @staticmethod
    def from_settings(settings: Settings, root: str = "") -> ElisionRules:
        context = settings.context
        return ElisionRules(
            keep_reads=context.keep_reads,
            keep_read_tokens=context.keep_read_tokens,
            stale=context.stale_rules,
            max_characters=context.max_characters,
            max_lines=context.max_lines,
            min_saving=context.min_saving,
            language=settings.language,
            root=root,
        )


def plan_elisions(
    view: View, now: int, rules: ElisionRules | None = None, *, over_budget: bool = False
) -> ElisionPlan:
    """What the rules would leave out now; nothing if it does not save enough."""
    rules = rules or ElisionRules()
    uses = find_tool_uses(view.log, view.n, rules.root)
    planner = _Planner(view, uses, rules)
    savings = [*planner.oversized(), *planner.superseded_reads()]
    for rule in rules.stale:
        savings += planner.stale(rule, now)
    planned = [plan_custom(rule, view, now, rules.language) for rule in rules.custom]
    savings += [saving for found, _ in planned for saving in found]
    problems = tuple(problem for _, problem in planned if problem)
    begin, end = (bisect_left(uses.unidentified, at) for at in (view.state.base, view.n))
    unidentified = max(0, end - begin)
    # a result that a later rule leaves out whole need not be shortened first
    last = {(saving.elided.entry, saving.elided.parts): saving for saving in savings}
    plan = ElisionPlan(tuple(last.values()), unidentified, problems)
    worth_it = over_budget or plan.tokens >= rules.min_saving
    return plan if worth_it else ElisionPlan((), unidentified, problems)


class _SupersededReads:
    """The reads that newer ones supersede, up to an entry, and what leaving them out saves."""

    def __init__(self) -> None:
        self.end = -1
        self.by_file: dict[str, frozenset[ToolUse]] = {}
        self.files: dict[ToolUse, set[str]] = {}
        self.savings: dict[ToolUse, tuple[PlannedElision, ...]] = {}

    def update(self, file: str, now: frozenset[ToolUse]) -> frozenset[ToolUse]:
        """Set which reads of a file are superseded; returns those for which that changed."""
        changed = self.by_file.pop(file, frozenset()) ^ now
        if now:
            self.by_file[file] = now
        for use in changed:
            files = self.files.setdefault(use, set())
            files ^= {file}
            if not files:
                del self.files[use]
        return changed


class _PlanMemory:
    """Intermediate results for one view, for the next view that extends it.

    A result that is hidden stays hidden, and an exempt one stays exempt, unless something that
    `is_valid_for` compares has changed. So `settled`, the number of uses at the beginning of a
    rule's list from which it will never again leave anything out, stays true. Superseded reads may
    change with every edit.
    """

    def __init__(self, view: View, rules: ElisionRules) -> None:
        self.n, self.rules, self.state = view.n, rules, view.state
        self.settled: dict[str, int] = {}  # by rule
        self.superseded = _SupersededReads()

    @staticmethod
    def of(view: View, uses: ToolUses, rules: ElisionRules) -> _PlanMemory:
        known = uses.memory
        if not isinstance(known, _PlanMemory) or not known.is_valid_for(view, rules):
            known = uses.memory = _PlanMemory(view, rules)
        elif known.state.changed is not view.state.changed:
            known.superseded = _SupersededReads()
        known.n, known.state = view.n, view.state
        return known

    def is_valid_for(self, view: View, rules: ElisionRules) -> bool:
        before, now = self.state, view.state
        return (
            self.n <= view.n
            and self.rules == rules
            and before.base == now.base
            and before.dropped is now.dropped
            and before.pins is now.pins
            and before.restored is now.restored
        )


class _Planner:
    def __init__(self, view: View, uses: ToolUses, rules: ElisionRules) -> None:
        self._view, self._uses, self._rules = view, uses, rules
        self._memory = _PlanMemory.of(view, uses, rules)

    def superseded_reads(self) -> Iterator[PlannedElision]:
        known, uses, rules = self._memory.superseded, self._uses, self._rules
        begun = known.end >= 0
        changed: set[ToolUse] = set()
        for path in uses.touched(known.end, self._view.n) if begun else uses.often:
            reads = uses.often.get(path, [])
            often = len(reads) > rules.keep_reads or rules.keep_read_tokens
            superseded = frozenset(self._superseded(path, reads) if often else ())
            changed |= known.update(path, superseded)
        for use in changed:
            known.savings.pop(use, None)
            if saved := self._superseded_saving(use, known.files.get(use, set())):
                known.savings[use] = saved
        known.end = self._view.n
        for use in sorted(known.savings, key=self._newest_of_the_first_file):
            yield from known.savings[use]

    def _newest_of_the_first_file(self, use: ToolUse) -> tuple[int, int, int]:
        first = min(self._uses.rank[path] for path in self._memory.superseded.files[use])
        return first, -use.position, -use.part

    def _superseded_saving(self, use: ToolUse, paths: set[str]) -> tuple[PlannedElision, ...]:
        files = self._uses.files(use)
        blocks = tuple([i for i, file in enumerate(files) if file.path in paths])
        whole = len(blocks) == len(files)
        # some files of several can be left out if each has a block of its own
        if not blocks or not (whole or len(self._result(use).content) == len(files)):
            return ()
        what = ", ".join(sorted(paths))
        return self._saving("superseded-read", what, use, () if whole else blocks)

    def _superseded(self, path: str, reads: list[ToolUse]) -> Iterator[ToolUse]:
        """Reads of a file that are no longer needed: newer ones show the same lines, or the file
        has changed since."""
        rules, room = self._rules, self._rules.keep_read_tokens
        kept, shown = 0, list[LineRange]()
        for use in reversed(reads):
            files = self._uses.files(use)
            blocks = [i for i, file in enumerate(files) if file.path == path]
            if not self._is_shown(use, blocks) or has_failed(self._result(use)):
                continue
            ranges = [_closed_range(files[i].start, files[i].end) for i in blocks]
            if rules.keep_read_tokens:
                room -= self._view.log.part_tokens(use.position)[use.part]
            stays = kept < rules.keep_reads and (room >= 0 or not kept)
            stale = self._uses.changed(path, use.position, self._view.n)
            if stays or not (stale or _cover(shown, ranges)) or self._is_exempt(use):
                kept += 1
                shown = _join_ranges([*shown, *ranges])
            else:
                yield use

    def stale(self, rule: StaleRule, now: int) -> Iterator[PlannedElision]:
        name, keep, oldest = rule.name, rule.keep, now - round(rule.age * 1_000)
        uses = self._uses.aging[name]
        kept, begin = 0, self._memory.settled.get(name, 0)
        settled = end = bisect_left(uses, self._view.n, key=attrgetter("position"))
        for number in range(end - 1, begin - 1, -1):
            use = uses[number]
            if not self._is_shown(use):
                continue
            kept += 1
            if kept <= keep or use.time >= oldest:
                settled = number
            elif not self._is_exempt(use) and (saved := self._saving(name, use.name, use)):
                settled = number
                yield from saved
        self._memory.settled[name] = settled

    def oversized(self) -> Iterator[PlannedElision]:
        uses, begin = self._uses.large, self._memory.settled.get("oversized", 0)
        end = bisect_left(uses, self._view.n, key=attrgetter("use.position"))
        found = [at for at in range(begin, end) if self._is_oversized(uses[at])]
        self._memory.settled["oversized"] = found[0] if found else end
        for at in found:
            yield from self._shorten(uses[at].use)

    def _is_oversized(self, large: LargeResult) -> bool:
        use, characters, lines = large
        if characters <= self._rules.max_characters and lines <= self._rules.max_lines:
            return False
        return self._is_shown(use, whole=True) and not self._is_exempt(use)

    def _shorten(self, use: ToolUse) -> tuple[PlannedElision, ...]:
        result, rules = self._result(use), self._rules
        texts = {n: item.text for n, item in enumerate(result.content) if isinstance(item, Text)}
        block, longest = max(texts.items(), key=lambda numbered: len(numbered[1]))
        head, tail = head_and_tail(longest, rules.max_characters, rules.max_lines)
        if head + tail >= len(longest):
            return ()
        ends = longest[:head], longest[len(longest) - tail :]
        return self._saving("oversized", result.name or use.name, use, (block,), ends)

    def _is_shown(self, use: ToolUse, blocks: Sequence[int] = (), *, whole: bool = False) -> bool:
        """Whether the view shows a result: at all, or some of these blocks, or the whole of it."""
        view = self._view
        if not view.state.base <= use.position < view.n or use.position in view.state.dropped:
            return False
        changed = view.state.changed.get(view.log.entries[use.position].id)
        if changed is None:
            return True
        cuts = [c.what for c in changed.cuts if not c.what.parts or use.part in c.what.parts]
        if whole or any(not cut.blocks and not cut.head and not cut.tail for cut in cuts):
            return not cuts
        gone = {block for cut in cuts if not cut.head and not cut.tail for block in cut.blocks}
        return not blocks or not gone.issuperset(blocks)

    def _is_exempt(self, use: ToolUse) -> bool:
        """From every rule."""
        entry = self._view.log.entries[use.position].id
        return entry in self._view.state.pins or entry in self._view.state.restored

    def _result(self, use: ToolUse) -> ToolResult:
        message = self._view.log.entries[use.position].body
        part = message.parts[use.part] if isinstance(message, Message) else None
        assert isinstance(part, ToolResult)
        return part

    def _saving(
        self,
        rule: str,
        what: str,
        use: ToolUse,
        blocks: tuple[int, ...] = (),
        ends: tuple[str, str] = ("", ""),
    ) -> tuple[PlannedElision, ...]:
        """Nothing when the placeholder would be as long as what it replaces."""
        log = self._view.log
        count, entry = log.counter, log.entries[use.position].id
        tokens = log.block_tokens(use.position, use.part)
        whole = sum(tokens[i] for i in blocks) if blocks else sum(tokens)
        whole = max(0, whole - sum(map(count.text, ends)))
        placeholder = write_placeholder(rule, what, whole, entry, self._rules.language)
        saved = whole - count.text(placeholder) * max(1, len(blocks))
        if saved <= 0:
            return ()
        elided = Elided(
            entry=entry,
            placeholder=placeholder,
            parts=(use.part,),
            blocks=blocks,
            head=len(ends[0]),
            tail=len(ends[1]),
            tokens=saved,
        )
        return (PlannedElision(rule, what, elided),)


def _closed_range(start: int | None, end: int | None) -> LineRange:
    first = max(1, start or 1)
    return first, _LAST_LINE if end is None else max(first, end)


def _join_ranges(ranges: Iterable[LineRange]) -> list[LineRange]:
    """Sorted, neither overlapping nor adjacent."""
    joined: list[LineRange] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _cover(shown: list[LineRange], ranges: Iterable[LineRange]) -> bool:
    return all(any(a <= first and last <= b for a, b in shown) for first, last in ranges)


def head_and_tail(text: str, characters: int, lines: int) -> tuple[int, int]:
    """How many characters of a text stay at its head and at its tail: a fifth of the lines and
    four fifths, whole lines where they fit."""
    first, last = characters // 5, characters - characters // 5
    head = tail = 0
    for _ in range(max(1, lines // 5)):
        end = text.find("\n", head)
        if end < 0 or end + 1 > first:
            head = head or min(first, len(text))
            break
        head = end + 1
    for _ in range(lines - lines // 5):
        start = text.rfind("\n", 0, max(0, len(text) - tail - 1))
        if start < 0 or len(text) - start - 1 > last:
            tail = tail or min(last, len(text))
            break
        tail = len(text) - start - 1
    return head, tail


def drop_message(
    view: View, entry: str, parts: tuple[int, ...] = (), language: Language = "en"
) -> Elide:
    """The edit that hides a message, or parts of it, because the user asked for it."""
    message = view.log.find_message(entry, view.n)
    tokens = view.log.tokens(view.log.at[entry]) if message is not None else 0
    spoken = message is not None and not is_tool_result(message)
    text = "" if spoken else write_placeholder("drop", "", tokens, entry, language)
    elided = Elided(entry=entry, placeholder=text, parts=parts, tokens=tokens)
    return Elide(rule="drop", items=(elided,))
