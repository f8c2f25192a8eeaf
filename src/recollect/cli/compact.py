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
LONGEST = 4_000  # characters of instructions
CHARACTERS = 14_600
SHOWN_PROBLEMS = 3


class Wish(NamedTuple):
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
    help=f"With --file: characters to print at most.  [default: {CHARACTERS}]",
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
        _only(not any(others), "--file goes with --no-model, --budget-chars, --print and --json")
        return _of_file(transcript, budget_chars or CHARACTERS, bare=bare, as_json=as_json)
    if prefix is None:
        raise click.UsageError("Name a session (ID), or a file (--file).")
    _only(
        budget_chars is None, "--budget-chars goes with --file; a session has --budget, in tokens"
    )
    _only(len(instructions) <= LONGEST, f"--instructions takes {LONGEST:,} characters at most")
    if undo:
        _only(not (preview or bare or budget or instructions), "--undo goes with an ID alone")
        return _undo(prefix, named, file, as_json=as_json)
    wish = Wish(prefix, budget, instructions, named, write=not (preview or bare))
    return _of_session(wish, file, bare=bare, as_json=as_json)


def _only(fine: bool, sentence: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not fine:
        raise click.UsageError(f"{sentence}.")


# --- of a session --------------------------------------------------------------------------------


def _of_session(wish: Wish, file: Path | None, *, bare: bool, as_json: bool) -> int:
    from recollect.cli.compacting import compact_session, document, refusal, report_lines
    from recollect.cli.opening import use_store
    from recollect.cli.terminal import complain, emit, emit_json, ink

    done = use_store(file, lambda store: compact_session(store, wish))
    if as_json:
        emit_json(document(done))
    if not done.proposal.succeeded:
        complain(refusal(done))
        return 1
    if bare and not as_json:
        print_snapshot(done.proposal.compaction.snapshot)
    elif not as_json:
        emit(report_lines(done, ink()))
    return 0


def _undo(prefix: str, named: str | None, file: Path | None, *, as_json: bool) -> int:
    from recollect.cli.compacting import undo_compaction
    from recollect.cli.opening import use_store
    from recollect.cli.terminal import emit_json

    undone = use_store(file, lambda store: undo_compaction(store, prefix, named))
    if as_json:
        from recollect.entries import entry_to_json

        emit_json(
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


def _of_file(path: Path, characters: int, *, bare: bool, as_json: bool) -> int:
    from recollect.cli.terminal import emit_json, mention, warn
    from recollect.cli.text import many
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
    for line, reason in foreign.problems[:SHOWN_PROBLEMS]:
        warn(f"{path.name}{f', line {line}' if line else ''}: {reason}")
    if len(foreign.problems) > SHOWN_PROBLEMS:
        warn(f"{path.name}: {len(foreign.problems) - SHOWN_PROBLEMS:,} more like these")
    if as_json:
        record = {"file": str(path), "entries": len(entries), "characters": len(text)}
        emit_json(record | {"snapshot": text})
        return 0
    print_snapshot(text)
    if not bare:
        mention(f"{len(text):,} characters for {many(len(entries), 'entry')}; nothing was stored")
    return 0


def print_snapshot(text: str) -> None:
    """Exactly as it is into a file or a pipe, and nothing that a terminal would obey."""
    from recollect.cli.text import harmless

    if sys.stdout.isatty():
        sys.stdout.write(harmless(text) + "\n")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
