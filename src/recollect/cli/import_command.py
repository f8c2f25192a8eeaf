"""`recollect import`: other programs' session files. What was imported before adds nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.cli.options import examples, json_option, store_option

if TYPE_CHECKING:
    from recollect.store.contract import Project
    from recollect.store.sqlite import SqliteStore
    from recollect.transcripts.session_import import ImportResult

    ImportOutcome = tuple[
        Path, ImportResult | None, str
    ]  # the file, what came of it, or what was wrong

MAX_PROBLEMS = 5
MAX_WARNINGS = 10


@click.command(
    "import",
    epilog=examples(
        ("recollect import session-2026-11-01T14-30-0f3a9c21.json", "into this project"),
        (
            "recollect import ~/.gemini/tmp/*/chats/*.json",
            "many at once; again adds only what is new",
        ),
        ("recollect import 258c7280-ae70-4798-800f-63464d01a85d.jsonl", "with its subagents"),
    ),
)
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@json_option
@store_option
def import_(*, files: tuple[Path, ...], as_json: bool, file: Path | None) -> int:
    """Bring in other programs' session files, every byte of them."""
    from recollect.cli.console import print_json
    from recollect.cli.store_access import current_project, use_store

    project = current_project()

    async def work(store: SqliteStore) -> tuple[list[ImportOutcome], dict[str, str]]:
        outcomes = [await _import(store, path, project) for path in files]
        sessions = {imported.session for _, imported, _ in outcomes if imported}
        return outcomes, {session: await _label(store, session) for session in sessions}

    outcomes, labels = use_store(file, work, make=True)
    if as_json:
        print_json([_outcome_document(outcome) for outcome in outcomes])
    for path, imported, problem in outcomes:
        _report(path, imported, problem, labels, as_json=as_json)
    return 1 if any(problem for _, _, problem in outcomes) else 0


async def _label(store: SqliteStore, session: str) -> str:
    """A session's short id and title."""
    from recollect.cli.display_text import one_line
    from recollect.cli.store_access import shorten_session_id

    title = (await store.session(session)).title
    return f"{await shorten_session_id(store, session)} {one_line(title)}".rstrip()


async def _import(store: SqliteStore, path: Path, project: Project) -> ImportOutcome:
    """One file; a problem with it does not keep the others from being imported."""
    from recollect.cli.console import show_status
    from recollect.errors import RecollectError, StoreError
    from recollect.transcripts.session_import import import_file

    def progress(done: int, total: int) -> None:
        show_status(f"{path.name}  {100 * done // max(total, 1)} %")

    try:
        return path, await import_file(store, path, project=project, progress=progress), ""
    except StoreError:
        raise
    except RecollectError as error:
        return path, None, str(error)
    except OSError as error:
        return path, None, f"cannot import {path}: {error.strerror or error}"
    finally:
        show_status("")


def _outcome_document(outcome: ImportOutcome) -> dict[str, object]:
    import msgspec

    path, imported, problem = outcome
    result = {"file": str(path), "error": problem or None}
    return result | (msgspec.to_builtins(imported) if imported else {})


def _report(
    path: Path,
    imported: ImportResult | None,
    problem: str,
    labels: dict[str, str],
    *,
    as_json: bool,
) -> None:
    from recollect.cli.console import print_error, print_warning
    from recollect.cli.display_text import pluralize, sanitize

    if imported is None:
        print_error(problem)
        return
    told = [imported, *imported.subagents]
    problems = [(one.name, *each) for one in told for each in one.problems]
    for name, line, reason in problems[:MAX_PROBLEMS]:
        print_warning(f"{name}{f', line {line}' if line else ''}: {reason}")
    if len(problems) > MAX_PROBLEMS:
        print_warning(f"{path.name}: {len(problems) - MAX_PROBLEMS:,} more like these")
    warnings = [warning for one in told for warning in one.warnings]
    for warning in warnings[:MAX_WARNINGS]:
        print_warning(f"{path.name}: {warning}")
    if len(warnings) > MAX_WARNINGS:
        print_warning(f"{path.name}: {len(warnings) - MAX_WARNINGS:,} more warnings")
    if as_json:
        return
    click.echo(
        sanitize(f"{path.name}: {_describe_counts(imported)} → session {labels[imported.session]}")
    )
    if imported.subagents:
        added = sum(one.added for one in imported.subagents)
        what = f"{pluralize(added, 'entry')} added" if added else "nothing new"
        click.echo(f"  {pluralize(len(imported.subagents), 'subagent')} came along: {what}")


def _describe_counts(imported: ImportResult) -> str:
    from recollect.cli.display_text import pluralize

    what = f"{pluralize(imported.added, 'entry')} added" if imported.added else "nothing new"
    known = f", {imported.already:,} known" if imported.already else ""
    problems = f", {pluralize(len(imported.problems), 'problem')}" if imported.problems else ""
    return f"{what}{known}{problems}"
