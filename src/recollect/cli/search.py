"""`recollect search`: finds entries by their words, in English, Chinese, Japanese and code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from recollect.cli.console import paint, print_json, print_lines, print_note, terminal_width
from recollect.cli.entry_display import shows_text
from recollect.cli.options import command, complete_session, json_and_store_options
from recollect.cli.session_choice import find_session
from recollect.cli.store_access import current_project, use_store
from recollect.cli.typed_dates import parse_date
from recollect.display.dates import format_time
from recollect.display.display_text import one_line, sanitize, truncate
from recollect.display.entry_summary import role_of
from recollect.entries import entry_to_json
from recollect.errors import BadInput
from recollect.store.contract import SearchHit, SearchQuery, SearchResult, Store
from recollect.store.readable_text import call_line, result_line
from recollect.store.search_hits import answered_calls, given_results
from recollect.store.search_tokenizer import parse_query
from recollect.store.store_address import StoreAddress
from recollect.text import clip

_WIDE = 160  # characters of a line, where there is no terminal to fit
_CALL, _RESULT, _MAX_SHOWN, _MAX_CALLS, _MAX_NAMED = 240, 400, 80, 3, 5


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
@click.option("--limit", type=click.IntRange(min=1), default=8, show_default=True, metavar="N")
@json_and_store_options
def search(
    *,
    words: tuple[str, ...],
    everywhere: bool,
    session: str | None,
    limit: int,
    as_json: bool,
    file: StoreAddress | None,
    **filters: Any,
) -> None:
    """Find entries by their words.

    The words may be a question. Entries that have all words come first, then those that have the
    rarest of them, closest together; of equals the newest. "Quoted words" are a phrase, word*
    matches a prefix, and -word (after --) excludes a word. `recollect show` takes the ids that are
    printed.
    """
    given = " ".join(words)
    try:
        words_given = parse_query(given)
    except BadInput as error:
        raise click.UsageError(f"{error}.") from None
    query = SearchQuery(
        words=given,
        session=session,
        project=None if everywhere or session else current_project(),
        limit=limit,
        **filters,
    )
    found, short = use_store(file, lambda store: _find(store, query))
    where = "" if everywhere or session else " in this project; --all searches every project"
    if as_json:
        print_json([_hit_document(hit, short) for hit in found.hits])
    elif not found.hits:
        print_note(f"nothing found for {clip(given, _MAX_SHOWN)!r}{where}")
    else:
        print_lines(_lines(found.hits, short))
    if found.nowhere and (found.hits or len(found.nowhere) < len(words_given)):
        absent = ", ".join(clip(one_line(word), _MAX_SHOWN) for word in found.nowhere)
        print_note(f"nowhere{where.partition(';')[0]}: {absent}")
    if found.more and not as_json:
        print_note(f"there are more; --limit {limit * 5} shows more")


async def _find(store: Store, query: SearchQuery) -> tuple[SearchResult, dict[str, str]]:
    if query.session is not None:
        session = await find_session(store, query.session)
        query = msgspec.structs.replace(query, session=session.id)
    found = await store.rank(query)
    ids = {key for hit in found.hits for key in _ids(hit)}
    sessions = {hit.session.id for hit in found.hits}
    return found, await store.short_entry_ids(ids) | await store.short_session_ids(sessions)


def _ids(hit: SearchHit) -> tuple[str, ...]:
    return (hit.entry.id, *(entry.id for entry in hit.beside), *hit.alike)


def _hit_document(hit: SearchHit, short: dict[str, str]) -> dict[str, object]:
    return msgspec.structs.asdict(hit) | {
        "handle": short[hit.entry.id],
        "session": msgspec.to_builtins(hit.session),
        "entry": entry_to_json(hit.entry),
        "beside": [entry_to_json(entry) for entry in hit.beside],
    }


def _lines(hits: tuple[SearchHit, ...], short: dict[str, str]) -> Iterator[str]:
    """The hits of each session under its title."""
    for key in dict.fromkeys(hit.session.id for hit in hits):
        own = [hit for hit in hits if hit.session.id == key]
        title = one_line(own[0].session.title) or "(no title)"
        yield f"{paint.bold(title)} {paint.dim(f'· session {short[key]}')}"
        for hit in own:
            yield ""
            yield from _hit_lines(hit, short)
        yield ""
    full = "" if shows_text(hits[0].entry, _matched_line(hits[0])) else " --full"
    yield paint.dim(f"`recollect show {short[hits[0].entry.id]}{full}` shows the first of them")


def _hit_lines(hit: SearchHit, short: dict[str, str]) -> Iterator[str]:
    entry, width = hit.entry, terminal_width() or _WIDE
    about = [f"{role_of(entry.body)}, {format_time(entry.time)}"]
    about += [sanitize(call_line(call, _CALL)) for call in answered_calls(hit)[:_MAX_CALLS]]
    identity = paint(short[entry.id], fg="yellow")
    yield f"{identity}  {truncate(' · '.join(about), max(40, width - 12))}"
    yield from (f"    {line}".rstrip() for line in _highlight(hit).split("\n"))
    for given in given_results(hit)[:_MAX_CALLS]:
        came = result_line(given.result, _RESULT)
        called = f"{call_line(given.call, _MAX_SHOWN)} → " if given.call else ""
        if came:
            line = truncate(sanitize(called + came), max(40, width - 14))
            yield f"  → {paint(short[given.entry.id], fg='yellow')}  {paint.dim(line)}"
    if hit.alike:
        names = ", ".join(short[key] for key in hit.alike[:_MAX_NAMED])
        yield paint.dim(f"  and {len(hit.alike)} more like it: {names}")


def _matched_line(hit: SearchHit) -> str:
    """The line of the snippet with the first match, as the entry has it."""
    at = min((start for start, _ in hit.marks), default=0)
    start = hit.snippet.rfind("\n", 0, at) + 1
    return hit.snippet[start:].partition("\n")[0].strip(" …")


def _highlight(hit: SearchHit) -> str:
    shown, end = [], 0
    for start, stop in sorted(hit.marks):
        if start < end:
            continue
        match = sanitize(hit.snippet[start:stop])
        shown += [sanitize(hit.snippet[end:start]), paint(match, fg="red", bold=True)]
        end = stop
    return "".join([*shown, sanitize(hit.snippet[end:])])
