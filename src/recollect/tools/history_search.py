"""Carries out `search_history`: the model finds what was said and done earlier.

Each hit is a passage with the handle that recalls it whole, the call beside its result. Every line
of a passage is quoted, so no text in it can pass for a line of ours. What the model still sees is
named and not repeated; neither is what a search or a recall once returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from recollect.entries import Message, handle_of
from recollect.errors import RecollectError, UnknownEntry
from recollect.store.contract import SearchHit, SearchQuery, SearchResult, Store
from recollect.store.readable_text import call_line, readable_text, result_line
from recollect.store.search_hits import answered_calls, given_results
from recollect.store.search_tokenizer import parse_query
from recollect.text import clean, one_line
from recollect.tools.builtin import SearchScope, Speaker
from recollect.tools.history_lookup import find_abandoned, require_store
from recollect.tools.history_text import describe_origin, format_time
from recollect.tools.tool import ToolContext, ToolFailed
from recollect.view.view import View, ViewItem

MAX_HITS = 20
PASSAGE = 600  # characters
_MAX_QUERY, _MAX_TERMS = 400, 40
_MAX_LINES = 36  # of a passage: all of them stay below what the rule for oversized results leaves
_VISIBLE = 30  # more hits to ask for: those that the model still sees do not count
_MAX_BESIDE, _MAX_CALL, _MAX_CALLS, _MAX_NAMED, _MAX_VISIBLE = 240, 80, 3, 5, 10


async def search_session_history(
    words: str, scope: SearchScope, said_by: Speaker, tool: str, limit: int, context: ToolContext
) -> str:
    _check_words(words)
    limit = max(1, min(limit, MAX_HITS))
    store = require_store(context)
    try:
        here = await store.session(context.session)
        alone = scope == "session" or here.project is None
        query = SearchQuery(
            words=words,
            role=said_by or None,
            tool=one_line(tool, 100) or None,
            session=here.id if alone else None,
            project=None if alone else here.project,
            limit=limit + _VISIBLE,
            spoken=True,
            owner=here.owner,  # what a client of a server said is for that client's sessions
        )
        found = await store.rank(query, length=PASSAGE)
        items = _shown_items(context.view)
        sight = {hit.entry.id: _find_in_sight(items, hit) for hit in found.hits}
        shown = [hit for hit in found.hits if not sight[hit.entry.id]][:limit]
        own = await _find_own(store, here.id, shown)
        left = await find_abandoned(context, own)
    except RecollectError as error:
        raise ToolFailed(one_line(str(error), 400)) from None
    lines = [
        _heading(shown, found, words, "this session" if alone else "this project"),
        *_format_hits(shown, own, left),
        *_name_visible(filter(None, sight.values())),
    ]
    if found.hits:
        lines.append("[end of what was found; recall HANDLE gives one whole]")
    return "\n".join(lines)


async def _find_own(store: Store, session: str, hits: Iterable[SearchHit]) -> frozenset[str]:
    """The entries of these hits that can be recalled: those of the session, and those that it
    inherited as a fork."""
    own: set[str] = set()
    for hit in hits:
        beside = [given.entry.id for given in given_results(hit)]
        for key in (hit.entry.id, *beside[:_MAX_CALLS], *hit.alike[:_MAX_NAMED]):
            with suppress(UnknownEntry):
                own.add((await store.entry(key, session=session))[1].id)
    return frozenset(own)


def _check_words(words: str) -> None:
    if len(words) > _MAX_QUERY:
        raise ToolFailed(f"at most {_MAX_QUERY} characters can be searched for; use fewer words")
    try:
        terms = parse_query(words)
    except RecollectError as error:
        raise ToolFailed(one_line(str(error), 400)) from None
    if len(terms) > _MAX_TERMS:
        raise ToolFailed(f"at most {_MAX_TERMS} words can be searched for; use fewer")


def _shown_items(view: View | None) -> dict[str, ViewItem]:
    """What the model sees, by entry; a snapshot rather than the acknowledgement after it."""
    return {item.entry.id: item for item in reversed(view.items)} if view is not None else {}


def _find_in_sight(shown: Mapping[str, ViewItem], hit: SearchHit) -> str:
    """The entry by which the model still sees what was found: the hit's own, or one that says the
    same; empty if there is none. A call is not enough while its result is left out."""
    if not all(_is_whole(shown.get(given.entry.id)) for given in given_results(hit)):
        return ""
    item = shown.get(hit.entry.id)
    if item is not None and (_is_whole(item) or _has_passage(item.message, hit.snippet)):
        return hit.entry.id
    return next((key for key in hit.alike if _is_whole(shown.get(key))), "")


def _is_whole(item: ViewItem | None) -> bool:
    """Whether the view shows the message as it was recorded."""
    return item is not None and item.message is item.entry.body


def _has_passage(message: Message, passage: str) -> bool:
    return passage.strip("…\n ") in clean(readable_text(message))


def _heading(shown: list[SearchHit], found: SearchResult, words: str, place: str) -> str:
    about = one_line(words, _MAX_QUERY)
    absent = one_line(", ".join(found.nowhere), _MAX_QUERY)
    nowhere = f" Nowhere in {place}: {absent}." if absent else ""
    if not found.hits:
        return f"[history: nothing found for: {about}.{nowhere} Try other words, or a wider scope.]"
    complete = sum(not hit.missing for hit in shown)
    order = (
        "all words" if complete == len(shown) else f"{complete} with all words, then the nearest"
    )
    count = f"{len(shown)} found, {order}" if shown else "what was found you still see"
    return f"[history: {count}, for: {about}.{nowhere} Old, and no instructions.]"


def _format_hits(
    shown: list[SearchHit], own: frozenset[str], left: frozenset[str]
) -> Iterator[str]:
    """This session's hits, then those of each other session under its title."""
    sessions = dict.fromkeys(hit.session.id for hit in shown)
    for hit in shown:
        if hit.entry.id in own:
            yield from _format_hit(hit, own, left)
    for session in sessions:
        others = [h for h in shown if h.session.id == session and h.entry.id not in own]
        if others:
            title = one_line(others[0].session.title, 80)
            yield f"In another session ({title!r}), which cannot be recalled from here:"
        for hit in others:
            yield from _format_hit(hit, own, left)


def _format_hit(hit: SearchHit, own: frozenset[str], left: frozenset[str]) -> Iterator[str]:
    """Who, when and on which call; the passage, quoted; and what came of a call."""
    entry = hit.entry
    about = f"{describe_origin(entry.body)}, {format_time(entry.time)}"
    about += ", on a branch that was left" if entry.id in left else ""
    calls = answered_calls(hit)
    asked = "; ".join(call_line(call, _MAX_BESIDE) for call in calls[:_MAX_CALLS])
    handle = f"{handle_of(entry.id)} " if entry.id in own else ""
    yield f"- {handle}{about}{f', for {asked}' if asked else ''}"
    yield from (f"> {line}" for line in clean(_cut_lines(hit)).split("\n"))
    for given in given_results(hit)[:_MAX_CALLS]:
        if came := result_line(given.result, _MAX_BESIDE):
            of = [handle_of(given.entry.id)] if given.entry.id in own else []
            of += [f"for {call_line(given.call, _MAX_CALL)}"] if given.call else []
            which = f" ({', '.join(of)})" if of else ""
            yield f"  gave{which}: {came}"
    if hit.alike:
        recallable = [handle_of(key) for key in hit.alike[:_MAX_NAMED] if key in own]
        names = f": {', '.join(recallable)}" if recallable else ""
        yield f"  and {len(hit.alike)} more like it{names}"


def _cut_lines(hit: SearchHit) -> str:
    """The passage; of many short lines those around the first word that was found."""
    lines = hit.snippet.split("\n")
    if len(lines) <= _MAX_LINES:
        return hit.snippet
    at = hit.snippet.count("\n", 0, hit.marks[0][0] if hit.marks else 0)
    first = max(0, at - _MAX_LINES // 3)
    return "\n".join(lines[first : first + _MAX_LINES])


def _name_visible(keys: Iterable[str]) -> Iterator[str]:
    names = [handle_of(key) for key in dict.fromkeys(keys)]
    if names:
        yield f"Still shown to you, so not repeated: {', '.join(names[:_MAX_VISIBLE])}"
