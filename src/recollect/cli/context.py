"""`recollect context`: what the model sees of a session, what it does not see, and why.

Looking changes nothing. `--drop`, `--pin` and `--restore` append edits; nothing is ever lost.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.cli.options import examples, json_option, store_option

if TYPE_CHECKING:
    from recollect.cli.accounting import Page
    from recollect.cli.editing import Wishes
    from recollect.cli.seeing import Sight
    from recollect.store.sqlite import SqliteStore
    from recollect.view.elision_rules import ElisionPlan

LAST = 30


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
    default=LAST,
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
    from recollect.cli.accounting import Page
    from recollect.cli.terminal import ink, width

    if other is not None and diff is None:
        raise click.UsageError("A second ENTRY goes with --diff.")
    page = Page(ink(), width(), None if everything else last)
    if drop or pin or restore:
        if at is not None or diff is not None:
            raise click.UsageError("--at and --diff only look; edits are made at the head.")
        from recollect.cli.editing import Wishes

        _edit(prefix, Wishes(drop, pin, restore), named, file, as_json=as_json)
    elif diff is not None:
        if at is not None and other is not None:
            raise click.UsageError("--diff takes the second ENTRY or --at, not both.")
        _compare(prefix, diff, other or at, named, page, file, as_json=as_json)
    else:
        _account(prefix, at, named, page, file, as_json=as_json)


def _account(
    prefix: str, at: str | None, named: str | None, page: Page, file: Path | None, *, as_json: bool
) -> None:
    from recollect.cli.accounting import account_lines
    from recollect.cli.opening import use_store
    from recollect.cli.seeing import look, with_past
    from recollect.cli.terminal import emit, emit_json

    async def work(store: SqliteStore) -> Sight:
        sight = await look(store, await store.session(prefix), at, named)
        return await with_past(store, sight)

    sight = use_store(file, work)
    plan = _planned(sight) if at is None else None
    if as_json:
        from recollect.cli.documents import account_document

        emit_json(account_document(sight, plan))
    else:
        emit(account_lines(sight, plan, page))


def _planned(sight: Sight) -> ElisionPlan:
    from recollect.store.ids import now
    from recollect.view.elision_rules import ElisionRules, plan_elisions

    return plan_elisions(sight.view, now(), ElisionRules(root=sight.session.project or ""))


def _compare(
    prefix: str,
    old: str,
    new: str | None,
    named: str | None,
    page: Page,
    file: Path | None,
    *,
    as_json: bool,
) -> None:
    from recollect.cli.comparing import compare, comparison_lines
    from recollect.cli.opening import use_store
    from recollect.cli.terminal import emit, emit_json

    compared = use_store(file, lambda store: compare(store, prefix, old, new, named))
    if as_json:
        from recollect.cli.documents import comparison_document

        emit_json(comparison_document(compared))
    else:
        emit(comparison_lines(compared, page))


def _edit(
    prefix: str, wishes: Wishes, named: str | None, file: Path | None, *, as_json: bool
) -> None:
    from recollect.cli.editing import edit, edited_document, edited_lines
    from recollect.cli.opening import use_store
    from recollect.cli.terminal import emit, emit_json

    edited = use_store(file, lambda store: edit(store, prefix, wishes, named))
    if as_json:
        emit_json(edited_document(edited))
    else:
        emit(edited_lines(edited))
