"""`recollect show`: reads a session, or jumps to an entry.

What is damaged is shown as damaged, in its place; the rest is shown all the same, and the exit code
says that something is wrong.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.cli.options import examples, json_option, store_option

if TYPE_CHECKING:
    from recollect.cli.session_excerpt import SessionExcerpt, ShowOptions
    from recollect.store.sqlite import SqliteStore


@click.command(
    epilog=examples(
        ("recollect show 019a8b1c", "a whole session"),
        ("recollect show 019a8b1c --last 10 --full", "its end, uncut"),
        ("recollect show 019a8b1c77f0", "an entry, marked, with its surroundings"),
        ("recollect show 019a8b1c --tree", "every branch"),
        ("recollect show 019a8b1c --curated", "what a provider may be sent of it"),
        ("recollect show 019a8b1c --json | jq .", "for programs"),
    )
)
@click.argument("prefix", metavar="ID")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the newest N entries.")
@click.option("--at", metavar="ENTRY", help="As it stood at this entry, not at the head.")
@click.option("--tree", is_flag=True, help="Every branch, one line per entry.")
@click.option("--initial", is_flag=True, help="The initial context, else the first message.")
@click.option("--curated", is_flag=True, help="What a provider may be sent, as the model sees it.")
@click.option("--full", is_flag=True, help="Everything: shorten nothing.")
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
    """Show a session, or an entry in its surroundings."""
    from recollect.cli.console import print_json, print_lines, print_warning
    from recollect.cli.display_text import pluralize
    from recollect.cli.session_excerpt import ShowOptions
    from recollect.cli.store_access import use_store

    if tree + initial + curated > 1:
        raise click.UsageError("Give one of --tree, --initial and --curated.")
    wanted = ShowOptions(prefix, last, at, tree)
    read = _reader(initial=initial, curated=curated)
    shown = use_store(file, lambda store: read(store, wanted))
    option = " --curated" if curated else ""
    if as_json:
        print_json(_document(shown))
    else:
        print_lines(
            _tree_lines(shown) if tree else _transcript_lines(shown, full=full, option=option)
        )
    problem = shown.window.problem
    if shown.damaged:
        print_warning(
            f"{pluralize(len(shown.damaged), 'damaged entry')}; `recollect doctor` tells more"
        )
    if problem:
        print_warning(problem)
    return 1 if shown.damaged or problem else 0


def _reader(
    *, initial: bool, curated: bool
) -> Callable[[SqliteStore, ShowOptions], Awaitable[SessionExcerpt]]:
    if initial or curated:
        from recollect.cli.curated_excerpt import read_curated, read_initial

        return read_curated if curated else read_initial
    from recollect.cli.session_excerpt import read_excerpt

    return read_excerpt


def _document(shown: SessionExcerpt) -> dict[str, object]:
    import msgspec

    from recollect.entries import entry_to_json

    # of what may be sent, two messages may come from one entry: a snapshot
    entries = shown.entries if shown.every else shown.window.entries
    return {
        "session": msgspec.to_builtins(shown.session),
        "entries": [entry_to_json(entry) for entry in entries],
        "marked": shown.marked,
        "damaged": sorted(shown.damaged),
    }


def _tree_lines(shown: SessionExcerpt) -> Iterator[str]:
    from recollect.cli.console import make_styler, terminal_width
    from recollect.cli.entry_tree import tree_lines

    yield from _heading(shown)
    yield from tree_lines(
        shown.window.entries, shown.every, shown.entry_ids, make_styler(), terminal_width()
    )


def _transcript_lines(shown: SessionExcerpt, *, full: bool, option: str = "") -> Iterator[str]:
    from recollect.cli.console import make_styler
    from recollect.cli.display_text import pluralize
    from recollect.cli.entry_display import TranscriptStyle, entry_lines

    paint, window = make_styler(), shown.window
    look = TranscriptStyle(paint, full, shown.marked, shown.damaged)
    yield from _heading(shown)
    whole = f"`recollect show {shown.session_id}{option}` shows all"
    if option or not window.entries:
        yield paint.dim(_excerpt_note(shown, option))
        yield ""
    if window.before:
        yield paint.dim(f"… {pluralize(window.before, 'entry')} before; {whole}")
        yield ""
    for entry in window.entries:
        yield from entry_lines(entry, shown.entry_ids[entry.id], look)
        yield ""
    if window.after:
        yield paint.dim(f"… {pluralize(window.after, 'entry')} after; {whole}")
    if window.aside:
        yield paint.dim(
            f"the head is on another branch; `recollect show {shown.session_id} --tree` shows both"
        )


def _excerpt_note(shown: SessionExcerpt, option: str) -> str:
    if not shown.window.entries:
        return "nothing to show" if option or shown.session.entries else "nothing has been said yet"
    context = f"`recollect context {shown.session_id}`"
    return f"what a provider may be sent; {context} says what is left out of it and why"


def _heading(shown: SessionExcerpt) -> Iterator[str]:
    from recollect.cli.console import make_styler
    from recollect.cli.dates import format_age
    from recollect.cli.display_text import one_line, pluralize
    from recollect.cli.store_access import abbreviate_home

    paint, session = make_styler(), shown.session
    yield paint.bold(one_line(session.title) or "(no title)")
    about = [
        f"session {shown.session_id}",
        pluralize(session.entries, "entry"),
        f"used {format_age(session.used)}",
        one_line(abbreviate_home(session.project)),
        "in the trash" if session.trashed else "",
        f"forked from entry {session.forked_from}" if session.forked_from else "",
    ]
    yield paint.dim(" · ".join(filter(None, about)))
    yield ""
