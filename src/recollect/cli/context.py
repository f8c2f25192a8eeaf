"""`recollect context`: what the model sees of a session, what it does not see, and why.

Looking changes nothing. `--drop`, `--pin` and `--restore` append edits, which can be undone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from recollect.cli.console import print_json, print_lines
from recollect.cli.context_diff import diff_context, diff_document, diff_lines
from recollect.cli.context_edits import RequestedEdits, edit_context, edit_document, edit_lines
from recollect.cli.context_report import ContextReport, context_document, load_full_report
from recollect.cli.context_text import context_lines
from recollect.cli.options import command, json_and_store_options
from recollect.cli.session_arguments import session_argument
from recollect.cli.store_access import use_runtime
from recollect.runtime.runtime import Runtime
from recollect.store.ids import now
from recollect.view.elision_plan import ElisionPlan
from recollect.view.elision_rules import ElisionRules, plan_elisions

DEFAULT_LAST = 30


@command(
    ("recollect context 5f3a9c21", "what the model sees now"),
    ("recollect context 5f3a9c21 --at 77f0b1de", "what it saw then"),
    ("recollect context 5f3a9c21 --diff 77f0b1de", "what has changed since"),
    ("recollect context 5f3a9c21 --diff 77f0b1de 02aa6c3f", "between two entries"),
    ("recollect context 5f3a9c21 --drop 77f0b1de", "hide it from the model"),
    ("recollect context 5f3a9c21 --restore 77f0b1de", "show it again"),
)
@session_argument("prefix")
@click.argument("other", metavar="[ENTRY]", required=False)
@click.option("--at", metavar="ENTRY", help="As of this entry: a request or a message.")
@click.option(
    "--diff", metavar="ENTRY", help="What has changed since this entry, or between it and ENTRY."
)
@click.option("--drop", metavar="ENTRY", multiple=True, help="Leave this message out.")
@click.option("--pin", metavar="ENTRY", multiple=True, help="Always keep this message.")
@click.option(
    "--restore",
    metavar="ENTRY",
    multiple=True,
    help="Restore what was left out of a message, or undo a drop, a pin or a compaction.",
)
@click.option("-m", "--model", "named", metavar="NAME", help="Count for this model.")
@click.option("--prompt", metavar="TEXT", default="", help="For the request of this prompt.")
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=DEFAULT_LAST,
    show_default=True,
    metavar="N",
    help="List the newest N of each kind.",
)
@click.option("--all", "everything", is_flag=True, help="List everything.")
@json_and_store_options
def context(
    *,
    prefix: str,
    other: str | None,
    at: str | None,
    diff: str | None,
    named: str | None,
    prompt: str,
    last: int,
    everything: bool,
    as_json: bool,
    file: Path | None,
    **given: tuple[str, ...],
) -> None:
    """Show what the model sees of a session, or change it.

    Everything left out is listed with its rule, its tokens, its age and the way to restore it.
    """
    if other is not None and diff is None:
        raise click.UsageError("A second ENTRY needs --diff.")
    shown = None if everything else last
    document: Callable[[], dict[str, Any]]
    edits = RequestedEdits(**given)
    if any(edits):
        if at is not None or diff is not None:
            raise click.UsageError("Edits are made at the head; --at and --diff only look.")
        edited = use_runtime(file, lambda runtime: edit_context(runtime, prefix, edits, named))
        document, lines = partial(edit_document, edited), edit_lines(edited)
    elif diff is not None:
        if at is not None and other is not None:
            raise click.UsageError("--diff takes a second ENTRY or --at, not both.")
        ends = diff, other or at
        found = use_runtime(file, lambda runtime: diff_context(runtime, prefix, *ends, named))
        document, lines = partial(diff_document, found), diff_lines(found, shown)
    else:
        report, plan = use_runtime(file, partial(_load, prefix, at, named, prompt))
        document = partial(context_document, report, plan)
        lines = context_lines(report, plan, shown)
    print_json(document()) if as_json else print_lines(lines)


async def _load(
    prefix: str, at: str | None, named: str | None, prompt: str, runtime: Runtime
) -> tuple[ContextReport, ElisionPlan | None]:
    report = await load_full_report(runtime, prefix, at, named, prompt)
    if at is not None:
        return report, None
    rules = ElisionRules.from_settings(runtime.settings, str(runtime.folders.cwd))
    return report, plan_elisions(report.view, now(), rules)
