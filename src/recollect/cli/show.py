"""`recollect show`: prints a session, or an entry with its neighbours.

Damaged entries are shown as damaged, in their place; the rest is shown all the same, and the exit
code is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from recollect.cli.console import (
    make_styler,
    print_json,
    print_lines,
    print_warning,
    terminal_width,
)
from recollect.cli.dates import format_age
from recollect.cli.display_text import one_line, pluralize
from recollect.cli.entry_display import TranscriptStyle, entry_lines
from recollect.cli.entry_tree import tree_lines
from recollect.cli.options import examples, json_option, store_option
from recollect.cli.session_excerpt import ExcerptPart, SessionExcerpt, ShowOptions, read_excerpt
from recollect.cli.store_access import abbreviate_home, use_store
from recollect.entries import entry_to_json


@click.command(
    epilog=examples(
        ("recollect show 019a8b1c", "a whole session"),
        ("recollect show 019a8b1c --last 10 --full", "its end, in full"),
        ("recollect show 019a8b1c77f0", "an entry, marked, with its neighbours"),
        ("recollect show 019a8b1c --tree", "every branch"),
        ("recollect show 019a8b1c --curated", "what a provider may be sent"),
        ("recollect show 019a8b1c --json | jq .", "for programs"),
    )
)
@click.argument("prefix", metavar="ID")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the newest N entries.")
@click.option("--at", metavar="ENTRY", help="As of this entry instead of the head.")
@click.option("--tree", is_flag=True, help="Every branch, one line per entry.")
@click.option("--initial", is_flag=True, help="The initial context, or the first message.")
@click.option("--curated", is_flag=True, help="The messages a provider may be sent.")
@click.option("--full", is_flag=True, help="Shorten nothing.")
@json_option
@store_option
def show(
    *,
    prefix: str,
    last: int | None,
    at: str | None,
    tree: bool,
    initial: bool,
    curated: bool,
    full: bool,
    as_json: bool,
    file: Path | None,
) -> int:
    """Show a session, or an entry with its neighbours."""
    if tree + initial + curated > 1:
        raise click.UsageError("--tree, --initial and --curated cannot be combined.")
    part: ExcerptPart = (
        "tree" if tree else "initial" if initial else "curated" if curated else "path"
    )
    options = ShowOptions(prefix, part, last, at)
    excerpt = use_store(file, lambda store: read_excerpt(store, options))
    if as_json:
        print_json(_document(excerpt))
    else:
        print_lines(_tree(excerpt) if tree else _transcript(excerpt, part, full=full))
    problem = excerpt.window.problem
    if excerpt.damaged:
        count = pluralize(len(excerpt.damaged), "damaged entry")
        print_warning(f"{count}; `recollect doctor` has details")
    if problem:
        print_warning(problem)
    return 1 if excerpt.damaged or problem else 0


def _document(excerpt: SessionExcerpt) -> dict[str, object]:
    # a curated excerpt may hold two messages of one entry: a snapshot
    entries = excerpt.entries if excerpt.every else excerpt.window.entries
    return {
        "session": msgspec.to_builtins(excerpt.session),
        "entries": [entry_to_json(entry) for entry in entries],
        "marked": excerpt.marked,
        "damaged": sorted(excerpt.damaged),
    }


def _tree(excerpt: SessionExcerpt) -> Iterator[str]:
    path, every = excerpt.window.entries, excerpt.every
    yield from _heading(excerpt)
    yield from tree_lines(path, every, excerpt.entry_ids, make_styler(), terminal_width())


def _transcript(excerpt: SessionExcerpt, part: ExcerptPart, *, full: bool) -> Iterator[str]:
    paint, window, session = make_styler(), excerpt.window, excerpt.session_id
    style = TranscriptStyle(paint, full, excerpt.marked, excerpt.damaged)
    option = " --curated" if part == "curated" else ""
    show_all = f"`recollect show {session}{option}` shows all"
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
    for entry in window.entries:
        yield from entry_lines(entry, excerpt.entry_ids[entry.id], style)
        yield ""
    if window.after:
        yield paint.dim(f"… {pluralize(window.after, 'entry')} after; {show_all}")
    if window.off_path:
        yield paint.dim(
            f"the head is on another branch; `recollect show {session} --tree` shows both"
        )


def _heading(excerpt: SessionExcerpt) -> Iterator[str]:
    paint, session = make_styler(), excerpt.session
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
