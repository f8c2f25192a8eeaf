"""Rules that leave tool results out of a view: pure planners propose, the log decides.

A plan is made for a time that the caller names, before every request. It holds one edit per rule,
and only when together they save enough and what breaking a provider's prompt cache costs is earned
back (`cache_cost`), or when the view is over its budget anyway; the edits say which. The built-in
rules never touch pinned messages, messages the user restored, failed calls, or edits of files;
`custom_rules.py` has the rules of users. Intermediate results are kept with the log, so that
planning for a view that extends an earlier one mostly looks at new entries; the plan is the one
that would be made from scratch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from operator import attrgetter

import msgspec

from recollect.entries import Elide, Elided, Text, ToolResult
from recollect.settings import Settings
from recollect.stale_rules import STALE_RULES, StaleRule
from recollect.view.cache_cost import (
    EXPIRED,
    OVER_BUDGET,
    HiddenTokens,
    WorthwhileElisions,
    choose_worthwhile,
    count_lost_claims,
    has_cache_expired,
)
from recollect.view.curation import is_tool_result
from recollect.view.custom_rules import CustomRule, plan_custom
from recollect.view.elision import elide_part, is_whole
from recollect.view.elision_plan import ElisionPlan, PlannedElision
from recollect.view.placeholders import Language, write_placeholder
from recollect.view.superseded_reads import ReadMemory, ReadPlanner
from recollect.view.tool_uses import LargeResult, ToolUse, ToolUses, find_tool_uses
from recollect.view.view import View

READ_LINES = 2_100  # of one file: what `read_file` shows at most, with its header and outline


class ElisionRules(msgspec.Struct, frozen=True):
    """What the rules keep, and from when on they leave results out. Every number is a setting."""

    keep_reads: int = 5  # newest of each file
    keep_read_tokens: int = 0  # of these only as many as fit; 0 for all of them
    stale: tuple[StaleRule, ...] = STALE_RULES  # each with the keep count and age to apply
    max_characters: int = 4_000_000
    max_lines: int = 1_000
    min_saving: int = 2_000  # tokens
    payback_requests: int = 20  # after which what breaking the prompt cache costs is earned back
    cache_lifetime: float = 300.0  # seconds after a request
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
            payback_requests=context.payback_requests,
            cache_lifetime=context.cache_lifetime,
            language=settings.language,
            root=root,
        )


def plan_elisions(
    view: View, now: int, rules: ElisionRules | None = None, *, over_budget: bool = False
) -> ElisionPlan:
    """What the rules would leave out now; nothing if it does not save enough."""
    rules = rules or ElisionRules()
    uses = find_tool_uses(view.log, view.n, rules.root)
    planner = _Planner(view, uses, rules, over_budget=over_budget)
    planned = [plan_custom(rule, view, now, rules.language) for rule in rules.custom]
    problems = tuple(problem for _, problem in planned if problem)
    # in the order of the edits: a placeholder names what earlier edits of the plan leave
    oversized = list(planner.oversized())
    stale = [saving for rule in rules.stale for saving in planner.stale(rule, now)]
    custom = [saving for found, _ in planned for saving in found]
    superseded = planner.superseded_reads([*oversized, *custom])
    savings = [*oversized, *stale, *custom, *superseded]
    begin, end = (bisect_left(uses.unidentified, at) for at in (view.state.base, view.n))
    unidentified = max(0, end - begin)
    found = list(count_lost_claims(view, _last_of_each(savings)))
    chosen = planner.choose(found, now)
    return ElisionPlan(chosen.savings, unidentified, problems, chosen.reason)


def _last_of_each(savings: list[PlannedElision]) -> list[PlannedElision]:
    """A result, or a block of one, that a later rule leaves out whole is not shortened first."""
    found: list[PlannedElision] = []
    gone: set[tuple[str, tuple[int, ...], int]] = set()
    for saving in reversed(savings):
        one = saving.elided
        if (one.entry, one.parts, -1) in gone:
            continue
        if one.blocks and all((one.entry, one.parts, block) in gone for block in one.blocks):
            continue
        if not one.head and not one.tail:
            gone |= {(one.entry, one.parts, block) for block in one.blocks or (-1,)}
        found.append(saving)
    return found[::-1]


class _PlanMemory:
    """Intermediate results for one view, for the next view that extends it.

    A result that is hidden stays hidden, and an exempt one stays exempt, unless something that
    `is_valid_for` compares has changed. So `settled`, the number of uses at the beginning of a
    rule's list from which it will never again leave anything out, stays true.
    """

    def __init__(self, view: View, rules: ElisionRules) -> None:
        self.n, self.rules, self.state = view.n, rules, view.state
        self.settled: dict[str, int] = {}  # by rule
        self.large: list[LargeResult] = []  # that are over a limit and may be shown whole
        self.savings: dict[tuple[str, ToolUse], tuple[PlannedElision, ...]] = {}  # of whole results
        self.reads = ReadMemory()
        self.hidden: HiddenTokens | None = None

    @staticmethod
    def of(view: View, uses: ToolUses, rules: ElisionRules) -> _PlanMemory:
        known = uses.memory
        if not isinstance(known, _PlanMemory) or not known.is_valid_for(view, rules):
            known = uses.memory = _PlanMemory(view, rules)
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

    def hidden_tokens(self, view: View) -> HiddenTokens:
        if self.hidden is None or not self.hidden.is_valid_for(view.state):
            self.hidden = HiddenTokens(view)
        return self.hidden


class _Planner:
    def __init__(
        self, view: View, uses: ToolUses, rules: ElisionRules, *, over_budget: bool
    ) -> None:
        self._view, self._uses, self._rules = view, uses, rules
        self._over_budget = over_budget
        self.memory = _PlanMemory.of(view, uses, rules)

    def choose(self, savings: list[PlannedElision], now: int) -> WorthwhileElisions:
        """What is worth changing the request for now."""
        rules, view = self._rules, self._view
        saved = sum(saving.elided.tokens for saving in savings)
        if self._over_budget or not savings or saved < rules.min_saving:
            keep = savings if self._over_budget else ()
            return WorthwhileElisions(tuple(keep), OVER_BUDGET if keep else "")
        if has_cache_expired(view, now, rules.cache_lifetime):
            return WorthwhileElisions(tuple(savings), EXPIRED)
        return choose_worthwhile(
            view,
            savings,
            self.memory.hidden_tokens,
            min_saving=rules.min_saving,
            payback_requests=rules.payback_requests,
        )

    def superseded_reads(self, others: Iterable[PlannedElision]) -> Iterator[PlannedElision]:
        """Judged with what the same plan leaves out for other reasons."""
        cuts: dict[tuple[int, int], tuple[Elided, ...]] = {}
        for saving in others:
            elided = saving.elided
            for part in elided.parts:
                key = self._view.log.at[elided.entry], part
                cuts[key] = (*cuts.get(key, ()), elided)
        return ReadPlanner(self._view, self._uses, self._rules, self.memory.reads, cuts).plan()

    def stale(self, rule: StaleRule, now: int) -> Iterator[PlannedElision]:
        name, keep, oldest = rule.name, rule.keep, now - round(rule.age * 1_000)
        uses = self._uses.aging[name]
        kept, begin = 0, self.memory.settled.get(name, 0)
        settled = end = bisect_left(uses, self._view.n, key=attrgetter("position"))
        for number in range(end - 1, begin - 1, -1):
            use = uses[number]
            if not self._is_shown(use):
                continue
            kept += 1
            if kept <= keep or use.time >= oldest:
                settled = number
            elif not self._is_exempt(use) and (saved := self._saving_whole(name, use)):
                settled = number
                yield from saved
        self.memory.settled[name] = settled

    def _saving_whole(self, rule: str, use: ToolUse) -> tuple[PlannedElision, ...]:
        """Computed once for a result that is shown as it was stored."""
        if self._view.log.entries[use.position].id in self._view.state.changed:
            return self._saving(rule, use.name, use)
        found = self.memory.savings.get((rule, use))
        if found is None:
            found = self.memory.savings[rule, use] = self._saving(rule, use.name, use)
        return found

    def oversized(self) -> Iterator[PlannedElision]:
        memory, rules, uses = self.memory, self._rules, self._uses.large
        begin = memory.settled.get("oversized", 0)
        end = bisect_left(uses, self._view.n, key=attrgetter("use.position"))
        memory.large += [
            large
            for large in uses[begin:end]
            if large.characters > rules.max_characters or large.lines > rules.max_lines
        ]
        memory.settled["oversized"] = end
        memory.large = [large for large in memory.large if self._is_shown(large.use, whole=True)]
        for large in memory.large:
            if self._is_oversized(large) and not self._is_exempt(large.use):
                yield from self._shorten(large.use)

    def _is_oversized(self, large: LargeResult) -> bool:
        """A read tool shows so many lines by design: while there is room, they stay. Without it the
        newest read of a file still does, or its middle would be nowhere in the view."""
        if not large.is_read or (self._over_budget and not self._is_newest_read(large.use)):
            return True
        is_long = large.block_lines > max(self._rules.max_lines, READ_LINES)
        return large.characters > self._rules.max_characters or is_long

    def _is_newest_read(self, use: ToolUse) -> bool:
        """Whether it is the newest read of one of its files, as far as this view goes."""
        for file in self._uses.files(use):
            reads = self._uses.often.get(file.path, [use])
            if max(read.position for read in reads if read.position < self._view.n) == use.position:
                return True
        return False

    def _shorten(self, use: ToolUse) -> tuple[PlannedElision, ...]:
        known = self.memory.savings.get(("oversized", use))
        if known is not None:
            return known
        result, rules = self._uses.result(use), self._rules
        texts = {n: item.text for n, item in enumerate(result.content) if isinstance(item, Text)}
        block, longest = max(texts.items(), key=lambda numbered: len(numbered[1]))
        head, tail = head_and_tail(longest, rules.max_characters, rules.max_lines)
        found: tuple[PlannedElision, ...] = ()
        if head + tail < len(longest):
            ends = longest[:head], longest[len(longest) - tail :]
            found = self._saving("oversized", result.name or use.name, use, (block,), ends)
        self.memory.savings["oversized", use] = found
        return found

    def _is_shown(self, use: ToolUse, *, whole: bool = False) -> bool:
        """Whether the view shows a result: at all, or the whole of it."""
        view = self._view
        if not view.state.base <= use.position < view.n or use.position in view.state.dropped:
            return False
        changed = view.state.changed.get(view.log.entries[use.position].id)
        if changed is None:
            return True
        cuts = [c.what for c in changed.cuts if not c.what.parts or use.part in c.what.parts]
        return not cuts if whole else not any(is_whole(cut) for cut in cuts)

    def _is_exempt(self, use: ToolUse) -> bool:
        """From every rule."""
        entry = self._view.log.entries[use.position].id
        return entry in self._view.state.pins or entry in self._view.state.restored

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
        now = whole if blocks else self._shown_tokens(use, tokens)
        saved = now - count.text(placeholder) * max(1, len(blocks))
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

    def _shown_tokens(self, use: ToolUse, tokens: tuple[int, ...]) -> int:
        """Of a result, of which cuts in force may hide something."""
        changed = self._view.state.changed.get(self._view.log.entries[use.position].id)
        if changed is None:
            return sum(tokens)
        cuts = (cut for cut in changed.cuts if not cut.what.parts or use.part in cut.what.parts)
        result = self._uses.result(use)
        shown = elide_part(result, [cut.what for cut in cuts])
        if not isinstance(shown, ToolResult) or shown == result:
            return sum(tokens)
        return sum(self._view.log.counter.part(item) for item in shown.content)


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
