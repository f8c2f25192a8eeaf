"""`recollect import`: imports other programs' session files; importing one again adds nothing."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from recollect.cli.console import (
    print_error,
    print_json,
    print_problems,
    print_warning,
    show_status,
)
from recollect.cli.display_text import one_line, pluralize, sanitize
from recollect.cli.options import command, json_and_store_options
from recollect.cli.short_ids import shorten_session_id
from recollect.cli.store_access import current_project, use_store
from recollect.errors import RecollectError, StoreError
from recollect.store.contract import Project
from recollect.store.sqlite import SqliteStore
from recollect.transcripts.session_import import ImportResult, import_file

MAX_PROBLEMS = 5
MAX_WARNINGS = 10


@command(
    ("recollect import session-2026-11-01T14-30-0f3a9c21.json", "into this project"),
    ("recollect import ~/.gemini/tmp/*/chats/*.json", "many at once; later adds only new entries"),
    ("recollect import 258c7280-ae70-4798-800f-63464d01a85d.jsonl", "with its subagents"),
    name="import",
)
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@json_and_store_options
def import_(*, files: tuple[Path, ...], as_json: bool, file: Path | None) -> int:
    """Import other programs' session files without loss."""
    project = current_project()

    async def work(store: SqliteStore) -> tuple[list[ImportResult | str], dict[str, str]]:
        results = [await _import(store, path, project) for path in files]
        sessions = {result.session for result in results if isinstance(result, ImportResult)}
        return results, {session: await _label(store, session) for session in sessions}

    results, labels = use_store(file, work, make=True)
    outcomes = list(zip(files, results, strict=True))
    if as_json:
        print_json([_outcome_document(*outcome) for outcome in outcomes])
    for path, result in outcomes:
        if isinstance(result, str):
            print_error(result)
            continue
        _print_warnings(path, result)
        if not as_json:
            _print_result(path, result, labels[result.session])
    return int(any(isinstance(result, str) for result in results))


async def _label(store: SqliteStore, session: str) -> str:
    """A session's short id and title."""
    title = (await store.session(session)).title
    return f"{await shorten_session_id(store, session)} {one_line(title)}".rstrip()


async def _import(store: SqliteStore, path: Path, project: Project) -> ImportResult | str:
    """Import one file, or say what is wrong with it: an error does not stop the other imports."""

    def progress(done: int, total: int) -> None:
        show_status(f"{path.name}  {100 * done // max(total, 1)} %")

    try:
        return await import_file(store, path, project=project, progress=progress)
    except StoreError:
        raise
    except RecollectError as error:
        return str(error)
    except OSError as error:
        return f"cannot import {path}: {error.strerror or error}"
    finally:
        show_status("")


def _outcome_document(path: Path, result: ImportResult | str) -> dict[str, object]:
    if isinstance(result, str):
        return {"file": str(path), "error": result}
    return {"file": str(path), "error": None, **msgspec.to_builtins(result)}


def _print_warnings(path: Path, result: ImportResult) -> None:
    files = [result, *result.subagents]
    problems = [(one.name, *problem) for one in files for problem in one.problems]
    print_problems(problems, MAX_PROBLEMS)
    warnings = [warning for one in files for warning in one.warnings]
    for warning in warnings[:MAX_WARNINGS]:
        print_warning(f"{path.name}: {warning}")
    if len(warnings) > MAX_WARNINGS:
        print_warning(f"{path.name}: {len(warnings) - MAX_WARNINGS:,} more warnings")


def _print_result(path: Path, result: ImportResult, label: str) -> None:
    known = f", {result.already:,} known" if result.already else ""
    problems = f", {pluralize(len(result.problems), 'problem')}" if result.problems else ""
    counts = f"{_describe_added(result.added)}{known}{problems}"
    click.echo(sanitize(f"{path.name}: {counts} → session {label}"))
    if result.subagents:
        added = _describe_added(sum(one.added for one in result.subagents))
        click.echo(f"  with {pluralize(len(result.subagents), 'subagent')}: {added}")


def _describe_added(count: int) -> str:
    return f"{pluralize(count, 'entry')} added" if count else "nothing new"
