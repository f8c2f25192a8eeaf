"""`recollect compact`: compacts a session, previews a compaction, or undoes one.

Nothing is deleted: a compaction is one more entry, and so is its undoing. A failed attempt is
recorded with its reason, unless there was nothing to do. If another writer appends in between, the
proposal is made again for the new head. With `--file` no store is opened, nothing is stored, and
the output never exceeds the requested number of characters; a model helps only if one is named.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from recollect.cli.console import (
    download_progress,
    paint,
    print_error,
    print_json,
    print_lines,
    print_note,
    print_problems,
    print_warning,
    show_status,
)
from recollect.cli.options import command, complete_session, json_and_store_options
from recollect.cli.store_access import retry_on_head_moved, use_runtime
from recollect.display.compaction_report import (
    CompactionOutcome,
    CompactionRemedies,
    CompactionWish,
    describe_change,
    describe_parts,
    explain_failure,
    run_compaction,
    start_compaction,
)
from recollect.display.context_report import load_report
from recollect.display.dates import format_age
from recollect.display.display_text import one_line, pluralize, sanitize
from recollect.display.short_ids import shorten_entry_id
from recollect.entries import Entry, Restore, entry_to_json
from recollect.errors import CannotImport, RecollectError
from recollect.runtime.runtime import Runtime
from recollect.runtime.transcript_snapshot import TranscriptSnapshot, snapshot_transcript
from recollect.session import Session
from recollect.store.ids import LAST
from recollect.store.store_address import StoreAddress
from recollect.transcripts.format_table import read_file
from recollect.transcripts.source_file import SourceFile
from recollect.view.edit_reasons import BUILT_BY_CODE

MIN_BUDGET, MIN_CHARACTERS = 1_000, 500
MAX_INSTRUCTIONS = 4_000  # characters of instructions
DEFAULT_CHARACTERS = 14_600
MAX_PROBLEMS = 3


class CompactOptions(NamedTuple):
    prefix: str | None
    preview: bool
    undo: bool
    no_model: bool
    budget: int | None
    instructions: str
    named: str | None
    transcript: Path | None
    budget_chars: int | None
    until: str | None
    bare: bool
    as_json: bool


class NothingToUndo(RecollectError):
    def __init__(self, session: str) -> None:
        super().__init__(
            f"no compaction is in force in session {session}; "
            f"`recollect context {session}` shows what is left out of it"
        )
        self.session = session


@command(
    ("recollect compact 5f3a9c21 --preview", "what would be replaced and what kept"),
    ("recollect compact 5f3a9c21 --budget 20000", "down to 20,000 tokens"),
    ("recollect compact 5f3a9c21 --instructions 'keep the API decisions'", ""),
    ("recollect compact 5f3a9c21 --until 77f0b1de", "only what comes before this entry"),
    ("recollect compact --undo 5f3a9c21", "undo it"),
    ("recollect compact --file chat.jsonl --budget-chars 14600 --print", "a snapshot of a file"),
    ("recollect compact --file chat.jsonl -m gpt-5-mini", "one that a model helps to write"),
)
@click.argument("prefix", metavar="[ID]", required=False, shell_complete=complete_session)
@click.option("--preview", is_flag=True, help="Show the result and write nothing.")
@click.option("--undo", is_flag=True, help="Undo the compaction in force.")
@click.option("--no-model", is_flag=True, help="Build the snapshot without a model.")
@click.option(
    "--budget",
    type=click.IntRange(min=MIN_BUDGET),
    metavar="N",
    help="Maximum tokens afterwards; by default four fifths of the model's threshold.",
)
@click.option(
    "--until", metavar="ENTRY", help="Replace only what comes before this entry; the rest stays."
)
@click.option("--instructions", metavar="TEXT", default="", help="What the snapshot must keep.")
@click.option("-m", "--model", "named", metavar="NAME", help="Compact for and with this model.")
@click.option(
    "--file",
    "transcript",
    metavar="TRANSCRIPT",
    type=click.Path(path_type=Path),
    help="Print the snapshot of another program's session file; store nothing.",
)
@click.option(
    "--budget-chars",
    type=click.IntRange(min=MIN_CHARACTERS),
    metavar="N",
    help=f"With --file: maximum characters to print.  [default: {DEFAULT_CHARACTERS}]",
)
@click.option("--print", "bare", is_flag=True, help="Print only the snapshot and write nothing.")
@json_and_store_options
def compact(*, file: StoreAddress | None, **given: Any) -> int:
    """Replace the older part of what the model sees with a snapshot.

    Nothing is deleted. The configured model writes the snapshot, and code checks and completes it;
    where there is none, and with --no-model, code alone builds it from the log.
    """
    options = CompactOptions(**given)
    if options.transcript is not None:
        others = options._replace(
            transcript=None,
            budget_chars=None,
            bare=False,
            as_json=False,
            no_model=False,
            named=None,
        )
        allowed = "-m, --no-model, --budget-chars, --print and --json"
        _require(not any((*others, file)), f"--file allows only {allowed}")
        return _compact_file(options.transcript, options)
    _require(
        options.budget_chars is None,
        "--budget-chars needs --file; for a session there is --budget, in tokens",
    )
    _require(
        len(options.instructions) <= MAX_INSTRUCTIONS,
        f"--instructions takes at most {MAX_INSTRUCTIONS:,} characters",
    )
    if not options.undo:
        return _compact_session(options, file)
    others = options._replace(prefix=None, undo=False, named=None, as_json=False)
    _require(not any(others), "--undo takes only an ID")
    return _undo(options, file)


def _require(fine: bool, sentence: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not fine:
        raise click.UsageError(f"{sentence}.")


# --- a session -----------------------------------------------------------------------------------


def _compact_session(options: CompactOptions, file: StoreAddress | None) -> int:
    result = use_runtime(file, partial(_propose, options))
    if options.as_json:
        print_json(_document(result))
    if not result.proposal.succeeded:
        print_error(explain_failure(result, _remedies(result.session_id)))
        return 1
    if options.bare and not options.as_json:
        _print_snapshot(result.proposal.compaction.snapshot)
    elif not options.as_json:
        print_lines(_lines(result))
    return 0


async def _propose(options: CompactOptions, runtime: Runtime) -> CompactionOutcome:
    return await retry_on_head_moved(partial(_propose_once, options, runtime))


async def _propose_once(options: CompactOptions, runtime: Runtime) -> CompactionOutcome:
    wish = CompactionWish(
        session=options.prefix or LAST,
        instructions=options.instructions,
        named=options.named,
        no_model=options.no_model,
        target=options.budget,
        until=options.until,
        preview=options.preview or options.bare,
    )
    start = await start_compaction(runtime, wish)
    try:
        return await run_compaction(runtime, wish, start, partial(_show_round, start.model.name))
    finally:
        if start.by_model:
            show_status("")


def _undo(options: CompactOptions, file: StoreAddress | None) -> int:
    async def undo(runtime: Runtime) -> tuple[dict[str, Any], str]:
        await runtime.find_writable_session(options.prefix or LAST)
        report = await load_report(runtime, options.prefix or LAST, named=options.named)
        compaction = report.view.compaction
        if compaction is None:
            raise NothingToUndo(report.session_id)
        session = Session(runtime.store, report.session.id, report.view, runtime.door.warn)
        (edit,) = await session.append(Restore(entries=(compaction.id,)))
        after = session.view().tokens
        document = {
            "session": report.session_id,
            "undid": entry_to_json(compaction),
            "edit": entry_to_json(edit),
            "tokens_before": report.view.tokens,
            "tokens_after": after,
        }
        seen = f"sees {after:,} tokens in messages again, previously {report.view.tokens:,}"
        short = await shorten_entry_id(runtime.store, compaction.id)
        undid = f"undid the compaction {short} of {format_age(compaction.time)}"
        return document, f"{undid}: the model {seen}"

    document, sentence = use_runtime(file, undo)
    if options.as_json:
        print_json(document)
    else:
        click.echo(sentence)
    return 0


def _lines(result: CompactionOutcome) -> Iterator[str]:
    session = result.session_id
    verb = "would compact" if result.entry is None else "compacted"
    yield paint.bold(f"{verb} session {session}: {describe_change(result.proposal)}")
    for label, text in describe_parts(result):
        line = f"  {label:<8}  {text}"
        yield line if label else paint.dim(line)
    yield ""
    if result.entry is not None:
        yield paint.dim(f"`recollect show {result.short}` shows the snapshot")
        yield paint.dim(f"`recollect compact --undo {session}` undoes it")
        return
    yield from sanitize(result.proposal.compaction.snapshot).split("\n")
    yield ""
    yield paint.dim("nothing was written")


def _remedies(session: str) -> CompactionRemedies:
    look = f"`recollect context {session}`"
    return CompactionRemedies(
        f"{look} shows what the model sees",
        lambda budget: f"try --budget {budget}, or fewer pins ({look})",
    )


def _document(result: CompactionOutcome) -> dict[str, Any]:
    body = result.proposal.compaction
    return {
        "session": result.session.id,
        "entry": result.entry.id if result.entry is not None else None,
        "status": body.status,
        "reason": body.reason,
        "tokens_before": body.tokens_before,
        "tokens_after": body.tokens_after,
        "target": result.target,
        "first_kept": body.first_kept,
        "kept": list(body.kept),
        "report": msgspec.to_builtins(result.proposal.report),
        "snapshot": body.snapshot,
    }


# --- a file --------------------------------------------------------------------------------------


def _compact_file(path: Path, options: CompactOptions) -> int:
    characters = options.budget_chars or DEFAULT_CHARACTERS
    transcript = read_file(SourceFile(path), path.name).with_entries()
    entries, problems = transcript.path, transcript.problems
    if not entries:
        raise CannotImport(path.name, "it holds no messages")
    model = None if options.no_model else options.named
    snapshot = asyncio.run(_snapshot_file(entries, characters - 1, model))  # and a line end
    text = snapshot.text
    print_problems([(path.name, *problem) for problem in problems], MAX_PROBLEMS)
    if snapshot.trouble:
        print_warning(("" if snapshot.by_model else BUILT_BY_CODE) + snapshot.trouble)
    if options.as_json:
        record = {"file": str(path), "entries": len(entries), "characters": len(text)}
        print_json(record | {"by_model": snapshot.by_model, "snapshot": text})
        return 0
    _print_snapshot(text)
    if not options.bare:
        count = pluralize(len(entries), "entry")
        print_note(f"{len(text):,} characters for {count}; nothing was stored")
    return 0


async def _snapshot_file(
    entries: Sequence[Entry], characters: int, model: str | None
) -> TranscriptSnapshot:
    progress = download_progress() if model is not None else None
    try:
        return await snapshot_transcript(
            entries,
            characters,
            model,
            on_round=partial(_show_round, model or ""),
            progress=progress,
        )
    finally:
        if model is not None:
            show_status("")


def _show_round(model: str, number: int, count: int) -> None:
    part = f", part {number} of {count}" if count > 1 else ""
    show_status(f"{one_line(model)} writes a snapshot{part}")


def _print_snapshot(text: str) -> None:
    """Byte for byte into a file or a pipe, sanitized onto a terminal."""
    if sys.stdout.isatty():
        sys.stdout.write(sanitize(text) + "\n")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
