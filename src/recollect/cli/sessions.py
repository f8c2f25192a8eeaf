"""`recollect sessions`: lists sessions, most recently used first."""

from __future__ import annotations

import click
import msgspec

from recollect.cli.console import paint, print_json, print_lines, print_note, terminal_width
from recollect.cli.options import command, json_and_store_options
from recollect.cli.store_access import current_project, use_store
from recollect.display.dates import format_age
from recollect.display.display_text import GAP, align_table, one_line
from recollect.display.home_paths import abbreviate_home
from recollect.store.contract import SessionInfo, Store
from recollect.store.store_address import StoreAddress


@command(
    ("recollect sessions", "this project's, most recently used first"),
    ("recollect sessions --all --limit 20", "of every project"),
    ("recollect sessions --trash", "those that `recollect restore ID` brings back"),
    ("recollect sessions --json | jq '.[0].id'", "for programs"),
)
@click.option("--all", "everywhere", is_flag=True, help="Sessions of every project.")
@click.option("--trash", is_flag=True, help="Sessions in the trash instead.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N sessions.")
@json_and_store_options
def sessions(
    *, everywhere: bool, trash: bool, limit: int | None, as_json: bool, file: StoreAddress | None
) -> None:
    """List this project's sessions, most recently used first."""
    project = None if everywhere else current_project()

    async def work(store: Store) -> tuple[tuple[SessionInfo, ...], dict[str, str], int]:
        found = await store.sessions(project=project, trashed=trash)
        others = 0 if found or everywhere else len(await store.sessions(trashed=trash))
        short = await store.short_session_ids(session.id for session in found[:limit])
        return found, short, others

    found, short, elsewhere = use_store(file, work)
    shown = found[:limit]
    if as_json:
        print_json([msgspec.to_builtins(session) for session in shown])
    elif not found:
        print_note(_empty_note(everywhere=everywhere, trash=trash, elsewhere=elsewhere))
    else:
        print_lines(_lines(shown, short, everywhere=everywhere))
        if len(shown) < len(found):
            print_note(f"{len(found) - len(shown):,} more; a larger --limit shows them")


def _empty_note(*, everywhere: bool, trash: bool, elsewhere: int) -> str:
    where = "" if everywhere else "of this project "
    if elsewhere:
        command = "recollect sessions --trash --all" if trash else "recollect sessions --all"
        place = "in the trash" if trash else "yet"
        return f"no sessions {where}{place}; `{command}` lists {elsewhere:,} of other projects"
    if trash:
        return f"no sessions {where}in the trash"
    return "no sessions yet; `recollect import FILE` imports one, `recollect demo` is a first look"


def _lines(found: tuple[SessionInfo, ...], short: dict[str, str], *, everywhere: bool) -> list[str]:
    rows = [["ID", "TITLE", "ENTRIES", "USED", "PROJECT"]]
    for session in found:
        title = one_line(session.title) or "(no title)"
        if session.forked_from:
            title = f"⑂ {title}"
        project = one_line(abbreviate_home(session.project)) or "-"
        used = format_age(session.used)
        if session.trashed is not None:
            used = f"trashed {format_age(session.trashed)}"
        rows.append([short[session.id], title, f"{session.entries:,}", used, project])
    if not everywhere:
        rows = [row[:4] for row in rows]
    head, *body = align_table(rows, width=terminal_width(), stretch=1, numbers=(2,))
    return [paint.dim(GAP.join(head).rstrip())] + [
        GAP.join([paint(row[0], fg="yellow"), *row[1:3], *map(paint.dim, row[3:])]).rstrip()
        for row in body
    ]
