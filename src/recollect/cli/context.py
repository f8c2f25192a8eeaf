"""`recollect context`: what the model sees of a session, what it does not see, and why.

Looking changes nothing. `--drop`, `--pin` and `--restore` append edits, which can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import click

from recollect.cli.console import print_json, print_lines
from recollect.cli.context_cache_text import cache_document, cache_lines
from recollect.cli.context_diff_text import diff_document, diff_lines
from recollect.cli.context_edits import RequestedEdits, edit_context, edit_document, edit_lines
from recollect.cli.context_text import context_lines
from recollect.cli.encode import EncodedSession, EncodeOptions, encode_session, print_body
from recollect.cli.options import command, json_and_store_options
from recollect.cli.session_arguments import session_argument
from recollect.cli.store_access import use_runtime
from recollect.codecs.wires import WIRES
from recollect.display.context_diff import diff_context
from recollect.display.context_report import context_document, load_full_report
from recollect.display.request_comparison import load_cache_report
from recollect.errors import BadInput
from recollect.past_requests import recent_requests
from recollect.runtime.runtime import Runtime
from recollect.store.store_address import StoreAddress

DEFAULT_LAST = 30
AS_SENT = "sent"  # the format that a request was sent in
_Shown: TypeAlias = tuple[Callable[[], dict[str, Any]], Iterable[str]]  # as JSON, and as text


class ContextOptions(NamedTuple):
    """What is asked for beside edits."""

    prefix: str
    other: str | None
    at: str | None
    diff: str | None
    cache: bool
    against: str | None
    replay: str | None
    named: str | None
    prompt: str
    last: int
    everything: bool

    @property
    def shown(self) -> int | None:
        """How many of each list; None: all."""
        return None if self.everything else self.last


@command(
    ("recollect context 5f3a9c21", "what the model sees now"),
    ("recollect context 5f3a9c21 --at 77f0b1de", "what it saw then"),
    ("recollect context 5f3a9c21 --diff 77f0b1de", "what has changed since"),
    ("recollect context 5f3a9c21 --diff 77f0b1de 02aa6c3f", "between two entries"),
    ("recollect context 5f3a9c21 --cache", "what was cached, and what broke the cache"),
    ("recollect context 5f3a9c21 --against 77f0b1de", "what broke it since this request"),
    ("recollect context 5f3a9c21 --at 77f0b1de --replay sent | jq .", "its bytes again"),
    ("recollect context 5f3a9c21 --drop 77f0b1de", "hide it from the model"),
    ("recollect context 5f3a9c21 --restore 77f0b1de", "show it again"),
)
@session_argument("prefix")
@click.argument("other", metavar="[ENTRY]", required=False)
@click.option("--at", metavar="ENTRY", help="As of this entry: a request or a message.")
@click.option(
    "--diff", metavar="ENTRY", help="What has changed since this entry, or between it and ENTRY."
)
@click.option(
    "--cache", is_flag=True, help="List the newest requests: what was cached, what broke the cache."
)
@click.option(
    "--against",
    metavar="REQUEST",
    help="What broke the prompt cache between this request and the one of --at, or the last.",
)
@click.option(
    "--replay",
    type=click.Choice([AS_SENT, *WIRES]),
    help="Print the bytes of the request of --at, or the last, as sent or in another format.",
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
    drop: tuple[str, ...],
    pin: tuple[str, ...],
    restore: tuple[str, ...],
    as_json: bool,
    file: StoreAddress | None,
    **given: Any,
) -> None:
    """Show what the model sees of a session, or change it.

    Everything left out is listed with its rule, its tokens, its age, why it was left out then, and
    the way to restore it.
    """
    options, edits = ContextOptions(**given), RequestedEdits(drop, pin, restore)
    _check_options(options, edits)
    if options.replay is not None:
        print_body(use_runtime(file, partial(_replay, options)))
        return
    document, lines = _show(options, edits, file)
    print_json(document()) if as_json else print_lines(lines)


def _check_options(options: ContextOptions, edits: RequestedEdits) -> None:
    kinds = ("diff", "cache", "against", "replay")
    given = [f"--{name}" for name in kinds if getattr(options, name)]
    if options.other is not None and options.diff is None:
        raise click.UsageError("A second ENTRY needs --diff.")
    if any(edits) and (given or options.at is not None):
        looks = " and ".join(given or ["--at"])
        raise click.UsageError(f"Edits are made at the head; {looks} only look.")
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} cannot be combined.")
    if options.at is not None and options.other is not None:
        raise click.UsageError("--diff takes a second ENTRY or --at, not both.")


def _show(options: ContextOptions, edits: RequestedEdits, file: StoreAddress | None) -> _Shown:
    prefix, at, named, shown = options.prefix, options.at, options.named, options.shown
    if any(edits):
        edited = use_runtime(file, lambda runtime: edit_context(runtime, prefix, edits, named))
        return partial(edit_document, edited), edit_lines(edited)
    if options.diff is not None:
        between = options.diff, options.other or at
        found = use_runtime(file, lambda runtime: diff_context(runtime, prefix, *between, named))
        return partial(diff_document, found), diff_lines(found, shown)
    if options.cache or options.against is not None:
        ends = prefix, at, options.against, shown
        cached = use_runtime(file, lambda runtime: load_cache_report(runtime, *ends))
        detailed = options.against is not None
        return partial(cache_document, cached), cache_lines(cached, detailed=detailed)
    asked = prefix, at, named, options.prompt
    report = use_runtime(file, lambda runtime: load_full_report(runtime, *asked))
    return partial(context_document, report), context_lines(report, shown)


async def _replay(options: ContextOptions, runtime: Runtime) -> EncodedSession:
    """The bytes of an earlier request; `recollect encode --at` takes the same road."""
    at, to = options.at, options.replay
    if at is None:
        info = await runtime.find_session(options.prefix)
        found = await recent_requests(runtime.store, info.id, 1)
        if not found:
            raise BadInput("no request was sent in this session; `recollect encode` shows the next")
        at = found[-1].request.id
    wire = next((name for name in WIRES if name == to), None)
    asked = EncodeOptions(prefix=options.prefix, to=wire, named=options.named, at=at)
    return await encode_session(asked, runtime)
