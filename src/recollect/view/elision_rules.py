"""Rules that leave things out: each is a pure planner that proposes, the log decides.

A plan is made once per user turn for a time that the caller names, and comes back as edits to
append, one for each rule, only when together they save enough to be worth breaking a provider's
prompt cache for, or when the view is over its budget anyway. What is pinned, what a person brought
back and what failed is never touched; edits of files never are. What was worked out for a view is
remembered with its log, so that the plan for a view that extends it looks at little but what is
new; it is the plan that would be made from scratch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from recollect.entries import Elide, Elided, Message, Text, ToolResult
from recollect.toolkinds import ToolKind, has_failed
from recollect.view.line_ranges import LineRanges
from recollect.view.placeholders import Language, RuleName, write_placeholder
from recollect.view.tool_uses import LargeResult, ToolUse, ToolUses, find_tool_uses
from recollect.view.view import View

MINUTE = 60_000


class ElisionRules(msgspec.Struct, frozen=True):
    """Every number is a setting."""

    keep_reads: int = 5  # newest of each file
    keep_read_tokens: int = 0  # and of these only as many as fit; 0 for all of them
    keep_shell: int = 5
    shell_age: int = 15 * MINUTE
    keep_search: int = 5
    search_age: int = 10 * MINUTE
    max_characters: int = 4_000_000
    max_lines: int = 1_000
    min_saving: int = 2_000  # tokens
    language: Language = "en"
    root: str = ""  # the project's folder, so that absolute and relative paths are one file
    tools: tuple[tuple[str, ToolKind], ...] = ()  # names we do not know, or know otherwise


class PlannedElision(msgspec.Struct, frozen=True):
    """One thing a rule leaves out."""

    rule: RuleName
    what: str  # the file or the tool
    elided: Elided


class ElisionPlan(msgspec.Struct, frozen=True):
    savings: tuple[PlannedElision, ...] = ()
    unidentified: int = 0  # reads that were left alone because they name no file

    @property
    def tokens(self) -> int:
        return sum(saving.elided.tokens for saving in self.savings)

    @property
    def edits(self) -> tuple[Elide, ...]:
        by_rule: dict[RuleName, list[Elided]] = {}
        for saving in self.savings:
            by_rule.setdefault(saving.rule, []).append(saving.elided)
        return tuple(Elide(rule=rule, items=tuple(items)) for rule, items in by_rule.items())


def plan_elisions(
    view: View, now: int, rules: ElisionRules | None = None, *, over_budget: bool = False
) -> ElisionPlan:
    """What the rules would leave out now; nothing, when it is not worth it."""
    rules = rules or ElisionRules()
    uses = find_tool_uses(view.log, view.n, rules.root, rules.tools)
    planner = _Planner(view, uses, rules)
    savings = (
        *planner.oversized(),
        *planner.superseded_reads(),
        *planner.stale("stale-shell", uses.shell, rules.keep_shell, now - rules.shell_age),
        *planner.stale("stale-search", uses.search, rules.keep_search, now - rules.search_age),
    )
    first, last = (bisect_left(uses.unidentified, at) for at in (view.state.base, view.n))
    unidentified = max(0, last - first)
    found = ElisionPlan(_last_per_result(savings), unidentified)
    return (
        found if over_budget or found.tokens >= rules.min_saving else ElisionPlan((), unidentified)
    )


def _last_per_result(savings: Iterable[PlannedElision]) -> tuple[PlannedElision, ...]:
    """A result that a later rule leaves out whole need not be shortened before."""
    found: dict[tuple[str, tuple[int, ...]], PlannedElision] = {}
    for saving in savings:
        found[saving.elided.entry, saving.elided.parts] = saving
    return tuple(found.values())


class _SupersededReads:
    """Which reads newer ones make needless, up to an entry, and what leaving them out saves."""

    def __init__(self) -> None:
        self.end = -1
        self.by_file: dict[str, frozenset[ToolUse]] = {}
        self.files: dict[ToolUse, set[str]] = {}
        self.savings: dict[ToolUse, tuple[PlannedElision, ...]] = {}

    def differ(self, file: str, now: frozenset[ToolUse]) -> frozenset[ToolUse]:
        """Takes in what is known of a file; the uses of which that says something new."""
        new = self.by_file.pop(file, frozenset()) ^ now
        if now:
            self.by_file[file] = now
        for use in new:
            files = self.files.setdefault(use, set())
            files ^= {file}
            if not files:
                del self.files[use]
        return new


class _PlanMemory:
    """What was worked out for a view, for the next one that extends it.

    Nothing comes back into sight, and nothing that is safe is so no longer, without a change of
    what `holds_for` compares; so what is `settled`, the beginning of a list of uses of which no
    rule will leave out anything any more, stays so. What is superseded may change with every edit.
    """

    def __init__(self, view: View, rules: ElisionRules) -> None:
        self.n, self.rules, self.state = view.n, rules, view.state
        self.settled: dict[RuleName, int] = {}
        self.superseded = _SupersededReads()

    @staticmethod
    def of(view: View, uses: ToolUses, rules: ElisionRules) -> _PlanMemory:
        known = uses.memory
        if not isinstance(known, _PlanMemory) or not known.holds_for(view, rules):
            known = uses.memory = _PlanMemory(view, rules)
        elif known.state.changed is not view.state.changed:
            known.superseded = _SupersededReads()
        known.n, known.state = view.n, view.state
        return known

    def holds_for(self, view: View, rules: ElisionRules) -> bool:
        one, other = self.state, view.state
        return (
            self.n <= view.n
            and self.rules == rules
            and one.base == other.base
            and one.dropped is other.dropped
            and one.pins is other.pins
            and one.untouchable is other.untouchable
        )


class _Planner:
    def __init__(self, view: View, uses: ToolUses, rules: ElisionRules) -> None:
        self._view, self._uses, self._rules = view, uses, rules
        self._memory = _PlanMemory.of(view, uses, rules)

    def superseded_reads(self) -> Iterator[PlannedElision]:
        known, uses, rules = self._memory.superseded, self._uses, self._rules
        begun = known.end >= 0
        new: set[ToolUse] = set()
        for path in uses.touched(known.end, self._view.n) if begun else uses.often:
            reads = uses.often.get(path, [])
            often = len(reads) > rules.keep_reads or rules.keep_read_tokens
            new |= known.differ(path, frozenset(self._superseded(path, reads) if often else ()))
        for use in new:
            known.savings.pop(use, None)
            if saved := tuple(self._superseded_saving(use, known.files.get(use, set()))):
                known.savings[use] = saved
        known.end = self._view.n
        for use in sorted(known.savings, key=self._newest_of_the_first_file):
            yield from known.savings[use]

    def _newest_of_the_first_file(self, use: ToolUse) -> tuple[int, int, int]:
        first = min(self._uses.rank[path] for path in self._memory.superseded.files[use])
        return first, -use.position, -use.part

    def _superseded_saving(self, use: ToolUse, paths: set[str]) -> Iterator[PlannedElision]:
        files = self._uses.files(use)
        blocks = [i for i, file in enumerate(files) if file.path in paths]
        what = ", ".join(sorted(paths))
        if not blocks:
            return
        if len(blocks) == len(files):
            yield from self._saving("superseded-read", what, use)
        elif len(self._result(use).content) == len(files):  # a block for each file
            yield from self._saving("superseded-read", what, use, tuple(blocks))

    def _superseded(self, path: str, reads: list[ToolUse]) -> Iterator[ToolUse]:
        """Reads of a file that newer ones make needless: they show the same lines, or the file
        has changed since."""
        rules, room = self._rules, self._rules.keep_read_tokens
        kept, shown = 0, LineRanges()
        for use in reversed(reads):
            files = self._uses.files(use)
            blocks = [i for i, file in enumerate(files) if file.path == path]
            if not self._in_sight(use, blocks) or has_failed(self._result(use)):
                continue
            ranges = [(files[i].start, files[i].end) for i in blocks]
            room -= self._tokens(use) if rules.keep_read_tokens else 0
            stays = kept < rules.keep_reads and (room >= 0 or not kept)
            stale = self._uses.changed(path, use.position, self._view.n)
            if stays or not (stale or shown.covers(ranges)) or self._is_safe(use):
                kept += 1
                shown = shown.with_ranges(ranges)
            else:
                yield use

    def stale(
        self, rule: RuleName, uses: list[ToolUse], keep: int, before: int
    ) -> Iterator[PlannedElision]:
        kept, begin = 0, self._memory.settled.get(rule, 0)
        settled = end = bisect_left(uses, self._view.n, key=_position)
        for number in range(end - 1, begin - 1, -1):
            use = uses[number]
            if not self._in_sight(use):
                continue
            kept += 1
            if kept <= keep or use.time >= before:
                settled = number
            elif not self._is_safe(use) and (saved := tuple(self._saving(rule, use.name, use))):
                settled = number
                yield from saved
        self._memory.settled[rule] = settled

    def oversized(self) -> Iterator[PlannedElision]:
        rules, uses, begin = self._rules, self._uses.large, self._memory.settled.get("oversized", 0)
        settled = end = bisect_left(uses, self._view.n, key=_position_of_large)
        for number in range(end - 1, begin - 1, -1):
            use, characters, lines = uses[number]
            over = characters > rules.max_characters or lines > rules.max_lines
            if over and self._in_sight(use, whole=True) and not self._is_safe(use):
                settled = number
        self._memory.settled["oversized"] = settled
        for use, characters, lines in uses[settled:end]:
            over = characters > rules.max_characters or lines > rules.max_lines
            if over and self._in_sight(use, whole=True) and not self._is_safe(use):
                yield from self._shortened(use, rules.max_characters, rules.max_lines)

    def _shortened(self, use: ToolUse, characters: int, lines: int) -> Iterator[PlannedElision]:
        result = self._result(use)
        texts = [item.text for item in result.content if isinstance(item, Text)]
        longest = max(texts, key=len)
        block = next(i for i, item in enumerate(result.content) if item == Text(text=longest))
        head, tail = head_and_tail(longest, characters, lines)
        if head + tail < len(longest):
            what = result.name or use.name
            yield from self._saving("oversized", what, use, (block,), head, tail)

    def _in_sight(self, use: ToolUse, blocks: Sequence[int] = (), *, whole: bool = False) -> bool:
        """Whether a result is shown: at all, or some of these blocks, or wholly."""
        view = self._view
        if not view.state.base <= use.position < view.n or use.position in view.state.dropped:
            return False
        shown = view.state.changed.get(view.log.entries[use.position].id)
        if shown is None:
            return True
        cuts = [c.what for c in shown.cuts if not c.what.parts or use.part in c.what.parts]
        if whole or any(not cut.blocks and not cut.head and not cut.tail for cut in cuts):
            return not cuts
        gone = {block for cut in cuts if not cut.head and not cut.tail for block in cut.blocks}
        return not blocks or not gone.issuperset(blocks)

    def _is_safe(self, use: ToolUse) -> bool:
        """From every rule."""
        entry = self._view.log.entries[use.position].id
        return entry in self._view.state.pins or entry in self._view.state.untouchable

    def _result(self, use: ToolUse) -> ToolResult:
        message = self._view.log.entries[use.position].body
        part = message.parts[use.part] if isinstance(message, Message) else None
        assert isinstance(part, ToolResult)
        return part

    def _tokens(self, use: ToolUse) -> int:
        return self._view.log.part_tokens(use.position)[use.part]

    def _saving(
        self,
        rule: RuleName,
        what: str,
        use: ToolUse,
        blocks: tuple[int, ...] = (),
        head: int = 0,
        tail: int = 0,
    ) -> Iterator[PlannedElision]:
        view, result = self._view, self._result(use)
        count, entry = view.log.counter, view.log.entries[use.position].id
        tokens = view.log.block_tokens(use.position, use.part)
        whole = sum(tokens[i] for i in blocks) if blocks else sum(tokens)
        if head or tail:
            first = result.content[blocks[0]] if blocks else None
            text = first.text if isinstance(first, Text) else ""
            kept = count.text(text[:head]) + count.text(text[len(text) - tail :])
            whole = max(0, whole - kept)
        text = write_placeholder(rule, what, whole, entry, self._rules.language)
        saved = whole - count.text(text) * max(1, len(blocks))
        if saved > 0:
            yield PlannedElision(
                rule,
                what,
                Elided(
                    entry=entry,
                    placeholder=text,
                    parts=(use.part,),
                    blocks=blocks,
                    head=head,
                    tail=tail,
                    tokens=saved,
                ),
            )


def _position(use: ToolUse) -> int:
    return use.position


def _position_of_large(large: LargeResult) -> int:
    return large.use.position


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
    """A person's wish: this message, or parts of it, out of the model's sight."""
    position = view.log.position(entry, view.n)
    message = view.log.message(position) if position is not None else None
    tokens = view.log.tokens(position) if position is not None and message is not None else 0
    spoken = message is not None and not any(isinstance(p, ToolResult) for p in message.parts)
    text = "" if spoken else write_placeholder("drop", "", tokens, entry, language)
    return Elide(
        rule="drop",
        items=(Elided(entry=entry, placeholder=text, parts=parts, tokens=tokens),),
    )
