"""`recollect context`: what the model sees of a session, what it does not see, and why.

Looking changes nothing. `--drop`, `--pin` and `--restore` append edits; nothing is ever lost.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.cli.options import examples, json_option, store_option

if TYPE_CHECKING:
    from recollect.cli.context_edits import RequestedEdits
    from recollect.cli.context_report import ContextReport
    from recollect.cli.context_text import ListingStyle
    from recollect.store.sqlite import SqliteStore
    from recollect.view.elision_rules import ElisionPlan

DEFAULT_LAST = 30


@click.command(
    epilog=examples(
        ("recollect context 019a8b1c", "what the model would see now"),
        ("recollect context 019a8b1c --at 019a8b1c77f0", "what it saw then"),
        ("recollect context 019a8b1c --diff 019a8b1c77f0", "what has changed since"),
        ("recollect context 019a8b1c --diff 019a8b1c77f0 019a8b1d02aa", "between two entries"),
        ("recollect context 019a8b1c --drop 019a8b1c77f0", "out of the model's sight"),
        ("recollect context 019a8b1c --restore 019a8b1c77f0", "and back"),
    )
)
@click.argument("prefix", metavar="ID")
@click.argument("other", metavar="[ENTRY]", required=False)
@click.option("--at", metavar="ENTRY", help="As it was at this entry: a request or a message.")
@click.option(
    "--diff", metavar="ENTRY", help="What has changed since this entry, or from it to ENTRY."
)
@click.option("--drop", metavar="ENTRY", multiple=True, help="Leave this message out.")
@click.option("--pin", metavar="ENTRY", multiple=True, help="Keep this message, whatever happens.")
@click.option(
    "--restore",
    metavar="ENTRY",
    multiple=True,
    help="Bring back what was left out of a message, or undo a drop, a pin or a compaction.",
)
@click.option("--model", "named", metavar="NAME", help="Count for this model.")
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=DEFAULT_LAST,
    show_default=True,
    metavar="N",
    help="List the newest N of everything.",
)
@click.option("--all", "everything", is_flag=True, help="List everything.")
@json_option
@store_option
def context(
    *,
    prefix: str,
    other: str | None,
    at: str | None,
    diff: str | None,
    drop: tuple[str, ...],
    pin: tuple[str, ...],
    restore: tuple[str, ...],
    named: str | None,
    last: int,
    everything: bool,
    as_json: bool,
    file: Path | None,
) -> None:
    """Show what the model sees of a session, or change it.

    Everything that was left out is listed with the rule, the tokens, its age and the way back.
    """
    from recollect.cli.console import make_styler, terminal_width
    from recollect.cli.context_text import ListingStyle

    if other is not None and diff is None:
        raise click.UsageError("A second ENTRY goes with --diff.")
    page = ListingStyle(make_styler(), terminal_width(), None if everything else last)
    if drop or pin or restore:
        if at is not None or diff is not None:
            raise click.UsageError("--at and --diff only look; edits are made at the head.")
        from recollect.cli.context_edits import RequestedEdits

        _edit(prefix, RequestedEdits(drop, pin, restore), named, file, as_json=as_json)
    elif diff is not None:
        if at is not None and other is not None:
            raise click.UsageError("--diff takes the second ENTRY or --at, not both.")
        _show_diff(prefix, diff, other or at, named, page, file, as_json=as_json)
    else:
        _show_context(prefix, at, named, page, file, as_json=as_json)


def _show_context(
    prefix: str,
    at: str | None,
    named: str | None,
    page: ListingStyle,
    file: Path | None,
    *,
    as_json: bool,
) -> None:
    from recollect.cli.console import print_json, print_lines
    from recollect.cli.context_report import add_history, load_report
    from recollect.cli.context_text import context_lines
    from recollect.cli.store_access import use_store

    async def work(store: SqliteStore) -> ContextReport:
        sight = await load_report(store, await store.session(prefix), at, named)
        return await add_history(store, sight)

    sight = use_store(file, work)
    plan = _plan_elisions(sight) if at is None else None
    if as_json:
        from recollect.cli.context_json import context_document

        print_json(context_document(sight, plan))
    else:
        print_lines(context_lines(sight, plan, page))


def _plan_elisions(sight: ContextReport) -> ElisionPlan:
    from recollect.store.ids import now
    from recollect.view.elision_rules import ElisionRules, plan_elisions

    return plan_elisions(sight.view, now(), ElisionRules(root=sight.session.project or ""))


def _show_diff(
    prefix: str,
    old: str,
    new: str | None,
    named: str | None,
    page: ListingStyle,
    file: Path | None,
    *,
    as_json: bool,
) -> None:
    from recollect.cli.console import print_json, print_lines
    from recollect.cli.context_diff import diff_context, diff_lines
    from recollect.cli.store_access import use_store

    compared = use_store(file, lambda store: diff_context(store, prefix, old, new, named))
    if as_json:
        from recollect.cli.context_json import diff_document

        print_json(diff_document(compared))
    else:
        print_lines(diff_lines(compared, page))


def _edit(
    prefix: str, wishes: RequestedEdits, named: str | None, file: Path | None, *, as_json: bool
) -> None:
    from recollect.cli.console import print_json, print_lines
    from recollect.cli.context_edits import edit_context, edit_document, edit_lines
    from recollect.cli.store_access import use_store

    edited = use_store(file, lambda store: edit_context(store, prefix, wishes, named))
    if as_json:
        print_json(edit_document(edited))
    else:
        print_lines(edit_lines(edited))
