"""`recollect compact`: makes what the model sees smaller, shows how it would, or undoes it.

Of a session nothing is deleted: a compaction is one more entry, and so is its undoing. Of a file
nothing is stored and no store is opened; what is printed never exceeds the characters asked for.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import click

from recollect.cli.options import examples, json_option, store_option

MIN_BUDGET, MIN_CHARACTERS = 1_000, 500
MAX_INSTRUCTIONS = 4_000  # characters of instructions
DEFAULT_CHARACTERS = 14_600
PROBLEMS_PRINTED = 3


class CompactOptions(NamedTuple):
    """What the person asked for."""

    prefix: str
    budget: int | None = None
    instructions: str = ""
    model: str | None = None
    write: bool = True


@click.command(
    epilog=examples(
        ("recollect compact 019a8b1c --preview", "what would go, what would stay"),
        ("recollect compact 019a8b1c --budget 20000", "until 20,000 tokens are left"),
        ("recollect compact 019a8b1c --instructions 'keep the API decisions'", ""),
        ("recollect compact --undo 019a8b1c", "as if it had not been"),
        (
            "recollect compact --file chat.jsonl --no-model --budget-chars 14600 --print",
            "of a file, nothing stored",
        ),
    )
)
@click.argument("prefix", metavar="[ID]", required=False)
@click.option("--preview", is_flag=True, help="Show what it would do and write nothing.")
@click.option("--undo", is_flag=True, help="Undo the compaction in force.")
@click.option(
    "--no-model",
    is_flag=True,
    help="Build the snapshot by code alone. Without a configured model it always is.",
)
@click.option(
    "--budget",
    type=click.IntRange(min=MIN_BUDGET),
    metavar="N",
    help="Tokens that may be left; by default four fifths of the model's threshold.",
)
@click.option("--instructions", metavar="TEXT", default="", help="What the snapshot has to keep.")
@click.option("--model", "named", metavar="NAME", help="Count for this model.")
@click.option(
    "--file",
    "transcript",
    metavar="TRANSCRIPT",
    type=click.Path(path_type=Path),
    help="The snapshot of another program's file; nothing is stored.",
)
@click.option(
    "--budget-chars",
    type=click.IntRange(min=MIN_CHARACTERS),
    metavar="N",
    help=f"With --file: characters to print at most.  [default: {DEFAULT_CHARACTERS}]",
)
@click.option("--print", "bare", is_flag=True, help="Print the snapshot alone and write nothing.")
@json_option
@store_option
def compact(
    *,
    prefix: str | None,
    preview: bool,
    undo: bool,
    no_model: bool,  # noqa: ARG001 - in force until there is a model to ask
    budget: int | None,
    instructions: str,
    named: str | None,
    transcript: Path | None,
    budget_chars: int | None,
    bare: bool,
    as_json: bool,
    file: Path | None,
) -> int:
    """Replace the older part of what the model sees by a snapshot.

    Nothing is deleted. Without a configured model, the snapshot is built by code from the log.
    """
    if transcript is not None:
        others = (prefix, preview, undo, budget, instructions, named, file)
        _require(not any(others), "--file goes with --no-model, --budget-chars, --print and --json")
        return _compact_file(
            transcript, budget_chars or DEFAULT_CHARACTERS, bare=bare, as_json=as_json
        )
    if prefix is None:
        raise click.UsageError("Name a session (ID), or a file (--file).")
    _require(
        budget_chars is None, "--budget-chars goes with --file; a session has --budget, in tokens"
    )
    _require(
        len(instructions) <= MAX_INSTRUCTIONS,
        f"--instructions takes {MAX_INSTRUCTIONS:,} characters at most",
    )
    if undo:
        _require(not (preview or bare or budget or instructions), "--undo goes with an ID alone")
        return _undo(prefix, named, file, as_json=as_json)
    wish = CompactOptions(prefix, budget, instructions, named, write=not (preview or bare))
    return _compact_session(wish, file, bare=bare, as_json=as_json)


def _require(fine: bool, sentence: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not fine:
        raise click.UsageError(f"{sentence}.")


# --- of a session --------------------------------------------------------------------------------


def _compact_session(wish: CompactOptions, file: Path | None, *, bare: bool, as_json: bool) -> int:
    from recollect.cli.compact_report import (
        compact_document,
        compact_session,
        explain_failure,
        report_lines,
    )
    from recollect.cli.console import make_styler, print_error, print_json, print_lines
    from recollect.cli.store_access import use_store

    done = use_store(file, lambda store: compact_session(store, wish))
    if as_json:
        print_json(compact_document(done))
    if not done.proposal.succeeded:
        print_error(explain_failure(done))
        return 1
    if bare and not as_json:
        print_snapshot(done.proposal.compaction.snapshot)
    elif not as_json:
        print_lines(report_lines(done, make_styler()))
    return 0


def _undo(prefix: str, named: str | None, file: Path | None, *, as_json: bool) -> int:
    from recollect.cli.compact_report import undo_compaction
    from recollect.cli.console import print_json
    from recollect.cli.store_access import use_store

    undone = use_store(file, lambda store: undo_compaction(store, prefix, named))
    if as_json:
        from recollect.entries import entry_to_json

        print_json(
            {
                "session": undone.session_id,
                "undid": entry_to_json(undone.compaction),
                "edit": entry_to_json(undone.edit),
                "tokens_before": undone.before,
                "tokens_after": undone.after,
            }
        )
        return 0
    click.echo(undone.sentence)
    return 0


# --- of a file -----------------------------------------------------------------------------------


def _compact_file(path: Path, characters: int, *, bare: bool, as_json: bool) -> int:
    from recollect.cli.console import print_json, print_note, print_warning
    from recollect.cli.display_text import pluralize
    from recollect.errors import CannotImport
    from recollect.snapshot.ledger_builder import build_ledger
    from recollect.snapshot.snapshot_renderer import render_snapshot
    from recollect.transcripts.format_table import read_transcript
    from recollect.transcripts.tolerant_json import read_bytes

    foreign = read_transcript(read_bytes(path), path.name)
    entries = foreign.path
    if not entries:
        raise CannotImport(path.name, "it holds no messages")
    text = render_snapshot(build_ledger(entries), characters - 1)  # the line's end counts too
    for line, reason in foreign.problems[:PROBLEMS_PRINTED]:
        print_warning(f"{path.name}{f', line {line}' if line else ''}: {reason}")
    if len(foreign.problems) > PROBLEMS_PRINTED:
        print_warning(f"{path.name}: {len(foreign.problems) - PROBLEMS_PRINTED:,} more like these")
    if as_json:
        record = {"file": str(path), "entries": len(entries), "characters": len(text)}
        print_json(record | {"snapshot": text})
        return 0
    print_snapshot(text)
    if not bare:
        print_note(
            f"{len(text):,} characters for {pluralize(len(entries), 'entry')}; nothing was stored"
        )
    return 0


def print_snapshot(text: str) -> None:
    """Exactly as it is into a file or a pipe, and nothing that a terminal would obey."""
    from recollect.cli.display_text import sanitize

    if sys.stdout.isatty():
        sys.stdout.write(sanitize(text) + "\n")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
