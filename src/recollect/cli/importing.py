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

    Outcome = tuple[Path, ImportResult | None, str]  # the file, what came of it, or what was wrong

SHOWN_REASONS = 5
SHOWN_WARNINGS = 10


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
    from recollect.cli.opening import this_project, use_store
    from recollect.cli.terminal import emit_json

    project = this_project()

    async def work(store: SqliteStore) -> tuple[list[Outcome], dict[str, str]]:
        outcomes = [await _import(store, path, project) for path in files]
        sessions = {imported.session for _, imported, _ in outcomes if imported}
        return outcomes, {session: await _label(store, session) for session in sessions}

    outcomes, labels = use_store(file, work, make=True)
    if as_json:
        emit_json([_record(outcome) for outcome in outcomes])
    for path, imported, problem in outcomes:
        _tell(path, imported, problem, labels, as_json=as_json)
    return 1 if any(problem for _, _, problem in outcomes) else 0


async def _label(store: SqliteStore, session: str) -> str:
    """A session's short id and title."""
    from recollect.cli.opening import short_session
    from recollect.cli.text import one_line

    title = (await store.session(session)).title
    return f"{await short_session(store, session)} {one_line(title)}".rstrip()


async def _import(store: SqliteStore, path: Path, project: Project) -> Outcome:
    """One file; a problem with it does not keep the others from being imported."""
    from recollect.cli.terminal import status
    from recollect.errors import RecollectError, StoreError
    from recollect.transcripts.session_import import import_file

    def progress(done: int, total: int) -> None:
        status(f"{path.name}  {100 * done // max(total, 1)} %")

    try:
        return path, await import_file(store, path, project=project, progress=progress), ""
    except StoreError:
        raise
    except RecollectError as error:
        return path, None, str(error)
    except OSError as error:
        return path, None, f"cannot import {path}: {error.strerror or error}"
    finally:
        status("")


def _record(outcome: Outcome) -> dict[str, object]:
    import msgspec

    path, imported, problem = outcome
    result = {"file": str(path), "error": problem or None}
    return result | (msgspec.to_builtins(imported) if imported else {})


def _tell(
    path: Path,
    imported: ImportResult | None,
    problem: str,
    labels: dict[str, str],
    *,
    as_json: bool,
) -> None:
    from recollect.cli.terminal import complain, warn
    from recollect.cli.text import harmless, many

    if imported is None:
        complain(problem)
        return
    told = [imported, *imported.subagents]
    problems = [(one.name, *each) for one in told for each in one.problems]
    for name, line, reason in problems[:SHOWN_REASONS]:
        warn(f"{name}{f', line {line}' if line else ''}: {reason}")
    if len(problems) > SHOWN_REASONS:
        warn(f"{path.name}: {len(problems) - SHOWN_REASONS:,} more like these")
    warnings = [warning for one in told for warning in one.warnings]
    for warning in warnings[:SHOWN_WARNINGS]:
        warn(f"{path.name}: {warning}")
    if len(warnings) > SHOWN_WARNINGS:
        warn(f"{path.name}: {len(warnings) - SHOWN_WARNINGS:,} more warnings")
    if as_json:
        return
    click.echo(harmless(f"{path.name}: {_came(imported)} → session {labels[imported.session]}"))
    if imported.subagents:
        added = sum(one.added for one in imported.subagents)
        what = f"{many(added, 'entry')} added" if added else "nothing new"
        click.echo(f"  {many(len(imported.subagents), 'subagent')} came along: {what}")


def _came(imported: ImportResult) -> str:
    from recollect.cli.text import many

    what = f"{many(imported.added, 'entry')} added" if imported.added else "nothing new"
    known = f", {imported.already:,} known" if imported.already else ""
    problems = f", {many(len(imported.problems), 'problem')}" if imported.problems else ""
    return f"{what}{known}{problems}"
