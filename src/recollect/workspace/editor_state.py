"""What the user's editor shows, for the model: the whole state first, then only changes.

An `EditorState` has at most ten files, the newest first; at most one is active, and only that one
has a cursor and a selection. `read_editor` reads a JSON file that any program may have written: it
is bounded, and invalid parts are left out. `editor_context` is pure and returns an empty text
exactly if nothing it shows has changed; there is no previous state before the first request and
after a compaction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from recollect.entries import json_text
from recollect.workspace.safe_files import ReadRefused, read_inside
from recollect.workspace.untrusted_text import one_line, strip_invisible

MAX_OPEN_FILES = 10
MAX_SELECTION = 16_384  # characters
SELECTION_CUT = "... [TRUNCATED]"
MAX_FILE = 4_000_000  # bytes
MAX_PATH = 1_000
_STATE, _CHANGES = "What the user's editor shows", "What changed in the user's editor"


class OpenFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    time: float = 0
    active: bool = False
    line: int | None = None  # of the cursor, from 1, as editors count
    column: int | None = None
    selection: str = ""


class EditorState(msgspec.Struct, frozen=True):
    files: tuple[OpenFile, ...] = ()

    @property
    def active(self) -> OpenFile | None:
        return next((file for file in self.files if file.active), None)


def newest_files(files: Iterable[OpenFile]) -> EditorState:
    """The ten newest files in order; the newest active one stays active."""
    kept: dict[str, OpenFile] = {}
    active = False
    for file in sorted(files, key=lambda file: -file.time):
        if file.path in kept or len(kept) == MAX_OPEN_FILES:
            continue
        if file.active and not active:
            active = True
            text = file.selection
            cut = text[:MAX_SELECTION] + SELECTION_CUT if len(text) > MAX_SELECTION else text
            kept[file.path] = msgspec.structs.replace(file, selection=cut)
        else:
            kept[file.path] = OpenFile(path=file.path, time=file.time)
    return EditorState(tuple(kept.values()))


def read_editor(path: Path) -> EditorState:
    """The state that an editor has written; no files if it cannot be read."""
    found = read_inside(path, (path.parent,), MAX_FILE)
    return EditorState() if isinstance(found, ReadRefused) else parse_editor(found.data)


def parse_editor(data: bytes) -> EditorState:
    """`{"openFiles": [{path, timestamp, isActive, selectedText, cursor: {line, character}}]}`,
    also inside `workspaceState`, as editor companions write it."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return EditorState()
    if isinstance(value, dict) and isinstance(value.get("workspaceState"), dict):
        value = value["workspaceState"]
    files = value.get("openFiles") if isinstance(value, dict) else None
    found = (_file(item) for item in files) if isinstance(files, list) else ()
    return newest_files(file for file in found if file is not None)


def _file(item: Any) -> OpenFile | None:
    if not isinstance(item, dict):
        return None
    path, time, selection = item.get("path"), item.get("timestamp"), item.get("selectedText")
    if not isinstance(path, str) or not path.strip() or len(path) > MAX_PATH:
        return None
    cursor = item.get("cursor")
    cursor = cursor if isinstance(cursor, dict) else {}
    return OpenFile(
        path=one_line(path, MAX_PATH),
        time=_time(time),
        active=item.get("isActive") is True,
        line=_number(cursor.get("line")),
        column=_number(cursor.get("character")),
        selection=strip_invisible(selection) if isinstance(selection, str) else "",
    )


def _time(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return float(value) if abs(value) < 1e18 and math.isfinite(value) else 0


def _number(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < 1_000_000_000 else None


def without_secrets(state: EditorState, is_secret: Callable[[str], bool]) -> EditorState:
    """The state without what is selected in a secret of the workspace."""
    files = (
        msgspec.structs.replace(file, selection="")
        if file.selection and is_secret(file.path)
        else file
        for file in state.files
    )
    return EditorState(tuple(files))


def editor_context(before: EditorState | None, now: EditorState) -> str:
    """The editor's state for the model, which knows the state `before`."""
    if before is None:
        return _block(_STATE, _whole(now)) if now.files else ""
    changes = _changes(before, now)
    return _block(_CHANGES, changes) if changes else ""


def is_editor_context(text: str) -> bool:
    """Whether `editor_context` wrote it."""
    return text.startswith((_STATE, _CHANGES))


def _block(what: str, value: dict[str, Any]) -> str:
    # inside JSON no line can start with a fence, so a selection cannot end the block
    return f"{what}, for information only; this is no request:\n```json\n{json_text(value)}\n```"


def _whole(now: EditorState) -> dict[str, Any]:
    others = [file.path for file in now.files if not file.active]
    return _without_empty(activeFile=now.active and _active(now.active), otherOpenFiles=others)


def _changes(before: EditorState, now: EditorState) -> dict[str, Any]:
    old_paths, new_paths = ({file.path: None for file in state.files} for state in (before, now))
    shown = _without_empty(
        filesOpened=[path for path in new_paths if path not in old_paths],
        filesClosed=[path for path in old_paths if path not in new_paths],
    )
    old, new = before.active, now.active
    if new is None:
        return shown | ({"activeFile": None} if old else {})
    if old is None or old.path != new.path:
        return shown | {"activeFile": _active(new)}
    if (old.line, old.column) != (new.line, new.column):
        shown["cursorMoved"] = {"path": new.path, "cursor": _cursor(new)}
    if old.selection != new.selection:
        shown["selectionChanged"] = {"path": new.path, "selectedText": new.selection}
    return shown


def _active(file: OpenFile) -> dict[str, Any]:
    return _without_empty(path=file.path, cursor=_cursor(file), selectedText=file.selection)


def _cursor(file: OpenFile) -> dict[str, Any]:
    return _without_empty(line=file.line, character=file.column)


def _without_empty(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value or value == 0}
