"""How a session and its subagents' sessions name each other, in a note's `extra`."""

from __future__ import annotations

import json
from typing import Literal

import msgspec

from recollect.entries import Body, Note
from recollect.store.ids import is_id

NAME = "claude-code"  # the format whose import wrote the note
OURS = "recollect"  # the note is of a sub-agent that we ran
PARENT, SUBAGENT = "parent", "subagent"  # the session at the other end
_MAX_EXTRA = 2_000  # characters; a longer `extra` is not read


class SessionLink(msgspec.Struct, frozen=True):
    """The session at the other end: the caller's, or the sub-agent's."""

    to: Literal["parent", "subagent"]
    session: str
    call: str = ""


def read_link(body: Body) -> SessionLink | None:
    """The link in a note, whether we ran the sub-agent or imported it."""
    if not isinstance(body, Note) or not 0 < len(body.extra) <= _MAX_EXTRA:
        return None
    try:
        extra = json.loads(body.extra)
    except (ValueError, RecursionError):
        return None
    for key in (OURS, NAME):
        link = extra.get(key) if isinstance(extra, dict) else None
        if isinstance(link, dict):
            call = link.get("call")
            call = call if isinstance(call, str) else ""
            if session := _valid_id(link.get(PARENT)):
                return SessionLink("parent", session, call)
            if session := _valid_id(link.get(SUBAGENT)):
                return SessionLink("subagent", session, call)
    return None


def _valid_id(value: object) -> str:
    return value if isinstance(value, str) and is_id(value) else ""
