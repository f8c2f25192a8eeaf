"""The model that the user chose for one session, kept in its log, so that every door goes on with
it. The newest choice counts; an empty name goes back to the settings'."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import msgspec

from recollect.entries import Entry, SettingsEdit, json_text
from recollect.session import Session
from recollect.view.view import View

_KEY = "model"
_MAX_VALUES = 10_000  # characters: other programs store settings too


class _Values(msgspec.Struct):
    model: str | None = None


def model_choice(name: str) -> SettingsEdit:
    """The entry that records a choice."""
    return SettingsEdit(values=json_text({_KEY: name}))


def session_model(entries: Sequence[Entry]) -> str:
    """The model that these entries choose; empty: none."""
    for entry in reversed(entries):
        body = entry.body
        if isinstance(body, SettingsEdit) and len(body.values) <= _MAX_VALUES:
            name = _read(body.values)
            if name is not None:
                return name
    return ""


async def keep_session_model(session: Session, before: View) -> None:
    """Choose the model again that a view had chosen, after a compaction: who opens the session
    later reads only what the compaction kept."""
    view = session.view()
    chosen = session_model(before.entries)
    compacted = view.compaction is not None and view.compaction != before.compaction
    if chosen and compacted and not _is_chosen_since(view):
        await session.append(model_choice(chosen))


def _is_chosen_since(view: View) -> bool:
    held = view.compaction
    after = takewhile(lambda entry: entry != held, reversed(view.entries))
    return bool(session_model(tuple(after)))


def _read(values: str) -> str | None:
    try:
        return msgspec.json.decode(values, type=_Values).model
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
