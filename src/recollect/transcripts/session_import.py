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
from typing import NamedTuple

import msgspec

from recollect.entries import Entry
from recollect.errors import (
    AlreadyExists,
    HeadMoved,
    RecollectError,
    StoreError,
    UnknownEntry,
    UnknownSession,
)
from recollect.store.contract import Project, SessionInfo, Store
from recollect.store.ids import derived_id
from recollect.transcripts.find_session import refuse_trashed
from recollect.transcripts.format_table import read_bundle
from recollect.transcripts.gemini_cli.project_folder import hash_path
from recollect.transcripts.import_plan import (
    Course,
    ImportPlan,
    describe_session,
    is_bookkeeping,
    plan_import,
    shares_history,
)
from recollect.transcripts.import_result import FindProject, ImportProgress, ImportResult
from recollect.transcripts.missing_import import append_missing, read_contents
from recollect.transcripts.original_files import derive_source_id, store_original
from recollect.transcripts.owned_import import scope_to_owner
from recollect.transcripts.record_source import RECORDS_LIMIT, too_large
from recollect.transcripts.run_writer import RunWriter, stream_runs
from recollect.transcripts.transcript import (
    Transcript,
    TranscriptBundle,
    TranscriptFile,
    path_to,
)

_ATTEMPTS = 5  # when another process writes to the same session meanwhile


async def import_file(
    store: Store,
    path: Path | str,
    *,
    project: FindProject = lambda _folder: None,
    progress: ImportProgress = lambda _done, _total: None,
    owner: str = "",
) -> ImportResult:
    """Import a file. `project` gives the project of the folder that the file names (empty if it
    names none). `progress` is called with the bytes and entries written, and their total. With an
    `owner`, the session is that owner's own, whoever imported the file before."""
    bundle = await asyncio.to_thread(read_bundle, Path(path))
    bundle = scope_to_owner(bundle, owner) if owner else bundle
    return await import_bundle(store, bundle, project=project, progress=progress, owner=owner)


async def import_bundle(
    store: Store,
    bundle: TranscriptBundle,
    *,
    project: FindProject = lambda _folder: None,
    progress: ImportProgress = lambda _done, _total: None,
    owner: str = "",
) -> ImportResult:
    """Import what was read from a file."""
    warnings, subagents = list(bundle.warnings), []
    # they come first, so that no session ever names one that is missing
    for file in bundle.subagents:
        try:
            subagents.append(await _import_one(store, file, project, owner=owner))
        except StoreError:
            raise
        except RecollectError as error:
            warnings.append(f"a subagent was left out ({file.name}): {error}")
    main = await _import_one(store, bundle.main, project, progress, owner=owner)
    warnings = [*main.warnings, *warnings]
    return msgspec.structs.replace(main, warnings=tuple(warnings), subagents=tuple(subagents))


async def _import_one(
    store: Store,
    file: TranscriptFile,
    project: FindProject,
    progress: ImportProgress = lambda _done, _total: None,
    *,
    owner: str = "",
) -> ImportResult:
    attempt = 0
    while True:
        attempt += 1
        try:
            if file.transcript.stream is not None and await _is_known(store, file.transcript):
                if await _is_complete(store, file):
                    return _describe_result(file, file.transcript.session, 0, file.transcript.count)
                if done := await _append_missing(store, file, project, progress):
                    return done
                file = await asyncio.to_thread(_load_whole, file)
            found = await _open_session(store, file.transcript, project, owner)
            if file.transcript.stream is not None:
                return await _append_stream(store, file, found.info, progress)
            # an id may be taken: an entry can belong to one session only
            keep_ids = file.transcript.is_own and attempt == 1
            return await _append_new(store, file, found, progress, keep_ids=keep_ids)
        except (HeadMoved, AlreadyExists):
            if attempt == _ATTEMPTS:
                raise


def _load_whole(file: TranscriptFile) -> TranscriptFile:
    if file.source is not None and file.source.size > RECORDS_LIMIT:
        raise too_large(file.source)
    return file._replace(transcript=file.transcript.with_entries())


async def _is_known(store: Store, transcript: Transcript) -> bool:
    with suppress(UnknownSession):
        return bool(await store.session(transcript.session))
    return False


async def _is_complete(store: Store, file: TranscriptFile) -> bool:
    """Whether the session has all of a file: an import appends the bytes' entry before the new ones
    on the path to the leaf, that path after everything else, and the description last."""
    transcript, _, original = file
    info = await refuse_trashed(store, await store.session(transcript.session))
    if original is None or transcript.stream is None or not transcript.stream.ends_with_leaf:
        return False
    try:
        await store.entry(await derive_source_id(transcript, original), session=info.id)
        for id_, _ in describe_session(transcript, {}):
            await store.entry(id_, session=info.id)
        leaf = await asyncio.to_thread(transcript.stream.find_leaf)
        return leaf is not None and bool(await store.entry(leaf, session=info.id))
    except UnknownEntry:
        return False


class _FoundSession(NamedTuple):
    info: SessionInfo
    tree: tuple[Entry, ...]  # every entry, those before a fork included


async def _open_session(
    store: Store, transcript: Transcript, find_project: FindProject, owner: str
) -> _FoundSession:
    """The session of a file, which is created if need be. Two programs, or two projects, may give
    one id to two sessions: with another project and nothing in common, it is another session."""
    project: Project | None = None
    for attempt in ("first", "other"):
        id_ = transcript.session
        if attempt == "other" and project is not None:
            id_ = derived_id(id_, "project", project.git or project.path)
        with suppress(UnknownSession):
            found = await _read_session(store, id_)
            if attempt == "other" or shares_history(transcript, found.tree):
                return found
            project = find_project(await _find_folder(store, transcript, find_project))
            if project is None or project.path == found.info.project:
                return found
            continue
        break
    project = project or find_project(await _find_folder(store, transcript, find_project))
    created = await store.create(
        project=project, title=transcript.title, id=id_, created=transcript.created, owner=owner
    )
    return _FoundSession(created, ())


async def _read_session(store: Store, id_: str) -> _FoundSession:
    info = await refuse_trashed(store, await store.session(id_))
    own = await store.tree(info.id)
    shared = await store.path(info.id, at=info.forked_from) if info.forked_from else ()
    return _FoundSession(info, (*shared, *own))


async def _find_folder(store: Store, transcript: Transcript, find_project: FindProject) -> str:
    """The folder that the file names, also by a hash of the path of a project that is known."""
    if transcript.folder or not transcript.folder_hash:
        return transcript.folder
    sessions = [*await store.sessions(), *await store.sessions(trashed=True)]
    here = find_project("")
    known = dict.fromkeys([here.path if here else None, *(one.project for one in sessions)])
    hashes = {hash_path(path): path for path in known if path}
    return hashes.get(transcript.folder_hash, "")


async def _append_new(
    store: Store,
    file: TranscriptFile,
    found: _FoundSession,
    progress: ImportProgress,
    *,
    keep_ids: bool,
) -> ImportResult:
    transcript, _, original = file
    session, tree = found
    path = path_to(session.head, tree)  # reading it from the store would read everything again
    if session.head is not None and (not path or path[0].parent is not None):
        raise HeadMoved(session.id, session.head, None)  # after it was looked up
    size = original.size if original else 0
    total = size + len(transcript.entries) + 2  # bytes, entries, source and title
    source = None
    # a file of ours that brings no news has nothing to be kept for
    if not transcript.is_own or plan_import(transcript, None, tree, path).new:
        source = await store_original(store, file, tree, lambda done: progress(done, total))
    plan = plan_import(transcript, source, tree, path, keep_ids=keep_ids)
    before = total - len(plan.new)
    await _carry_out(store, session, plan, lambda written: progress(before + written, total))
    progress(total, total)
    already = len(transcript.entries) - sum(not is_bookkeeping(transcript, e) for e in plan.new)
    result = _describe_result(file, session.id, len(plan.new), already)
    warnings = _warnings(session, plan.course, plan.displaced)
    return msgspec.structs.replace(result, warnings=warnings)


async def _append_stream(
    store: Store, file: TranscriptFile, session: SessionInfo, progress: ImportProgress
) -> ImportResult:
    """Append everything to a new session, making the entries as they are needed."""
    transcript, _, original = file
    count = await asyncio.to_thread(lambda: transcript.count)
    total = (original.size if original else 0) + count + 2  # bytes, entries, source and title
    source = await store_original(store, file, (), lambda done: progress(done, total))
    runs, new, end = await asyncio.to_thread(stream_runs, transcript, source)
    writer = RunWriter(store, session, lambda written: progress(total - new + written, total))
    for number, run in enumerate(runs, 1):
        await writer.write(run, follows=number == len(runs))
    if end is not None and writer.head != end:
        await store.rewind(session.id, end, head=writer.head)
    progress(total, total)
    return _describe_result(file, session.id, new, 0)


async def _append_missing(
    store: Store, file: TranscriptFile, find_project: FindProject, progress: ImportProgress
) -> ImportResult | None:
    """Append what a session lacks of a file, making the entries as they are needed. None if it may
    be another session, or is a fork, or holds entries without their parents: those are rare."""
    transcript = file.transcript
    info = await refuse_trashed(store, await store.session(transcript.session))
    if transcript.stream is None or info.forked_from is not None:
        return None
    contents = await read_contents(store, transcript, info)
    missing = await asyncio.to_thread(transcript.stream.compare, contents.ids.find)
    if not missing.is_closed:
        return None
    if not missing.held:
        project = find_project(await _find_folder(store, transcript, find_project))
        if project is not None and project.path != info.project:
            return None
    done = await append_missing(store, file, contents, missing, progress)
    result = _describe_result(file, info.id, done.added, missing.held)
    warnings = _warnings(info, done.course, done.displaced)
    return msgspec.structs.replace(result, warnings=warnings)


def _describe_result(file: TranscriptFile, session: str, added: int, already: int) -> ImportResult:
    return ImportResult(
        session=session,
        format=file.transcript.format,
        added=added,
        already=already,
        problems=file.transcript.problems,
        name=file.name,
    )


async def _carry_out(
    store: Store, session: SessionInfo, plan: ImportPlan, progress: Callable[[int], None]
) -> None:
    writer, stays = RunWriter(store, session, progress), plan.course in ("branch", "none")
    for number, (after, entries) in enumerate(plan.runs, 1):
        first = msgspec.structs.replace(entries[0], parent=after)
        run = ((entry, 0) for entry in (first, *entries[1:]))
        await writer.write(run, follows=not stays and number == len(plan.runs))
    if not stays and writer.head != plan.end:
        await store.rewind(session.id, plan.end, head=writer.head)


def _warnings(session: SessionInfo, course: Course, displaced: int) -> tuple[str, ...]:
    warnings = []
    if course == "branch":
        warnings.append(
            "the session here and the file have diverged: what is new in the file was added as a "
            f"branch, and the session stays where it was ({session.head})"
        )
    elif course == "follow" and displaced:
        warnings.append(
            f"{displaced} entries were replaced by a later state of the file; "
            "they remain as a branch"
        )
    return tuple(warnings)
