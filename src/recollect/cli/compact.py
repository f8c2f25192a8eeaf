"""`recollect compact`: compacts a session, previews a compaction, or undoes one.

Nothing is deleted: a compaction is one more entry, and so is its undoing. With `--file` no store is
opened, nothing is stored, and the output never exceeds the requested number of characters.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from recollect.cli.compact_report import (
    CompactOptions,
    compact_document,
    compact_session,
    describe_undo,
    explain_failure,
    report_lines,
    undo_compaction,
    undo_document,
)
from recollect.cli.console import (
    make_styler,
    print_error,
    print_json,
    print_lines,
    print_note,
    print_problems,
)
from recollect.cli.display_text import pluralize, sanitize
from recollect.cli.options import examples, json_option, store_option
from recollect.cli.store_access import use_store
from recollect.errors import CannotImport
from recollect.snapshot.ledger_builder import build_ledger
from recollect.snapshot.snapshot_renderer import render_snapshot
from recollect.transcripts.format_table import read_transcript
from recollect.transcripts.tolerant_json import read_bytes

MIN_BUDGET, MIN_CHARACTERS = 1_000, 500
MAX_INSTRUCTIONS = 4_000  # characters of instructions
DEFAULT_CHARACTERS = 14_600
MAX_PROBLEMS = 3


@click.command(
    epilog=examples(
        ("recollect compact 019a8b1c --preview", "what would be replaced and what kept"),
        ("recollect compact 019a8b1c --budget 20000", "down to 20,000 tokens"),
        ("recollect compact 019a8b1c --instructions 'keep the API decisions'", ""),
        ("recollect compact --undo 019a8b1c", "undo it"),
        (
            "recollect compact --file chat.jsonl --no-model --budget-chars 14600 --print",
            "a snapshot of a file",
        ),
    )
)
@click.argument("prefix", metavar="[ID]", required=False)
@click.option("--preview", is_flag=True, help="Show the result and write nothing.")
@click.option("--undo", is_flag=True, help="Undo the compaction in force.")
@click.option(
    "--no-model",
    is_flag=True,
    help="Build the snapshot without a model, as is done today in any case.",
)
@click.option(
    "--budget",
    type=click.IntRange(min=MIN_BUDGET),
    metavar="N",
    help="Maximum tokens afterwards; by default four fifths of the model's threshold.",
)
@click.option("--instructions", metavar="TEXT", default="", help="What the snapshot must keep.")
@click.option("--model", "named", metavar="NAME", help="Count for this model.")
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
@json_option
@store_option
def compact(
    *,
    prefix: str | None,
    preview: bool,
    undo: bool,
    no_model: bool,  # noqa: ARG001 - always in force: no model is used yet
    budget: int | None,
    instructions: str,
    named: str | None,
    transcript: Path | None,
    budget_chars: int | None,
    bare: bool,
    as_json: bool,
    file: Path | None,
) -> int:
    """Replace the older part of what the model sees with a snapshot.

    Nothing is deleted. The snapshot is built from the log without calling a model.
    """
    if transcript is not None:
        others = (prefix, preview, undo, budget, instructions, named, file)
        _require(
            not any(others), "--file allows only --no-model, --budget-chars, --print and --json"
        )
        return _compact_file(
            transcript, budget_chars or DEFAULT_CHARACTERS, bare=bare, as_json=as_json
        )
    if prefix is None:
        raise click.UsageError("Name a session (ID), or a file (--file).")
    _require(
        budget_chars is None,
        "--budget-chars needs --file; for a session there is --budget, in tokens",
    )
    _require(
        len(instructions) <= MAX_INSTRUCTIONS,
        f"--instructions takes at most {MAX_INSTRUCTIONS:,} characters",
    )
    if undo:
        _require(not (preview or bare or budget or instructions), "--undo takes only an ID")
        return _undo(prefix, named, file, as_json=as_json)
    options = CompactOptions(prefix, budget, instructions, named, write=not (preview or bare))
    return _compact_session(options, file, bare=bare, as_json=as_json)


def _require(fine: bool, sentence: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not fine:
        raise click.UsageError(f"{sentence}.")


# --- a session -----------------------------------------------------------------------------------


def _compact_session(
    options: CompactOptions, file: Path | None, *, bare: bool, as_json: bool
) -> int:
    result = use_store(file, lambda store: compact_session(store, options))
    if as_json:
        print_json(compact_document(result))
    if not result.proposal.succeeded:
        print_error(explain_failure(result))
        return 1
    if bare and not as_json:
        _print_snapshot(result.proposal.compaction.snapshot)
    elif not as_json:
        print_lines(report_lines(result, make_styler()))
    return 0


def _undo(prefix: str, named: str | None, file: Path | None, *, as_json: bool) -> int:
    undone = use_store(file, lambda store: undo_compaction(store, prefix, named))
    if as_json:
        print_json(undo_document(undone))
    else:
        click.echo(describe_undo(undone))
    return 0


# --- a file --------------------------------------------------------------------------------------


def _compact_file(path: Path, characters: int, *, bare: bool, as_json: bool) -> int:
    transcript = read_transcript(read_bytes(path), path.name)
    entries, problems = transcript.path, transcript.problems
    if not entries:
        raise CannotImport(path.name, "it holds no messages")
    text = render_snapshot(build_ledger(entries), characters - 1)  # and a line end
    print_problems([(path.name, *problem) for problem in problems], MAX_PROBLEMS)
    if as_json:
        record = {"file": str(path), "entries": len(entries), "characters": len(text)}
        print_json(record | {"snapshot": text})
        return 0
    _print_snapshot(text)
    if not bare:
        count = pluralize(len(entries), "entry")
        print_note(f"{len(text):,} characters for {count}; nothing was stored")
    return 0


def _print_snapshot(text: str) -> None:
    """Byte for byte into a file or a pipe, sanitized onto a terminal."""
    if sys.stdout.isatty():
        sys.stdout.write(sanitize(text) + "\n")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
