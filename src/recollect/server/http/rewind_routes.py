"""Rewinds over HTTP: the head alone, or with the files that the session's tools changed.

Restoring files changes them as the user of the server does, so it needs the right that a yes to a
tool needs. It is for sessions of the server's own folder, while no prompt runs in them.
"""

from __future__ import annotations

import os

from recollect.errors import CannotEdit
from recollect.server.access import APPROVAL_RIGHT
from recollect.server.http.api_call import ApiCall, ApiReply, NoQuery, tag_of
from recollect.server.http.api_values import (
    FileConflict,
    RestoredFiles,
    RewindTarget,
    RewoundSession,
)
from recollect.store.contract import SessionInfo
from recollect.tools.file_rewind import RewindResult, rewind_files


async def rewind_session(call: ApiCall[NoQuery, RewindTarget]) -> ApiReply[RewoundSession]:
    """Move a session's head to another entry of it; nothing is deleted.

    With `files`, which needs the right to approve, the files that its tools have changed since get
    their old content back; files that somebody else changed are left alone and listed."""
    info, body = await call.writable(), call.body
    target = None if body.to is None else await call.entry_id(info, body.to)
    with call.expecting():
        if body.files or body.preview:
            rewound = await _rewind_files(call, info, target)
        else:
            moved = await call.hub.store.rewind(info.id, target, head=info.head)
            rewound = RewindResult(moved, info.head)
    return ApiReply(_document(call, rewound), tag=tag_of(rewound.session))


async def _rewind_files(
    call: ApiCall[NoQuery, RewindTarget], info: SessionInfo, target: str | None
) -> RewindResult:
    hub, body = call.hub, call.body
    if not body.preview:
        call.who.require(APPROVAL_RIGHT)
    if info.project != hub.runtime.project.path:
        why = "its files are in another folder than the server's; rewind it there, or without files"
        raise CannotEdit("rewind", info.id, why)
    if hub.runs_of(info.id):
        why = "a prompt is running in it; cancel it, or wait for its end"
        raise CannotEdit("rewind", info.id, why)
    roots, beside = (hub.runtime.folders.root,), body.beside
    return await rewind_files(hub.store, info, target, roots, preview=body.preview, beside=beside)


def _document(call: ApiCall[NoQuery, RewindTarget], rewound: RewindResult) -> RewoundSession:
    known = {name: getattr(rewound.session, name) for name in SessionInfo.__struct_fields__}
    asked = call.body.files or call.body.preview
    files = _files(str(call.hub.runtime.folders.root), rewound) if asked else None
    return RewoundSession(**known, back=rewound.back, preview=call.body.preview, files=files)


def _files(root: str, found: RewindResult) -> RestoredFiles:
    def shown(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(path.removeprefix(root.rstrip(os.sep) + os.sep) for path in paths)

    written = {one.path: one.written for one in found.beside}
    return RestoredFiles(
        restored=shown(found.restored),
        removed=shown(found.removed),
        brought_back=shown(found.brought_back),
        unchanged=shown(found.unchanged),
        conflicts=tuple(
            FileConflict(
                path=shown((one.path,))[0],
                why=one.why,
                beside=shown((written[one.path],))[0] if one.path in written else None,
            )
            for one in found.conflicts
        ),
    )
