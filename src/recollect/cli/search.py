"""`recollect search`: finds entries by their words, in English, Chinese, Japanese and code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from recollect.cli.console import paint, print_json, print_lines, print_note, terminal_width
from recollect.cli.dates import format_age, parse_date
from recollect.cli.display_text import one_line, sanitize, truncate
from recollect.cli.entry_display import role_of
from recollect.cli.options import command, complete_session, json_and_store_options
from recollect.cli.session_choice import find_session
from recollect.cli.store_access import current_project, use_store
from recollect.entries import entry_to_json
from recollect.store.contract import SearchHit, SearchQuery
from recollect.store.sqlite import SqliteStore


@command(
    ("recollect search rate limiter", "both words, in this project"),
    ("recollect search '\"token bucket\"' -- -redis", "a phrase, without a word"),
    ("recollect search 速率限制 --all", "in every project"),
    ("recollect search getUserName --role model --after 3d", "code, from the model, recently"),
    ("recollect search error --tool shell --session 5f3a9c21", "in one tool's calls and results"),
)
@click.argument("words", nargs=-1, required=True)
@click.option("--all", "everywhere", is_flag=True, help="In every project.")
@click.option(
    "--session", metavar="ID", shell_complete=complete_session, help="Only in this session."
)
@click.option(
    "--role", type=click.Choice(["user", "model", "system"]), help="Only messages of this role."
)
@click.option("--tool", metavar="NAME", help="Only in calls and results of this tool.")
@click.option(
    "--after",
    type=parse_date,
    metavar="DATE",
    help="Not before this date: 2026-11-01, yesterday, 3d.",
)
@click.option("--before", type=parse_date, metavar="DATE", help="Before this date.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N")
@json_and_store_options
def search(
    *,
    words: tuple[str, ...],
    everywhere: bool,
    session: str | None,
    limit: int,
    as_json: bool,
    file: Path | None,
    **filters: Any,
) -> None:
    """Find entries by their words.

    An entry must contain all words. "Quoted words" are a phrase, word* matches a prefix, and -word
    (after --) excludes a word.
    """
    # one more than the limit, to know whether there are more
    query = SearchQuery(
        words=" ".join(words),
        session=session,
        project=None if everywhere or session else current_project(),
        limit=limit + 1,
        **filters,
    )
    found, short = use_store(file, lambda store: _find(store, query))
    hits = found[:limit]
    if as_json:
        print_json([_hit_document(hit) for hit in hits])
    elif not hits:
        where = "" if everywhere or session else " in this project; --all searches every project"
        print_note(f"nothing found for {query.words!r}{where}")
    else:
        print_lines(_lines(hits, short))
        if len(found) > limit:
            print_note(f"there are more; --limit {limit * 5} shows more")


async def _find(
    store: SqliteStore, query: SearchQuery
) -> tuple[tuple[SearchHit, ...], dict[str, str]]:
    if query.session is not None:
        session = await find_session(store, query.session)
        query = msgspec.structs.replace(query, session=session.id)
    hits = await store.search(query)
    entries = await store.short_entry_ids(hit.entry.id for hit in hits)
    return hits, entries | await store.short_session_ids({hit.session.id for hit in hits})


def _hit_document(hit: SearchHit) -> dict[str, object]:
    return msgspec.structs.asdict(hit) | {
        "session": msgspec.to_builtins(hit.session),
        "entry": entry_to_json(hit.entry),
    }


def _lines(hits: tuple[SearchHit, ...], short: dict[str, str]) -> Iterator[str]:
    columns = terminal_width()
    for hit in hits:
        entry, session = short[hit.entry.id], hit.session
        about = f"{role_of(hit.entry.body)}, {format_age(hit.entry.time)}"
        origin = f"in {short[session.id]} {one_line(session.title) or '(no title)'}"
        if columns is not None:
            origin = truncate(origin, max(20, columns - len(entry) - len(about) - 4))
        yield f"{paint(entry, fg='yellow')}  {about}  {paint.dim(origin)}"
        yield f"    {_highlight(hit)}"
    yield ""
    yield paint.dim(f"`recollect show {short[hits[0].entry.id]}` shows the first of them")


def _highlight(hit: SearchHit) -> str:
    shown, end = [], 0
    for start, stop in sorted(hit.marks):
        if start < end:
            continue
        match = sanitize(hit.snippet[start:stop])
        shown += [sanitize(hit.snippet[end:start]), paint(match, fg="red", bold=True)]
        end = stop
    return "".join([*shown, sanitize(hit.snippet[end:])])
