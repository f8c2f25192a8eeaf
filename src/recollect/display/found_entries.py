"""What a search found, for screens and answers: each entry with its passage in one line."""

from __future__ import annotations

from typing import NamedTuple

from recollect.display.dates import format_time
from recollect.display.display_text import one_line
from recollect.display.entry_summary import role_of
from recollect.entries import Body, Message, ToolResult
from recollect.store.contract import Project, SearchHit, SearchQuery, SessionInfo, Store

MAX_HITS = 50


class SearchRow(NamedTuple):
    hit: SearchHit
    short: str  # the entry's id
    passage: str

    @property
    def session(self) -> SessionInfo:
        return self.hit.session

    @property
    def about(self) -> str:
        """Who, when, and in which session."""
        entry, title = self.hit.entry, one_line(self.hit.session.title) or "(no title)"
        return f"{_who(entry.body)}, {format_time(entry.time)} · {title}"


def _who(body: Body) -> str:
    """Results are sent in the user's name."""
    parts = body.parts if isinstance(body, Message) else ()
    only_results = bool(parts) and all(isinstance(part, ToolResult) for part in parts)
    return "result" if only_results else role_of(body)


async def find_entries(
    store: Store, words: str, *, session: str | None = None, project: str | Project | None = None
) -> tuple[SearchRow, ...]:
    """The best first; in a session, or in a project's."""
    query = SearchQuery(words=words, session=session, project=project, limit=MAX_HITS)
    found = await store.rank(query)
    short = await store.short_entry_ids(hit.entry.id for hit in found.hits)
    return tuple(SearchRow(hit, short[hit.entry.id], one_line(hit.snippet)) for hit in found.hits)
