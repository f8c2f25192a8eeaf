"""`recollect import`: other programs' session files. What was imported before adds nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.cli.options import examples, json_option, store_option

if TYPE_CHECKING:
    from recollect.store.contract import Project
    from recollect.store.sqlite import SqliteStore
    from recollect.transcripts.importing import Imported

    Outcome = tuple[Path, Imported | None, str]  # the file, what came of it, or what was wrong

SHOWN_WARNINGS = 5


@click.command(
    "import",
    epilog=examples(
        ("recollect import session-2026-11-01T14-30-0f3a9c21.json", "into this project"),
        (
            "recollect import ~/.gemini/tmp/*/chats/*.json",
            "many at once; again adds only what is new",
        ),
    ),
)
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@json_option
@store_option
def import_(*, files: tuple[Path, ...], as_json: bool, file: Path | None) -> int:
    """Bring in other programs' session files, every byte of them."""
    from recollect.cli.opening import short_session, this_project, use_store
    from recollect.cli.terminal import emit_json

    project = this_project()

    async def work(store: SqliteStore) -> tuple[list[Outcome], dict[str, str]]:
        outcomes = [await _import(store, path, project) for path in files]
        sessions = {imported.session.id for _, imported, _ in outcomes if imported}
        return outcomes, {this: await short_session(store, this) for this in sessions}

    outcomes, short = use_store(file, work, make=True)
    if as_json:
        emit_json([_record(outcome) for outcome in outcomes])
    for path, imported, problem in outcomes:
        _tell(path, imported, problem, short, as_json=as_json)
    return 1 if any(problem for _, _, problem in outcomes) else 0


async def _import(store: SqliteStore, path: Path, project: Project) -> Outcome:
    """One file; a problem with it does not keep the others from being imported."""
    from recollect.cli.terminal import status
    from recollect.errors import RecollectError, StoreError
    from recollect.transcripts.importing import import_file

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
    path: Path, imported: Imported | None, problem: str, short: dict[str, str], *, as_json: bool
) -> None:
    from recollect.cli.terminal import complain, warn
    from recollect.cli.text import harmless, many, one_line

    if imported is None:
        complain(problem)
        return
    for warning in imported.warnings[:SHOWN_WARNINGS]:
        warn(f"{path.name}: {warning}")
    if len(imported.warnings) > SHOWN_WARNINGS:
        warn(f"{path.name}: {len(imported.warnings) - SHOWN_WARNINGS:,} more warnings like these")
    if as_json:
        return
    session = short[imported.session.id]
    what = f"{many(imported.added, 'entry')} added" if imported.added else "nothing new"
    known = f", {imported.known:,} known" if imported.known else ""
    skipped = f", {many(imported.skipped, 'line')} skipped" if imported.skipped else ""
    title = one_line(imported.session.title)
    click.echo(
        harmless(f"{path.name}: {what}{known}{skipped} → session {session} {title}".rstrip())
    )
