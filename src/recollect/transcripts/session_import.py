"""Importing other programs' session files.

A file is stored byte for byte, and as entries. Importing it again adds nothing; importing it after
it has grown adds only what is new; importing a changed past adds a branch and leaves the session
where it was. The next import completes an interrupted one. Subagents become sessions of their own;
a problem with one of them does not stop the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from recollect.errors import AlreadyExists, HeadMoved, RecollectError, StoreError, UnknownSession
from recollect.store.contract import SessionInfo, Store
from recollect.transcripts.find_session import refuse_trashed
from recollect.transcripts.format_table import read_bundle
from recollect.transcripts.import_plan import ImportPlan, is_bookkeeping, plan_import
from recollect.transcripts.import_result import FindProject, ImportProgress, ImportResult
from recollect.transcripts.original_files import store_original
from recollect.transcripts.transcript import Transcript, TranscriptFile, path_to

_ATTEMPTS = 5  # when another process writes to the same session meanwhile


async def import_file(
    store: Store,
    path: Path | str,
    *,
    project: FindProject = lambda _folder: None,
    progress: ImportProgress = lambda _done, _total: None,
) -> ImportResult:
    """Import a file. `project` gives the project of the folder that the file names (empty if it
    names none). `progress` is called with the bytes and entries written, and their total."""
    bundle = await asyncio.to_thread(read_bundle, Path(path))
    warnings, subagents = list(bundle.warnings), []
    # they come first, so that no session ever names one that is missing
    for file in bundle.subagents:
        try:
            subagents.append(await _import_one(store, file, project))
        except StoreError:
            raise
        except RecollectError as error:
            warnings.append(f"a subagent was left out ({file.name}): {error}")
    main = await _import_one(store, bundle.main, project, progress)
    warnings = [*main.warnings, *warnings]
    return msgspec.structs.replace(main, warnings=tuple(warnings), subagents=tuple(subagents))


async def _import_one(
    store: Store,
    file: TranscriptFile,
    project: FindProject,
    progress: ImportProgress = lambda _done, _total: None,
) -> ImportResult:
    attempt = 0
    while True:
        attempt += 1
        try:
            session = await _open_session(store, file.transcript, project)
            return await _append_new(store, file, session, progress)
        except (HeadMoved, AlreadyExists):
            if attempt == _ATTEMPTS:
                raise


async def _open_session(
    store: Store, transcript: Transcript, find_project: FindProject
) -> SessionInfo:
    with suppress(UnknownSession):
        return await refuse_trashed(store, await store.session(transcript.session))
    project = find_project(transcript.folder)
    id_, title, created = transcript.session, transcript.title, transcript.created
    return await store.create(project=project, title=title, id=id_, created=created)


async def _append_new(
    store: Store, file: TranscriptFile, session: SessionInfo, progress: ImportProgress
) -> ImportResult:
    transcript, name, data = file
    tree = await store.tree(session.id)
    path = path_to(session.head, tree)  # reading it from the store would read everything again
    if session.head is not None and (not path or path[0].parent is not None):
        raise HeadMoved(session.id, session.head, None)  # after it was looked up
    total = len(data or b"") + len(transcript.entries) + 2  # bytes, entries, source and title
    source = await store_original(store, file, tree, lambda done: progress(done, total))
    plan = plan_import(transcript, source, tree, path)
    before = total - len(plan.new)
    await _carry_out(store, session, plan, lambda written: progress(before + written, total))
    progress(total, total)
    already = len(transcript.entries) - sum(not is_bookkeeping(transcript, e) for e in plan.new)
    return ImportResult(
        session=session.id,
        format=transcript.format,
        added=len(plan.new),
        already=already,
        problems=transcript.problems,
        warnings=_warnings(session, plan),
        name=name,
    )


async def _carry_out(
    store: Store, session: SessionInfo, plan: ImportPlan, progress: Callable[[int], None]
) -> None:
    """Every run but the one that the head follows is a branch, so the head never strays."""
    head, stays, written = session.head, plan.course in ("branch", "none"), 0
    for number, (after, entries) in enumerate(plan.runs, 1):
        if stays or number < len(plan.runs):
            await store.branch(session.id, entries, at=after)
        else:
            if after != head:
                await store.rewind(session.id, after, head=head)
            head = (await store.append(session.id, entries, parent=after))[-1].id
        written += len(entries)
        progress(written)
    if not stays and head != plan.end:
        await store.rewind(session.id, plan.end, head=head)


def _warnings(session: SessionInfo, plan: ImportPlan) -> tuple[str, ...]:
    warnings = []
    if plan.course == "branch":
        warnings.append(
            "the session here and the file have diverged: what is new in the file was added as a "
            f"branch, and the session stays where it was ({session.head})"
        )
    elif plan.course == "follow" and plan.displaced:
        warnings.append(
            f"{plan.displaced} entries were replaced by a later state of the file; "
            "they remain as a branch"
        )
    return tuple(warnings)
