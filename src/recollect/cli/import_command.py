"""`recollect import`: imports other programs' session files; importing one again adds nothing."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
import msgspec

from recollect.cli.console import (
    print_error,
    print_json,
    print_note,
    print_problems,
    print_warning,
    show_status,
)
from recollect.cli.options import command, json_and_store_options
from recollect.cli.store_access import use_runtime
from recollect.display.display_text import one_line, pluralize
from recollect.display.import_outcomes import (
    ImportOutcome,
    WantedFiles,
    collect_files,
    describe_import,
    label_session,
    try_import,
)
from recollect.errors import UnknownFormat
from recollect.runtime.runtime import Runtime
from recollect.store.store_address import StoreAddress
from recollect.transcripts.import_result import ImportProgress, ImportResult

MAX_PROBLEMS = 5
_LINE_EVERY = 10.0  # seconds
MAX_WARNINGS = 10
MAX_NAMED = 10  # files in no known format


@command(
    ("recollect import session-2026-11-01T14-30-0f3a9c21.json", "into the project that it names"),
    ("recollect import ~/.claude/projects", "every session below a folder"),
    ("recollect import ~/.gemini/tmp/*/chats/*.json", "many at once; later adds only new entries"),
    ("recollect import 258c7280-ae70-4798-800f-63464d01a85d.jsonl", "with its subagents"),
    name="import",
)
@click.argument(
    "files", metavar="FILE|DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("-v", "--verbose", is_flag=True, help="Name every file that was not recognised.")
@json_and_store_options
def import_(
    *, files: tuple[Path, ...], verbose: bool, as_json: bool, file: StoreAddress | None
) -> int:
    """Import other programs' session files without loss.

    Of a folder, every session below it is imported. A file that cannot be read does not stop the
    others; the exit code is 1 then.
    """
    wanted = _collect(files)
    outcomes: list[ImportOutcome] = []
    labels: dict[str, str] = {}

    async def work(runtime: Runtime) -> None:
        for number, path in enumerate(wanted.files, 1):
            counter = f"{number:,}/{len(wanted.files):,}  " if len(wanted.files) > 1 else ""
            outcomes.append(await _import(runtime, path, counter))
        sessions = {outcome.session for outcome in outcomes if outcome.session}
        labels.update([(session, await label_session(runtime, session)) for session in sessions])

    try:
        use_runtime(file, work, make=True)
    except KeyboardInterrupt:
        _report(wanted, outcomes, labels, as_json=as_json, verbose=verbose)
        done = f"{len(outcomes):,} of {pluralize(len(wanted.files), 'file')}"
        print_error(f"interrupted after {done}; the same command goes on from there")
        raise
    return _report(wanted, outcomes, labels, as_json=as_json, verbose=verbose)


def _report(
    wanted: WantedFiles,
    outcomes: list[ImportOutcome],
    labels: dict[str, str],
    *,
    as_json: bool,
    verbose: bool,
) -> int:
    """Print what became of the files; the exit code."""
    strange = {
        outcome.path
        for outcome in outcomes
        if isinstance(outcome.result, UnknownFormat) and outcome.path in wanted.in_folders
    }
    shown = [outcome for outcome in outcomes if outcome.path not in strange]
    if as_json:
        print_json([_outcome_document(outcome) for outcome in shown])
    for outcome in shown:
        if not isinstance(outcome.result, ImportResult):
            print_error(outcome.error)
            continue
        _print_warnings(outcome.path, outcome.result)
        if not as_json:
            short = labels.get(outcome.session, outcome.session[-8:])
            for line in describe_import(outcome.path, outcome.result, short):
                click.echo(line)
    failures = list(wanted.failures)
    if wanted.folders and not shown and not failures and len(outcomes) == len(wanted.files):
        where = ", ".join(map(str, wanted.folders))
        failures.append(f"cannot import {where}: there are no session files in there")
    for failure in failures:
        print_error(failure)
    _print_strange([*wanted.others, *strange], verbose=verbose)
    return int(bool(failures) or any(outcome.error for outcome in shown))


def _print_strange(files: list[Path], *, verbose: bool) -> None:
    """The files of folders that hold no sessions, all of them or a few."""
    if not files:
        return
    named = files if verbose else files[:MAX_NAMED]
    more = f"\n  and {len(files) - len(named):,} more (-v names them)" if named != files else ""
    lines = "".join(f"\n  {one_line(str(path))}" for path in sorted(named))
    print_note(f"not recognised: {pluralize(len(files), 'file')}{lines}{more}")


def _collect(given: tuple[Path, ...]) -> WantedFiles:
    try:
        return collect_files(given, lambda folder: show_status(f"looking into {folder}"))
    finally:
        show_status("")


async def _import(runtime: Runtime, path: Path, counter: str) -> ImportOutcome:
    try:
        return await try_import(runtime, path, _show_progress(f"{counter}{path.name}"))
    finally:
        show_status("")


def _show_progress(name: str) -> ImportProgress:
    """A bar on a terminal; elsewhere a line now and then, if it takes long."""
    said = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal said
        percent = 100 * done // max(total, 1)
        show_status(f"{name}  {'█' * (percent // 5):<20} {percent} %")
        if not sys.stderr.isatty() and time.monotonic() - said > _LINE_EVERY:
            said = time.monotonic()
            print_note(f"{name}: {percent} %")

    return show


def _outcome_document(outcome: ImportOutcome) -> dict[str, object]:
    document: dict[str, object] = {"file": str(outcome.path), "error": outcome.error or None}
    found = outcome.result
    return document | (msgspec.to_builtins(found) if isinstance(found, ImportResult) else {})


def _print_warnings(path: Path, result: ImportResult) -> None:
    files = [result, *result.subagents]
    problems = [(one.name, *problem) for one in files for problem in one.problems]
    print_problems(problems, MAX_PROBLEMS)
    warnings = [warning for one in files for warning in one.warnings]
    for warning in warnings[:MAX_WARNINGS]:
        print_warning(f"{path.name}: {warning}")
    if len(warnings) > MAX_WARNINGS:
        print_warning(f"{path.name}: {len(warnings) - MAX_WARNINGS:,} more warnings")
