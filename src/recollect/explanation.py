"""What a model sees of a session, and what it does not: an `Explanation`, which prints as a table.

Every item has its tokens. Whatever is left out has the rule, the reason, since when, and the id
that brings it back. The tokens of the items add up to the whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from recollect.codecs.cache_breaks import CacheComparison
from recollect.entries import (
    Compaction,
    FileRef,
    InlineData,
    Message,
    Part,
    Request,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
)
from recollect.past_requests import AnsweredRequest
from recollect.stale_rules import STALE_RULES
from recollect.text import one_line
from recollect.tools.history_text import format_time
from recollect.view.curation import is_tool_result
from recollect.view.omissions import COMPACTION, INVALID, Omission, find_omissions, items_replaced
from recollect.view.placeholders import read_reason
from recollect.view.view import View, ViewItem

TEXT_LENGTH = 60  # characters of a message in the table
_REASONS = {
    "superseded-read": "newer reads show its lines, or its file has changed since",
    "oversized": "it is very long, so only its ends are shown",
    "summary": "a summary of it is shown",
    "drop": "left out on request",
    "instructions": "others took its place",
    COMPACTION: "a snapshot stands for it",
    INVALID: "no provider accepts this reply",
    **{rule.name: "it is out of date, and newer results are shown" for rule in STALE_RULES},
}


class ExplainedItem(msgspec.Struct, frozen=True):
    """One message that the model sees."""

    entry: str
    who: str  # user, model, system, result, snapshot, or the kind of what the program added
    tokens: int
    text: str  # its beginning
    pinned: bool = False
    shortened: bool = False  # something in it is left out


class ExplainedOmission(msgspec.Struct, frozen=True):
    """Something that the model does not see."""

    entry: str
    rule: str
    reason: str
    tokens: int  # that restoring it would add
    since: int  # milliseconds since 1970
    text: str
    restore: str  # the id that `Session.restore` takes; empty when nothing brings it back
    why_now: str = ""  # why at that request and not earlier; empty if the edit does not say


class ExplainedRequest(msgspec.Struct, frozen=True):
    """The last request: what the provider reported for it, and what it did to its cache."""

    entry: str
    usage: Usage | None  # None: no reply, or one without a count
    our_count: int
    cache: CacheComparison | None  # beside the request before it; None: there is none to compare

    def __str__(self) -> str:
        told = format_usage(self.usage) if self.usage is not None else "no count was reported"
        text = f"last request: {told}, we count {self.our_count:,}"
        if self.cache is None:
            return text
        cause = f": {self.cache.cause}" if self.cache.cause else ""
        return f"{text}\nprompt cache: {self.cache.describe()}{cause}"


class Explanation(msgspec.Struct, frozen=True):
    """Made by `Session.explain`; `print` shows it as a table."""

    session: str
    title: str
    tokens: int
    exact: bool  # counted by the model's own tokenizer, not estimated
    items: tuple[ExplainedItem, ...]
    left_out: tuple[ExplainedOmission, ...]
    last_request: ExplainedRequest | None = None

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        how = "" if self.exact else " (estimated)"
        title = one_line(self.title, TEXT_LENGTH) or self.session
        yield f"{title}: the model sees {self.tokens:,} tokens{how} in {len(self.items):,} messages"
        if self.last_request is not None:
            yield str(self.last_request)
        rows = [("ENTRY", "WHO", "TOKENS", "WHAT THE MODEL SEES")]
        for item in self.items:
            marks = ["pinned"] * item.pinned + ["shortened"] * item.shortened
            text = f"{item.text} [{', '.join(marks)}]" if marks else item.text
            rows.append((item.entry, item.who, f"{item.tokens:,}", text))
        yield from _align(rows)
        if not self.left_out:
            yield "nothing is left out"
            return
        yield "left out:"
        rows = [("RESTORE", "RULE", "TOKENS", "WHY")]
        for gone in self.left_out:
            then = f" ({gone.why_now})" if gone.why_now else ""
            why = f"{gone.reason}, since {format_time(gone.since)}{then}: {gone.text}"
            rows.append((gone.restore or "-", gone.rule, f"{gone.tokens:,}", why))
        yield from _align(rows)


def explain_view(
    view: View,
    session: str,
    title: str = "",
    before_compaction: View | None = None,
    last_request: ExplainedRequest | None = None,
) -> Explanation:
    """`before_compaction` is the view right before the compaction in force, if there is one."""
    return Explanation(
        session=session,
        title=title,
        tokens=view.tokens,
        exact=view.log.counter.exact,
        items=tuple(_explain_item(item) for item in view.items),
        left_out=tuple(_explain_omission(view, o, before_compaction) for o in find_omissions(view)),
        last_request=last_request,
    )


def explain_request(sent: AnsweredRequest, cache: CacheComparison | None) -> ExplainedRequest:
    asked = sent.request.body
    count = asked.tokens if isinstance(asked, Request) else 0
    return ExplainedRequest(sent.request.id, sent.usage, count, cache)


def format_usage(usage: Usage) -> str:
    """What a request cost; the tokens in parentheses add up to its input, if they are known."""
    written = [f"{usage.written:,} written"] if usage.written else []
    parts = ["cached: not reported", *written]
    if usage.cached is not None:
        parts = [f"{usage.cached:,} cached", f"{fresh_tokens(usage):,} fresh", *written]
    return f"{usage.input:,} tokens ({', '.join(parts)})"


def fresh_tokens(usage: Usage) -> int | None:
    """Neither read from the provider's cache nor written to it; None if that is not known."""
    if usage.cached is None:
        return None
    return max(0, usage.input - usage.cached - usage.written)


def item_label(item: ViewItem) -> str:
    """Whose words an item shows."""
    if item.place == "snapshot":
        return "snapshot"
    if item.message.context == "initial":
        return "instructions" if item.message.role == "system" else "environment"
    if item.message.context:
        return item.message.context
    return "result" if is_tool_result(item.message) else item.message.role


def _explain_item(item: ViewItem) -> ExplainedItem:
    who, text = item_label(item), _message_text(item.message.parts)
    return ExplainedItem(item.entry.id, who, item.tokens, text, item.pinned, bool(item.cuts))


def _explain_omission(view: View, one: Omission, before: View | None) -> ExplainedOmission:
    body, tokens = view.log.entries[view.log.at[one.entry]].body, one.tokens
    if isinstance(body, Message):
        parts = [p for n, p in enumerate(body.parts) if not one.parts or n in one.parts]
        text = _message_text(tuple(parts))
    elif isinstance(body, Compaction) and before is not None:
        gone = items_replaced(before, view)
        tokens, text = sum(item.tokens for item in gone), f"{len(gone):,} messages before it"
    else:
        text = "the messages before it"
    reason = _REASONS.get(one.rule) or _stated_reason(view, one) or f"by the rule {one.rule}"
    found = ExplainedOmission(one.entry, one.rule, reason, tokens, one.since, text, one.handle)
    return msgspec.structs.replace(found, why_now=one.why_now)


def _stated_reason(view: View, one: Omission) -> str:
    """The reason that a user's own rule gave, which the placeholder has."""
    shown = view.state.changed.get(one.entry)
    texts = [c.what.placeholder for c in shown.cuts if c.by == one.by] if shown else []
    return next(filter(None, (read_reason(one.rule, text) for text in texts)), "")


def _message_text(parts: tuple[Part, ...]) -> str:
    return one_line(" ".join(filter(None, map(_part_text, parts))), TEXT_LENGTH)


def _part_text(part: Part) -> str:
    match part:
        case Text() | Thought():
            return part.text[: 4 * TEXT_LENGTH]
        case ToolCall():
            return f"{part.name}({part.arguments[:TEXT_LENGTH]})"
        case ToolResult():
            texts = (c.text[: 4 * TEXT_LENGTH] for c in part.content if isinstance(c, Text))
            return f"{part.name}: {' '.join(texts)}"
        case InlineData():
            return f"[{part.mime}, {len(part.data):,} bytes]"
        case FileRef():
            return f"[{part.mime} at {part.uri}]"
        case Unknown():
            return part.data[: 4 * TEXT_LENGTH]


def _align(rows: list[tuple[str, str, str, str]]) -> Iterator[str]:
    first, second, third = (max(len(row[n]) for row in rows) for n in range(3))
    for entry, who, tokens, text in rows:
        yield f"{entry:<{first}}  {who:<{second}}  {tokens:>{third}}  {text}".rstrip()
