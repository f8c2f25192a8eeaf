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
from recollect.cli.store_access import abbreviate_home, use_runtime
from recollect.errors import RecollectError, StoreError
from recollect.runtime.runtime import Runtime
from recollect.transcripts.import_result import ImportResult

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

    async def work(runtime: Runtime) -> tuple[list[ImportResult | str], dict[str, str]]:
        results = [await _import(runtime, path) for path in files]
        sessions = {result.session for result in results if isinstance(result, ImportResult)}
        return results, {session: await _label(runtime, session) for session in sessions}

    results, labels = use_runtime(file, work, make=True)
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


async def _label(runtime: Runtime, session: str) -> str:
    """A session's short id and title, and its project if that is another one."""
    info = await runtime.store.session(session)
    short = (await runtime.store.short_session_ids([session]))[session]
    label = f"{short} {one_line(info.title)}".rstrip()
    if info.project in (None, runtime.project.path):
        return label
    return f"{label} (of {one_line(abbreviate_home(info.project))})"


async def _import(runtime: Runtime, path: Path) -> ImportResult | str:
    """Import one file, or say what is wrong with it: an error does not stop the other imports."""

    def progress(done: int, total: int) -> None:
        show_status(f"{path.name}  {100 * done // max(total, 1)} %")

    try:
        return await runtime.import_file(path, progress)
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
