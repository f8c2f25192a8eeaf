"""Files of other programs in, and sessions out as files of theirs.

What was read is kept byte for byte, and as entries. Importing a file again adds nothing; importing
one that has grown adds what is new; importing one that tells another past adds a branch and leaves
the session where it was. An import that was cut short is completed by the next one. Subagents come
along as sessions of their own; what is wrong with one of them does not stop the others.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, assert_never

import msgspec

from recollect.entries import Entry, Source
from recollect.errors import (
    AlreadyExists,
    HeadMoved,
    RecollectError,
    StoreError,
    UnknownEntry,
    UnknownSession,
)
from recollect.store.contract import Project, SessionInfo, Store
from recollect.transcripts import history_server
from recollect.transcripts.claude_code.subagent_files import (
    TranscriptBundle,
    TranscriptFile,
    collect_subagents,
)
from recollect.transcripts.format_table import read_transcript
from recollect.transcripts.gemini_cli import session_file
from recollect.transcripts.import_plan import (
    ImportPlan,
    is_bookkeeping,
    note_id,
    plan_import,
    title_id,
)
from recollect.transcripts.json_patch import Json
from recollect.transcripts.original_files import source_id, store_original
from recollect.transcripts.record_format import MARK_FIELD, get_tag
from recollect.transcripts.timestamps import (
    format_zoneless,
    format_zulu,
    gemini_file_name,
    history_server_file_name,
    parse_time,
)
from recollect.transcripts.tolerant_json import read_bytes
from recollect.transcripts.transcript import Transcript

ExportFormat: TypeAlias = Literal["gemini", "history-server"]
ImportProgress: TypeAlias = Callable[[int, int], None]
IsNameTaken: TypeAlias = Callable[[str, str], bool]
_ATTEMPTS = 5  # when somebody else writes in the same session meanwhile
_ENDS_LOOKED_UP = 200
_LONE = re.compile("[\ud800-\udfff]")


class ImportResult(msgspec.Struct, frozen=True):
    session: str
    format: str
    added: int
    already: int  # entries of the file that were there
    problems: tuple[tuple[int, str], ...] = ()  # line and what was odd there; line 0 for a sum
    warnings: tuple[str, ...] = ()
    name: str = ""  # of the file that tells it
    subagents: tuple[ImportResult, ...] = ()  # sessions that came along with this one


async def import_file(
    store: Store,
    path: Path | str,
    *,
    project: Project | None = None,
    progress: ImportProgress | None = None,
) -> ImportResult:
    """Bring a file into the store. `progress` is told bytes kept and entries written, of all."""
    family = await asyncio.to_thread(_read_family, Path(path))
    warnings, along = list(family.warnings), []
    # they come first, so that no session ever names one that is not there
    for member in family.subagents:
        try:
            along.append(await _import_member(store, member, project, _silent))
        except StoreError:
            raise
        except RecollectError as error:
            warnings.append(f"a subagent was left out ({member.name}): {error}")
    imported = await _import_member(store, family.main, project, progress or _silent)
    warnings = [*imported.warnings, *warnings]
    return msgspec.structs.replace(imported, warnings=tuple(warnings), subagents=tuple(along))


def _read_family(place: Path) -> TranscriptBundle:
    data = read_bytes(place)
    return collect_subagents(read_transcript(data, place.name), data, place, read_transcript)


async def _import_member(
    store: Store, member: TranscriptFile, project: Project | None, progress: ImportProgress
) -> ImportResult:
    foreign = member.foreign
    session = await _session(store, foreign, project)
    if await _is_complete(store, member):
        return _imported(member, session, ImportPlan((), "none"))
    for _ in range(_ATTEMPTS - 1):
        try:
            return await _bring_in(store, member, session, progress)
        except (HeadMoved, AlreadyExists):
            session = await store.session(foreign.session)
    return await _bring_in(store, member, session, progress)


async def _is_complete(store: Store, member: TranscriptFile) -> bool:
    """Whether just this file has been imported: parents are written before their children, so
    when all ends are there, everything is."""
    foreign = member.foreign
    parents = {entry.parent for entry in foreign.entries}
    wanted = [entry.id for entry in foreign.entries if entry.id not in parents]
    wanted += [note_id(foreign, note) for note in foreign.notes]
    wanted += [title_id(foreign)] if foreign.heading else []
    if member.data is not None:
        wanted.append(source_id(foreign, member.data))
    if len(wanted) > _ENDS_LOOKED_UP:
        return False
    try:
        for entry in wanted:
            await store.entry(entry, session=foreign.session)
    except UnknownEntry:
        return False
    return True


async def _session(store: Store, foreign: Transcript, project: Project | None) -> SessionInfo:
    try:
        return await store.session(foreign.session)
    except UnknownSession:
        pass
    try:
        return await store.create(
            project=project, title=foreign.title, id=foreign.session, created=foreign.created
        )
    except AlreadyExists:  # by somebody else, just now
        return await store.session(foreign.session)


async def _bring_in(
    store: Store, member: TranscriptFile, session: SessionInfo, progress: ImportProgress
) -> ImportResult:
    foreign, name, data = member
    tree = await store.tree(session.id)
    path = _path(tree, session)
    total = len(data or b"") + len(foreign.entries) + 2  # bytes, entries, source and title
    new_source = None
    if data is not None:
        source = source_id(foreign, data)
        if source not in {entry.id for entry in tree}:
            body = await store_original(
                store, foreign, data, name, tree, lambda done: progress(done, total)
            )
            time = max((entry.time for entry in foreign.entries), default=foreign.created)
            new_source = Entry(source, None, time, body)
    steps = plan_import(foreign, new_source, tree, path)
    missing = len(steps.new)
    await _write(
        store, session, steps, lambda written: progress(total - max(missing - written, 0), total)
    )
    progress(total, total)
    return _imported(member, session, steps)


def _path(tree: Sequence[Entry], session: SessionInfo) -> tuple[Entry, ...]:
    """Root to head. Reading it from the store would read everything a second time."""
    entries = {entry.id: entry for entry in tree}
    path, at = [], session.head
    while at is not None:
        if at not in entries:  # the session moved after it was looked up
            raise HeadMoved(session.id, session.head, None)
        path.append(entries[at])
        at = entries[at].parent
    return tuple(reversed(path))


def _imported(member: TranscriptFile, session: SessionInfo, steps: ImportPlan) -> ImportResult:
    foreign = member.foreign
    new = sum(not is_bookkeeping(foreign, entry) for entry in steps.new)
    return ImportResult(
        session=session.id,
        format=foreign.format,
        added=len(steps.new),
        already=len(foreign.entries) - new,
        problems=tuple((line, reason) for line, reason in foreign.problems),
        warnings=_warnings(session, steps),
        name=member.name,
    )


def _silent(_done: int, _total: int) -> None:
    pass


async def _write(
    store: Store, session: SessionInfo, steps: ImportPlan, tell: Callable[[int], None]
) -> None:
    """Every run but the one that the head follows is a branch: the head never strays."""
    head, stays, written = session.head, steps.course in ("aside", "none"), 0
    for number, (after, entries) in enumerate(steps.runs, 1):
        if stays or number < len(steps.runs):
            await store.branch(session.id, entries, at=after)
        else:
            if after != head:
                await store.rewind(session.id, after, head=head)
            head = (await store.append(session.id, entries, parent=after))[-1].id
        written += len(entries)
        tell(written)
    if not stays and head != steps.end:
        await store.rewind(session.id, steps.end, head=head)


def _warnings(session: SessionInfo, steps: ImportPlan) -> tuple[str, ...]:
    warnings = []
    if session.trashed is not None:
        warnings.append(f"session {session.id} is in the trash; `recollect restore` brings it back")
    if steps.course == "aside":
        warnings.append(
            "the session here and the file have gone different ways: what is new in the file was "
            f"added as a branch, and the session stays where it was ({session.head})"
        )
    elif steps.course == "follow" and steps.displaced:
        warnings.append(
            f"{steps.displaced} entries were replaced by a later state of the file; "
            "they are kept as a branch"
        )
    return tuple(warnings)


# --- out ---------------------------------------------------------------------------------------


async def export_session(
    store: Store, session_id: str, to: ExportFormat, taken: IsNameTaken | None = None
) -> tuple[str, bytes]:
    """A proposed file name, and the session's path to its head as a file of that program.

    `taken` says whether a name belongs to another session than the one with this foreign id.
    """
    session = await store.session(session_id)
    path = await store.path(session.id)
    header = build_header(session, path, to)
    match to:
        case "gemini":
            foreign, start = _named(header, "sessionId", "startTime", session)
            free = None if taken is None else lambda name: taken(name, foreign)
            name = gemini_file_name(foreign, start, taken=free)
            return name, encode_json(session_file.write(header, path))
        case "history-server":
            name = history_server_file_name(*_named(header, "session_id", "created_at", session))
            return name, encode_json(history_server.write(header, path))
        case _:
            assert_never(to)


def build_header(session: SessionInfo, path: Sequence[Entry], to: ExportFormat) -> Json:
    """As the file had it that the session came from, or a new one."""
    last = next((e for e in reversed(path) if not isinstance(e.body, Source)), None)
    time = session.created if last is None else last.time
    for entry in reversed(path):
        given = get_tag(to, entry.body).get("header")
        if isinstance(entry.body, Source) and isinstance(given, dict):
            ours = last is not None and not get_tag(to, last.body)
            changed = (
                {"lastUpdated": format_zulu(time)}
                if to == "gemini"
                else {"updated_at": format_zoneless(time)}
            )
            return given | changed if ours else given
    mark = {MARK_FIELD: {"title": session.title}} if session.title else {}
    if to == "history-server":
        dates = {
            "created_at": format_zoneless(session.created),
            "updated_at": format_zoneless(time),
        }
        return {"session_id": session.id, **dates, **mark}
    # Gemini CLI knows a project by this hash of its folder's path
    project = hashlib.sha256((session.project or "").encode("utf-8", "replace")).hexdigest()
    return {
        "sessionId": session.id,
        "projectHash": project,
        "startTime": format_zulu(session.created),
        "lastUpdated": format_zulu(time),
        **mark,
    }


def _named(header: Json, id_field: str, time_field: str, session: SessionInfo) -> tuple[str, int]:
    given, time = header.get(id_field), parse_time(header.get(time_field))
    return given if isinstance(
        given, str
    ) else session.id, session.created if time is None else time


def encode_json(value: Json) -> bytes:
    """Valid UTF-8. A lone surrogate is written as an escape and reads back as itself; only a high
    and a low one side by side read back as the character that they stand for together."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()
