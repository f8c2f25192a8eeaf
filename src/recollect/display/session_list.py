"""The sessions that a user may resume, and what is said of each.

Listing reads no session: 2,000 of them are one query, and one entry each to leave out those of
sub-agents. Turns, tokens and model are read for the rows in sight alone (`read_details`), from the
newest entries; turns are counted once for each head and noted beside the log.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

import msgspec

from recollect.display.dates import SECONDS_OF, format_age
from recollect.display.display_text import one_line, pluralize
from recollect.display.home_paths import abbreviate_home
from recollect.entries import Compaction, Entry, Message, Request, Restore, Text, Thought
from recollect.errors import BadInput, CannotWrite, Damaged
from recollect.store.contract import Project, SearchHit, SearchQuery, SessionInfo, Store
from recollect.store.ids import now as current_time
from recollect.store.output_notes import without_output
from recollect.store.search_tokenizer import parse_query
from recollect.text import clip
from recollect.transcripts.find_session import is_subagents
from recollect.view.curation import is_spoken
from recollect.view.view import View

CACHE_SECONDS = 60 * SECONDS_OF["minute"]  # how long providers keep a prompt cache at most
TAIL = 40  # newest entries that tell model and tokens
COUNTED = 5_000  # entries of a session, at most, whose turns are counted
PREVIEWED = 2_000  # characters of a text
HITS = 20
_PAGE, _ID_DIGITS = 500, 6
_CHUNK = 100  # sessions that are looked at together
_BEGUN = re.compile(r"(?:^|\s)[A-Za-z]{3,}$")
_TURNS = "turns-1"  # the name of these counts beside those of tokens


class SessionDetails(msgspec.Struct, frozen=True):
    """What only a session's entries tell."""

    turns: int = 0
    more: bool = False  # there are more turns: the session is too long to count them
    tokens: int = 0  # that resuming it sends; 0: not known
    model: str = ""


async def list_rows(
    store: Store, project: Project | None, *, trashed: bool = False
) -> AsyncIterator[tuple[SessionInfo, ...]]:
    """The user's own sessions, most recently used first, in portions; without sub-agents', and
    without those that clients of a server own."""
    found = await store.sessions(project=project, trashed=trashed, owner="")
    for start in range(0, len(found), _CHUNK):
        chunk = found[start : start + _CHUNK]
        hidden = await asyncio.gather(*(is_subagents(store, session) for session in chunk))
        yield tuple(one for one, hide in zip(chunk, hidden, strict=True) if not hide)


def matches_title(session: SessionInfo, words: str, *, project: bool = False) -> bool:
    """Whether the title, or the path of the project if it matters, has every word; or the id begins
    or ends with it."""
    text = f"{session.title} {session.project or '' if project else ''}".casefold()
    return all(word in text or _is_id_of(session, word) for word in words.casefold().split())


def _is_id_of(session: SessionInfo, word: str) -> bool:
    return len(word) >= _ID_DIGITS and (session.id.startswith(word) or session.id.endswith(word))


async def search_sessions(
    store: Store, words: str, project: Project | None
) -> tuple[SearchHit, ...]:
    """Passages of the sessions that have these words, best first. The last word may be only begun;
    words that are no query yet, such as a quotation mark alone, find nothing."""
    if _BEGUN.search(words):
        words += "*"
    try:
        parse_query(words)
    except BadInput:
        return ()
    query = SearchQuery(words=words, project=project, owner="", limit=HITS)
    return (await store.rank(query, length=200)).hits


# --- one session ---------------------------------------------------------------------------------


async def read_tail(store: Store, session: SessionInfo, last: int = TAIL) -> tuple[Entry, ...]:
    """The newest entries; of a damaged session, those that are left of them."""
    if session.head is None:
        return ()
    try:
        return await store.path(session.id, last=last, damaged="mark")
    except Damaged:
        with suppress(Damaged):
            return await store.path(session.id, at=session.head, last=last, damaged="mark")
        return ()


def clip_for_preview(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries with the beginning of each long text: a preview shows a few lines."""
    return tuple(
        msgspec.structs.replace(entry, body=_clip_message(entry.body))
        if isinstance(entry.body, Message)
        else entry
        for entry in entries
    )


def _clip_message(message: Message) -> Message:
    parts = tuple(
        msgspec.structs.replace(part, text=clip(part.text, PREVIEWED))
        if isinstance(part, Text | Thought) and len(part.text) > PREVIEWED
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


async def read_around(store: Store, hit: SearchHit, before: int = 2) -> tuple[Entry, ...]:
    """The entry of a hit, after those before it."""
    try:
        return await store.path(hit.session.id, at=hit.entry.id, last=before + 1, damaged="mark")
    except Damaged:
        return (hit.entry,)


async def read_details(store: Store, session: SessionInfo) -> SessionDetails:
    tail = await read_tail(store, session)
    turns, more = await _count_turns(store, session, tail)
    messages = [entry.body for entry in tail if isinstance(entry.body, Message)]
    model = next((one.model for one in reversed(messages) if one.model), "")
    tokens = _last_tokens(tail)
    if not tokens and len(tail) == session.entries:
        tokens = View.fold(without_output(tail)).tokens
    return SessionDetails(turns, more, tokens, model)


def _last_tokens(tail: Iterable[Entry]) -> int:
    """What the newest request had, or is left by a compaction after it; 0: not among these."""
    undone: set[str] = set()
    for entry in reversed(tuple(tail)):
        body = entry.body
        if isinstance(body, Restore):
            undone.update(body.entries)
        if entry.id in undone:
            continue
        if isinstance(body, Message) and body.usage is not None and body.usage.input:
            return body.usage.input + body.usage.output
        if isinstance(body, Compaction) and body.status == "COMPRESSED" and body.tokens_after:
            return body.tokens_after
        if isinstance(body, Request) and body.tokens:
            return body.tokens
    return 0


async def _count_turns(
    store: Store, session: SessionInfo, tail: tuple[Entry, ...]
) -> tuple[int, bool]:
    head = session.head
    if head is None or len(tail) == session.entries:
        return _turns(tail), False
    known = (await store.counts(_TURNS, [head])).get(head, ())
    if len(known) == 2:
        return known[0], bool(known[1])
    first, turns = max(0, session.entries - COUNTED), 0
    try:
        for start in range(first, session.entries, _PAGE):
            turns += _turns(await store.page(session.id, start=start, limit=_PAGE, at=head))
    except Damaged:
        return _turns(tail), True
    with suppress(CannotWrite):
        await store.keep_counts(_TURNS, {head: (turns, int(first > 0))})
    return turns, first > 0


def _turns(entries: Iterable[Entry]) -> int:
    return sum(isinstance(one.body, Message) and is_spoken(one.body) for one in entries)


# --- in words ------------------------------------------------------------------------------------


def describe_title(session: SessionInfo) -> str:
    title = one_line(session.title) or "(no title)"
    return f"⑂ {title}" if session.forked_from else title


def describe_facts(
    session: SessionInfo, details: SessionDetails | None, *, project: bool, now: int | None = None
) -> str:
    """Age, turns, tokens and model, as far as they are known; and the project, if it matters."""
    used = format_age(session.used, now)
    if session.trashed is not None:
        used = f"trashed {format_age(session.trashed, now)}"
    facts = [used]
    if details is not None:
        turns = pluralize(details.turns, "turn")
        facts += [turns.replace(" ", "+ ", 1) if details.more else turns]
        cold = describe_cold(session, details, now)
        facts += [cold or (f"{details.tokens:,} tokens" if details.tokens else "")]
        facts += [one_line(details.model)]
    if project:
        facts.append(one_line(abbreviate_home(session.project)) or "-")
    return " · ".join(filter(None, facts))


def describe_cold(session: SessionInfo, details: SessionDetails, now: int | None = None) -> str:
    """That no provider remembers the session any more, and what it costs to send it again."""
    age = (current_time() if now is None else now) - session.used
    if age < CACHE_SECONDS * 1_000 or not details.tokens:
        return ""
    return f"cold: ≈{details.tokens:,} tokens to resume"
