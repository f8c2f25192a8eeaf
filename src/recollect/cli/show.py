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
    from recollect.cli.reading import Shown, Wanted
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
    from recollect.cli.opening import use_store
    from recollect.cli.reading import Wanted
    from recollect.cli.terminal import emit, emit_json, warn
    from recollect.cli.text import many

    if tree + initial + curated > 1:
        raise click.UsageError("Give one of --tree, --initial and --curated.")
    wanted = Wanted(prefix, last, at, tree)
    read = _reader(initial=initial, curated=curated)
    shown = use_store(file, lambda store: read(store, wanted))
    option = " --curated" if curated else ""
    if as_json:
        emit_json(_document(shown))
    else:
        emit(_tree(shown) if tree else _transcript(shown, full=full, option=option))
    problem = shown.window.problem
    if shown.damaged:
        warn(f"{many(len(shown.damaged), 'damaged entry')}; `recollect doctor` tells more")
    if problem:
        warn(problem)
    return 1 if shown.damaged or problem else 0


def _reader(*, initial: bool, curated: bool) -> Callable[[SqliteStore, Wanted], Awaitable[Shown]]:
    if initial or curated:
        from recollect.cli.curated import read_curated, read_initial

        return read_curated if curated else read_initial
    from recollect.cli.reading import read

    return read


def _document(shown: Shown) -> dict[str, object]:
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


def _tree(shown: Shown) -> Iterator[str]:
    from recollect.cli.terminal import ink, width
    from recollect.cli.tree import tree_lines

    yield from _heading(shown)
    yield from tree_lines(shown.window.entries, shown.every, shown.entry_ids, ink(), width())


def _transcript(shown: Shown, *, full: bool, option: str = "") -> Iterator[str]:
    from recollect.cli.terminal import ink
    from recollect.cli.text import many
    from recollect.cli.transcript import Look, entry_lines

    paint, window = ink(), shown.window
    look = Look(paint, full, shown.marked, shown.damaged)
    yield from _heading(shown)
    whole = f"`recollect show {shown.session_id}{option}` shows all"
    if option or not window.entries:
        yield paint.dim(_told(shown, option))
        yield ""
    if window.before:
        yield paint.dim(f"… {many(window.before, 'entry')} before; {whole}")
        yield ""
    for entry in window.entries:
        yield from entry_lines(entry, shown.entry_ids[entry.id], look)
        yield ""
    if window.after:
        yield paint.dim(f"… {many(window.after, 'entry')} after; {whole}")
    if window.aside:
        yield paint.dim(
            f"the head is on another branch; `recollect show {shown.session_id} --tree` shows both"
        )


def _told(shown: Shown, option: str) -> str:
    if not shown.window.entries:
        return "nothing to show" if option or shown.session.entries else "nothing has been said yet"
    context = f"`recollect context {shown.session_id}`"
    return f"what a provider may be sent; {context} says what is left out of it and why"


def _heading(shown: Shown) -> Iterator[str]:
    from recollect.cli.opening import home_path
    from recollect.cli.terminal import ink
    from recollect.cli.text import many, one_line
    from recollect.cli.when import ago

    paint, session = ink(), shown.session
    yield paint.bold(one_line(session.title) or "(no title)")
    about = [
        f"session {shown.session_id}",
        many(session.entries, "entry"),
        f"used {ago(session.used)}",
        one_line(home_path(session.project)),
        "in the trash" if session.trashed else "",
        f"forked from entry {session.forked_from}" if session.forked_from else "",
    ]
    yield paint.dim(" · ".join(filter(None, about)))
    yield ""
