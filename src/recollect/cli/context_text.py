"""What the model sees as a person reads it: how full the window is, with what, and what is missing.

Pure: from a `ContextReport` to lines, or to a JSON document with the same facts. Stored text is made
harmless on the way. Long lists show their newest and say how many there are more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from recollect.cli.console import Styler
from recollect.cli.dates import format_age, format_time
from recollect.cli.display_text import GAP, align_table, one_line, pluralize
from recollect.cli.entry_display import summarize
from recollect.entries import Compaction, Message, Request
from recollect.profiles import is_known_model
from recollect.view.curation import is_tool_result
from recollect.view.omissions import (
    COMPACTION,
    INVALID,
    Omission,
    OmissionTotal,
    TokenCategory,
    count_by_category,
    find_omissions,
    items_replaced,
    total_by_rule,
)
from recollect.view.view import View, ViewItem

if TYPE_CHECKING:
    from recollect.cli.context_report import ContextReport
    from recollect.view.elision_rules import ElisionPlan

DEFAULT_WIDTH = 120  # columns where nobody looks at a terminal
BAR_WIDTH = 30
FILES_SHOWN = 5  # of each rule
PROBLEMS_SHOWN = 5
_EIGHTHS = " ▏▎▍▌▋▊▉"
CATEGORY_LABELS: dict[TokenCategory, str] = {"initial": "initial context"}


class ListingStyle(NamedTuple):
    """How it is shown: colours, columns, and how many of each list."""

    ink: Styler
    width: int | None = None
    last: int | None = None  # none: all

    @property
    def columns(self) -> int:
        return self.width or DEFAULT_WIDTH


def draw_bar(part: int, whole: int, width: int = BAR_WIDTH) -> str:
    """A bar in eighths of a column; whatever is not nothing can be seen."""
    if part <= 0 or whole <= 0:
        return ""
    full, rest = divmod(max(1, round(8 * width * min(part, whole) / whole)), 8)
    return "█" * full + _EIGHTHS[rest].strip()


def context_lines(
    sight: ContextReport, plan: ElisionPlan | None, page: ListingStyle
) -> Iterator[str]:
    short = sight.short
    yield from _heading(sight, page.ink, short)
    yield from _window(sight, page.ink)
    yield from _categories(sight, page.ink)
    yield from _last_request(sight, page.ink)
    yield ""
    yield from _items(sight.view, short, page)
    yield from _omissions(sight, short, page)
    if plan is not None:
        yield from _planned(plan, page.ink)
    yield from _failed_attempt(sight.view, page.ink)
    yield from _problems(sight.view, page.ink)


def _heading(sight: ContextReport, paint: Styler, short: dict[str, str]) -> Iterator[str]:
    yield paint.bold(one_line(sight.session.title) or "(no title)")
    asked = sight.asked
    where = (
        "at its head" if asked is None else f"as it was at {asked.id}, {format_time(asked.time)}"
    )
    if asked is not None and isinstance(asked.body, Request):
        where = f"as it was for request {asked.id}, {format_time(asked.body.as_of)}"
    head = sight.view.head
    at_head = f" {short[head]}" if asked is None and head is not None else ""
    yield paint.dim(f"session {sight.session_id} · {where}{at_head}")
    yield ""


def _window(sight: ContextReport, paint: Styler) -> Iterator[str]:
    tokens, profile = sight.view.tokens, sight.profile
    share = tokens / profile.window
    colour = "green" if tokens <= profile.threshold else "yellow" if share <= 1 else "red"
    exact = "counted" if sight.view.log.counter.exact else "estimated"
    total = paint(f"{tokens:,} tokens", bold=True)
    yield f"{total} {exact}, {format_percent(share)} of {_describe_window(sight)}"
    filled = draw_bar(tokens, profile.window, 2 * BAR_WIDTH)
    yield paint(filled, fg=colour) + paint.dim("░" * (2 * BAR_WIDTH - len(filled)))
    left = profile.threshold - tokens
    told = f"{left:,} before" if left >= 0 else f"{-left:,} beyond"
    yield paint.dim(f"{told} the threshold of {profile.threshold:,} where compaction begins")
    yield ""


def _describe_window(sight: ContextReport) -> str:
    window = f"{sight.profile.window:,}"
    if not sight.model:
        return f"the {window} that an unknown model is given; --model NAME names one"
    known = "" if is_known_model(sight.model) else ", which is not known: a guess"
    return f"the {window} of {one_line(sight.model)}{known}"


def format_percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _categories(sight: ContextReport, paint: Styler) -> Iterator[str]:
    shares = count_by_category(sight.view)
    most = max(shares.values())
    names = max(len(CATEGORY_LABELS.get(category, category)) for category in shares)
    for category, tokens in shares.items():
        name = CATEGORY_LABELS.get(category, category).ljust(names)
        share = format_percent(tokens / sight.profile.window) if tokens else ""
        line = f"{name}  {tokens:>10,}  {share:>8}  {paint(draw_bar(tokens, most), fg='blue')}"
        yield line.rstrip() if tokens else paint.dim(line.rstrip())
    yield ""


def _last_request(sight: ContextReport, paint: Styler) -> Iterator[str]:
    if sight.cost is None:
        return
    entry, usage, estimate = sight.cost
    cached = f" ({usage.cached:,} of them cached)" if usage.cached else ""
    yield f"the last request: {usage.input:,} tokens{cached}, the reply {usage.output:,}"
    yield paint.dim(
        f"{format_age(entry.time)}; we count {estimate:,} for its messages, without tools and the like"
    )


# --- what is shown -------------------------------------------------------------------------------


def item_label(item: ViewItem) -> str:
    if item.place == "snapshot":
        return "snapshot"
    if item.message.context:
        return item.message.context
    return "result" if is_tool_result(item.message) else item.message.role


def _item_marks(item: ViewItem) -> str:
    marks = ["pinned" if item.pinned else "kept" if item.place == "kept" else ""]
    return ", ".join(filter(None, [*marks, "shortened" if item.cuts else ""]))


def item_rows(items: Sequence[ViewItem], short: dict[str, str]) -> list[list[str]]:
    return [
        [short[i.entry.id], item_label(i), f"{i.tokens:,}", _item_marks(i), summarize(i.message)]
        for i in items
    ]


def _items(view: View, short: dict[str, str], page: ListingStyle) -> Iterator[str]:
    fixed = [item for item in view.items if item.place != "tail"]
    tail = view.items[len(fixed) :]
    newest = tail if page.last is None else tail[-page.last :]
    hidden = tail[: len(tail) - len(newest)]
    if not view.items:
        yield "nothing: this session has no messages"
        yield ""
        return
    head = ["ENTRY", "WHO", "TOKENS", "MARK", "WHAT THE MODEL SEES"]
    rows = [head, *item_rows([*fixed, *newest], short)]
    if not any(row[3] for row in rows[1:]):
        rows = [[*row[:3], row[4]] for row in rows]
    shown = table_lines(rows, page, numbers=(2,))
    yield from shown[: 1 + len(fixed)]
    if hidden:
        tokens = sum(item.tokens for item in hidden)
        yield page.ink.dim(
            f"… {pluralize(len(hidden), 'item')}, {tokens:,} tokens; --all shows them"
        )
    yield from shown[1 + len(fixed) :]
    yield ""


def table_lines(rows: list[list[str]], page: ListingStyle, numbers: Sequence[int]) -> list[str]:
    stretch = len(rows[0]) - 1
    head, *body = align_table(rows, width=page.columns, stretch=stretch, numbers=numbers)
    paint = page.ink
    lines = [paint.dim(GAP.join(head).rstrip())]
    return lines + [GAP.join([paint(row[0], fg="yellow"), *row[1:]]).rstrip() for row in body]


# --- what is not ---------------------------------------------------------------------------------


def _omissions(sight: ContextReport, short: dict[str, str], page: ListingStyle) -> Iterator[str]:
    found, paint = list_omissions(sight), page.ink
    if not found:
        yield "nothing was left out"
        return
    told = ", ".join(
        f"{one_line(rule)} {_format_sum(sum_)}" for rule, sum_ in total_by_rule(found).items()
    )
    yield paint.bold("left out: ") + told
    shown = found if page.last is None else found[:1] + found[1:][-page.last :]
    rows = [["ENTRY", "RULE", "TOKENS", "SINCE", "WHAT WAS LEFT OUT"]]
    rows += [_omission_row(sight, one, short) for one in shown]
    yield from table_lines(rows, page, numbers=(2,))
    if len(shown) < len(found):
        yield paint.dim(f"… {pluralize(len(found) - len(shown), 'more')}; --all shows them")
    handle = next((one.handle for one in reversed(shown) if one.handle), "")
    if handle:
        command = f"recollect context {sight.session_id} --restore {short[handle]}"
        yield paint.dim(f"`{command}` brings the last of them back")


def _format_sum(found: OmissionTotal) -> str:
    return f"{found.tokens:,} tokens" + (f" in {found.things:,}" if found.things > 1 else "")


def list_omissions(sight: ContextReport) -> list[Omission]:
    """With what the compaction replaced as we count it, in place of what it says itself."""
    found = list(find_omissions(sight.view))
    if sight.before is not None and found and found[0].rule == COMPACTION:
        tokens = sum(item.tokens for item in items_replaced(sight.before, sight.view))
        found[0] = msgspec.structs.replace(found[0], tokens=tokens)
    return found


def _omission_row(sight: ContextReport, one: Omission, short: dict[str, str]) -> list[str]:
    cells = [short[one.entry], one_line(one.rule), f"{one.tokens:,}", format_age(one.since)]
    return [*cells, _describe_omission(sight, one)]


def _describe_omission(sight: ContextReport, one: Omission) -> str:
    entry = sight.view.log.entries[sight.view.log.at[one.entry]]
    if isinstance(entry.body, Compaction):
        gone = items_replaced(sight.before, sight.view) if sight.before is not None else ()
        messages = sum(item.place != "snapshot" for item in gone)
        return f"{pluralize(messages, 'message')} before it" if gone else "everything before it"
    assert isinstance(entry.body, Message)
    parts = [p for i, p in enumerate(entry.body.parts) if not one.parts or i in one.parts]
    text = summarize(Message(role=entry.body.role, parts=tuple(parts)))
    return f"no provider takes it: {text}" if one.rule == INVALID else text


def planned_sums(plan: ElisionPlan) -> dict[str, OmissionTotal]:
    sums: dict[str, OmissionTotal] = {}
    for saving in plan.savings:
        things, tokens = sums.get(saving.rule, OmissionTotal(0, 0))
        sums[saving.rule] = OmissionTotal(things + 1, tokens + saving.elided.tokens)
    return sums


def planned_files(plan: ElisionPlan, rule: str) -> dict[str, int]:
    """Tokens by file, or by tool where the rule is not about files; the most first."""
    sums: dict[str, int] = {}
    for saving in plan.savings:
        if saving.rule == rule:
            sums[saving.what] = sums.get(saving.what, 0) + saving.elided.tokens
    return dict(sorted(sums.items(), key=lambda one: -one[1]))


def _planned(plan: ElisionPlan, paint: Styler) -> Iterator[str]:
    if sums := planned_sums(plan):
        told = ", ".join(f"{rule} {_format_sum(found)}" for rule, found in sums.items())
        yield paint.bold("would be left out at the next request: ") + told
    for rule in sums:
        files = list(planned_files(plan, rule).items())
        for what, tokens in files[:FILES_SHOWN]:
            yield f"  {tokens:>7,}  {rule}  {one_line(what)}"
        if len(files) > FILES_SHOWN:
            rest = sum(tokens for _, tokens in files[FILES_SHOWN:])
            yield f"  {rest:>7,}  {rule}  {pluralize(len(files) - FILES_SHOWN, 'other')}"
    if plan.unidentified:
        yield paint.dim(f"{pluralize(plan.unidentified, 'read')} that name no file would stay")


def _failed_attempt(view: View, paint: Styler) -> Iterator[str]:
    attempt = view.attempt
    body = attempt.body if attempt is not None else None
    if attempt is not None and isinstance(body, Compaction) and body.status != "COMPRESSED":
        told = f"the last compaction, {format_age(attempt.time)}, did not work: {one_line(body.reason)}"
        yield paint(told, fg="yellow")


def _problems(view: View, paint: Styler) -> Iterator[str]:
    if not view.problems:
        return
    yield paint(f"{pluralize(len(view.problems), 'edit')} without effect:", fg="yellow")
    for problem in view.problems[:PROBLEMS_SHOWN]:
        yield f"  {one_line(problem)}"
    if len(view.problems) > PROBLEMS_SHOWN:
        yield paint.dim(f"  … {len(view.problems) - PROBLEMS_SHOWN:,} more; --json has them")
