"""`recollect show`: prints a session, or entries, each with the other half of its exchange.

Damaged entries are shown as damaged, in their place; the rest is shown all the same, and the exit
code is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from recollect.cli.console import paint, print_json, print_lines, print_warning, terminal_width
from recollect.cli.entry_display import TranscriptStyle, entry_lines
from recollect.cli.options import command, complete_session, json_and_store_options
from recollect.cli.session_excerpt import SessionExcerpt, ShowOptions, read_excerpt, read_turns
from recollect.cli.store_access import use_runtime, use_store
from recollect.display.dates import format_age
from recollect.display.display_text import one_line, pad, pluralize, truncate
from recollect.display.entry_summary import role_of, summarize
from recollect.display.home_paths import abbreviate_home
from recollect.entries import Entry, entry_to_json
from recollect.runtime.runtime import Runtime
from recollect.store.contract import Store
from recollect.store.ids import LAST
from recollect.store.output_notes import output_part, whole_output
from recollect.store.readable_text import call_line, calls_of
from recollect.store.store_address import StoreAddress

_MAX_CALL = 120


@command(
    ("recollect show 5f3a9c21", "a whole session"),
    ("recollect show 5f3a9c21 --last 10 --full", "its end, in full"),
    ("recollect show --turns 2", "the newest two turns, as the model sees them"),
    ("recollect show 77f0b1de", "an entry: a result with its call, a call with its result"),
    ("recollect show 77f0b1de 5a310c2b", "several entries"),
    ("recollect show 77f0b1de --around 3", "an entry among its neighbours"),
    ("recollect show", "the session used last in this project"),
    ("recollect show 5f3a9c21 --tree", "every branch"),
    ("recollect show 5f3a9c21 --curated", "what a provider may be sent"),
    ("recollect show 5f3a9c21 --json | jq .", "for programs"),
)
@click.argument("given", metavar="[ID]...", nargs=-1, shell_complete=complete_session)
@click.option(
    "--around",
    type=click.IntRange(min=0),
    metavar="N",
    help="Of an entry: the N entries before and after it, too.",
)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the newest N entries.")
@click.option(
    "--turns",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only the newest N turns, as the model sees them.",
)
@click.option("--at", metavar="ENTRY", help="As of this entry instead of the head.")
@click.option("--tree", is_flag=True, help="Every branch, one line per entry.")
@click.option("--initial", is_flag=True, help="The initial context, or the first message.")
@click.option("--curated", is_flag=True, help="The messages a provider may be sent.")
@click.option("--full", is_flag=True, help="Shorten nothing.")
@json_and_store_options
def show(
    *, given: tuple[str, ...], as_json: bool, file: StoreAddress | None, **options_given: Any
) -> int:
    """Show a session, or entries of it.

    A result is shown with its call, and a call with its results.
    """
    wanted = [ShowOptions(given=one, **options_given) for one in given or (LAST,)]
    options = wanted[0]
    if options.tree + options.initial + options.curated > 1:
        raise click.UsageError("--tree, --initial and --curated cannot be combined.")
    if options.turns is not None:
        if options.tree or options.initial or options.last or options.at:
            raise click.UsageError("--turns goes without --tree, --initial, --last and --at.")
        excerpts = use_runtime(file, lambda runtime: _read_all_turns(runtime, wanted))
    else:
        excerpts = use_store(file, lambda store: _read_all(store, wanted))
    if as_json:
        documents = [_document(excerpt) for excerpt in excerpts]
        print_json(documents if len(given) > 1 else documents[0])
    else:
        trees = (line for excerpt in excerpts for line in _tree(excerpt))
        print_lines(trees if options.tree else _transcripts(excerpts, options))
    return _warn(excerpts)


async def _read_all(store: Store, wanted: list[ShowOptions]) -> list[SessionExcerpt]:
    return [await read_excerpt(store, options) for options in wanted]


async def _read_all_turns(runtime: Runtime, wanted: list[ShowOptions]) -> list[SessionExcerpt]:
    return [await read_turns(runtime, options) for options in wanted]


def _warn(excerpts: list[SessionExcerpt]) -> int:
    damaged = {key for excerpt in excerpts for key in excerpt.damaged}
    problems = dict.fromkeys(filter(None, (excerpt.window.problem for excerpt in excerpts)))
    if damaged:
        count = pluralize(len(damaged), "damaged entry")
        print_warning(f"{count}; `recollect doctor` has details")
    for problem in problems:
        print_warning(problem)
    return 1 if damaged or problems else 0


def _transcripts(excerpts: list[SessionExcerpt], options: ShowOptions) -> Iterator[str]:
    """One after the other; what belongs to one session stands under one heading."""
    session = ""
    for excerpt in _without_repeats(excerpts) if len(excerpts) > 1 else excerpts:
        yield from _transcript(excerpt, options, heading=excerpt.session_id != session)
        session = excerpt.session_id
    if any(excerpt.window.alone for excerpt in excerpts):
        yield paint.dim("`--around 3` also shows the entries before and after")


def _without_repeats(excerpts: list[SessionExcerpt]) -> Iterator[SessionExcerpt]:
    """What stands further up already, at least as fully, is not shown again."""
    shown: dict[str, bool] = {}  # entries, and whether in full
    for excerpt in excerpts:
        window, fresh = excerpt.window, list[Entry]()
        for entry in window.entries:
            fully = window.alone or entry.id == excerpt.marked
            if entry.id not in shown or fully > shown[entry.id]:
                shown[entry.id] = fully
                fresh.append(entry)
        if fresh:
            yield excerpt._replace(window=window._replace(entries=tuple(fresh)))


def _document(excerpt: SessionExcerpt) -> dict[str, object]:
    # a curated excerpt may hold two messages of one entry: a snapshot
    entries = excerpt.entries if excerpt.every else excerpt.window.entries
    return {
        "session": msgspec.to_builtins(excerpt.session),
        "entries": [entry_to_json(entry) for entry in entries],
        "marked": excerpt.marked,
        "damaged": sorted(excerpt.damaged),
    }


def _transcript(excerpt: SessionExcerpt, options: ShowOptions, *, heading: bool) -> Iterator[str]:
    window, session = excerpt.window, excerpt.session_id
    calls = _parallel_calls(window.entries)
    style = TranscriptStyle(options.full, excerpt.marked, window.alone, excerpt.damaged, calls)
    option = " --curated" if options.curated or options.turns else ""
    show_all = f"`recollect show {session}{option}` shows all"
    if heading:
        yield from _heading(excerpt)
    if not window.entries:
        yield paint.dim(
            "nothing to show" if option or excerpt.session.entries else "no entries yet"
        )
        yield ""
    elif option:
        context = f"`recollect context {session}` explains what was left out"
        yield paint.dim(f"what a provider may be sent; {context}")
        yield ""
    if window.before:
        yield paint.dim(f"… {pluralize(window.before, 'entry')} before; {show_all}")
        yield ""
    for entry in _with_whole_output(window.entries) if window.alone else window.entries:
        yield from entry_lines(entry, excerpt.entry_ids[entry.id], style)
        yield ""
    if window.after:
        yield paint.dim(f"… {pluralize(window.after, 'entry')} after; {show_all}")
    if window.off_path:
        yield paint.dim(
            f"the head is on another branch; `recollect show {session} --tree` shows both"
        )


def _with_whole_output(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The entries, with the parts of a command's output as one."""
    parts = [entry for entry in entries if output_part(entry.body) is not None]
    others = [entry for entry in entries if entry not in parts]
    return (*others, whole_output(parts)) if parts else entries


def _parallel_calls(entries: tuple[Entry, ...]) -> dict[str, str]:
    """By id, the calls of replies with several of them: a result has to say which it answers."""
    several = (calls for entry in entries if len(calls := calls_of(entry)) > 1)
    return {call.id: call_line(call, _MAX_CALL) for calls in several for call in calls}


def _heading(excerpt: SessionExcerpt) -> Iterator[str]:
    session = excerpt.session
    yield paint.bold(one_line(session.title) or "(no title)")
    facts = [
        f"session {excerpt.session_id}",
        pluralize(session.entries, "entry"),
        f"used {format_age(session.used)}",
        one_line(abbreviate_home(session.project)),
        "in the trash" if session.trashed else "",
        f"forked from entry {session.forked_from}" if session.forked_from else "",
    ]
    yield paint.dim(" · ".join(filter(None, facts)))
    yield ""


def _tree(excerpt: SessionExcerpt) -> Iterator[str]:
    """One line per entry: the path to the head straight down, other branches beside it."""
    yield from _heading(excerpt)
    width, short = terminal_width(), excerpt.entry_ids
    path = {entry.id for entry in excerpt.window.entries}
    head = excerpt.window.entries[-1].id if path else None
    digits = max(map(len, short.values()), default=0)
    for prefix, entry in _walk(excerpt.entries, path):
        start = f"{prefix}{'●' if entry.id in path else '○'} "
        text = summarize(entry.body)
        if width is not None:
            text = truncate(text, max(10, width - len(start) - digits - 19))
        end = paint(" ← head", fg="yellow") if entry.id == head else ""
        id_cell = paint(pad(short[entry.id], digits), fg="yellow")
        yield f"{start}{id_cell}  {paint.dim(role_of(entry.body).ljust(8))}  {text}{end}"


def _walk(entries: tuple[Entry, ...], on_path: set[str]) -> Iterator[tuple[str, Entry]]:
    """Depth first, with the lines to draw before each entry; the branch to the head comes last."""
    ids = {entry.id for entry in entries}
    children: dict[str | None, list[Entry]] = {}
    for entry in entries:
        children.setdefault(entry.parent if entry.parent in ids else None, []).append(entry)
    waiting = _branches(children.get(None, []), on_path, "")
    while waiting:
        before, after, entry = waiting.pop()
        yield before, entry
        waiting += _branches(children.get(entry.id, []), on_path, after)


def _branches(entries: list[Entry], on_path: set[str], lines: str) -> list[tuple[str, str, Entry]]:
    """In reverse order, because `_walk` takes them from the end; the last continues the line."""
    if not entries:
        return []
    *beside, last = sorted(entries, key=lambda entry: entry.id in on_path)
    aside = [(lines + "├─", lines + "│ ", entry) for entry in reversed(beside)]
    return [(lines, lines, last), *aside]
