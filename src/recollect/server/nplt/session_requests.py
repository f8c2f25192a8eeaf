"""What a client asks about sessions, answered in words and as fields.

Every connection is in a session of its own. A new one gets its id at once and is stored with its
first message or its first name, so that a connection that says nothing leaves nothing; the
connection that is in it lists it from the beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from recollect.errors import AmbiguousId, BadInput, RecollectError, ServerBusy
from recollect.runtime.prompt_run import RunOptions
from recollect.runtime.runtime import TITLE_LENGTH
from recollect.server.access import LOCAL_USER, Identity
from recollect.server.downloads import DownloadOffers
from recollect.server.nplt.client_json import (
    CreateRequest,
    HistoryRequest,
    ListRequest,
    ModelSwitch,
    NamedSession,
    RenameRequest,
    read_json,
)
from recollect.server.nplt.frame_writer import encode_json
from recollect.server.nplt.frames import MAX_PAYLOAD
from recollect.server.nplt.history_index import HistoryIndex
from recollect.server.nplt.history_pages import MAX_LIMIT, json_page, text_page
from recollect.server.nplt.message_types import MessageType
from recollect.server.nplt.nplt_limits import NpltLimits
from recollect.server.nplt.server_texts import ServerTexts
from recollect.server.session_hub import SessionHub
from recollect.store.contract import SessionInfo
from recollect.store.ids import new_id, normalize_id
from recollect.text import one_line
from recollect.transcripts.find_session import refuse_trashed
from recollect.transcripts.session_export import export_session

MAX_OFFSET = 10_000  # sessions
LIST_ROOM = MAX_PAYLOAD - 512
SHORT_ID_SECONDS = 2.0
MIN_PREFIX = 4  # digits of an id
EXPORT_FORMAT = "history-server"


class RequestReply(msgspec.Struct, frozen=True):
    """An answer to a request: words for every client, fields for one that asked for them."""

    text: str
    fields: dict[str, object] = {}
    offer: dict[str, object] | None = None  # a download


class SessionRequests:
    """The session of one connection, and the requests about it and others."""

    def __init__(
        self,
        hub: SessionHub,
        history: HistoryIndex,
        downloads: DownloadOffers,
        texts: ServerTexts,
        limits: NpltLimits,
    ) -> None:
        self._hub, self._history, self._downloads = hub, history, downloads
        self._texts, self._limits = texts, limits
        self.who: Identity = LOCAL_USER
        self.model = ""
        self.id, self._stored, self._created = new_id(), False, 0
        self._handlers: dict[int, Callable[[bytes], Awaitable[RequestReply]]] = {
            MessageType.HISTORY_REQUEST: self._read_history,
            MessageType.CLEAR_REQUEST: self._clear,
            MessageType.SESSION_LIST: self._list,
            MessageType.SESSION_SWITCH: self._switch,
            MessageType.SESSION_NEW: self._new,
            MessageType.SESSION_DELETE: self._delete,
            MessageType.SESSION_RENAME: self._rename,
            MessageType.MODEL_SWITCH: self._switch_model,
            MessageType.CLIENT_UDP_PORT: self._ignore_port,
        }

    async def answer(self, type_: int, payload: bytes) -> RequestReply:
        return await self._handlers[type_](payload)

    def enter(self, session: str, *, stored: bool) -> None:
        self.id, self._stored = session, stored

    def begin_new(self) -> None:
        self.enter(new_id(), stored=False)

    async def store_session(self, prompt: str) -> SessionInfo:
        """The session of this connection, ready for a message; stored with the first."""
        if self._stored:
            return await self._hub.find_writable(self.who, self.id)
        return await self._create(one_line(prompt, TITLE_LENGTH))

    async def short_id(self, session: str | None = None) -> str:
        session = session or self.id
        try:
            async with asyncio.timeout(SHORT_ID_SECONDS):  # a client waits for its welcome
                return (await self._hub.store.short_session_ids([session]))[session]
        except (RecollectError, TimeoutError):  # the store is away; the end of an id finds it
            return session[-8:]

    async def _create(self, title: str) -> SessionInfo:
        if self._created >= self._limits.new_sessions:
            raise ServerBusy(
                f"this connection has made {self._created} sessions, which is the limit",
                "use one of them, or connect again",
            )
        info = await self._hub.create(self.who, title, id=self.id)
        self._created += 1
        self._stored = True
        return info

    async def _find(self, given: str, *, to_read: bool = False) -> SessionInfo | None:
        """The session that a client means, to change it or `to_read`; None for its own, not stored
        one."""
        wanted = normalize_id(given)
        if len(wanted) < MIN_PREFIX:
            raise BadInput(f"{given[:40]!r} is too short for a session; give {MIN_PREFIX} digits")
        own = not self._stored and (self.id.startswith(wanted) or self.id.endswith(wanted))
        if not own and to_read:
            found = await self._hub.find(self.who, given)
            return await refuse_trashed(self._hub.store, found)
        if not own:
            return await self._hub.find_writable(self.who, given)
        if wanted != self.id:
            try:
                other = await self._hub.find(self.who, given)
            except AmbiguousId:
                raise
            except RecollectError:
                return None
            raise AmbiguousId(given, [self.id, other.id], ["", other.title])
        return None

    # --- requests --------------------------------------------------------------------------------

    async def _list(self, payload: bytes) -> RequestReply:
        asked = read_json(payload, ListRequest)
        offset, limit = _bounded(asked.offset, 0, MAX_OFFSET), _bounded(asked.limit, 1, MAX_LIMIT)
        own = not self._stored and self.who.may("chat")
        found = await self._hub.sessions(self.who, limit=offset + limit + 1)
        infos = ([SessionInfo(self.id, "", None, 0, 0, 0)] if own else []) + list(found)
        shown = infos[offset : offset + limit]
        short = await self._hub.store.short_session_ids([info.id for info in shown])
        rows = [self._row(info, short[info.id]) for info in shown]
        lines = [self._line(row) for row in rows]
        fitting = _count_fitting(rows, lines)
        fields: dict[str, object] = {"sessions": rows[:fitting], "offset": offset}
        text = [f"=== {self._texts.sessions} ===", *lines[:fitting]]
        if offset + fitting < len(infos):
            fields["next_offset"] = offset + fitting
            text.append(self._texts.more_sessions.format(offset=offset + fitting))
        return RequestReply("\n".join(text) if rows else self._texts.no_sessions, fields)

    def _row(self, info: SessionInfo, short: str) -> dict[str, object]:
        return {
            "session_id": info.id,
            "short_id": short,
            "name": one_line(info.title, 200),
            "entries": info.entries,
            "created": info.created or None,
            "used": info.used or None,
            "current": info.id == self.id,
        }

    def _line(self, row: dict[str, object]) -> str:
        used, texts = row["used"], self._texts
        when = "-"
        if isinstance(used, int):
            when = datetime.fromtimestamp(used / 1_000, UTC).strftime("%Y-%m-%d %H:%M")
        count = texts.entries.format(count=row["entries"]) if row["entries"] else texts.empty
        mark = "*" if row["current"] else " "
        return f"{mark} {row['short_id']}  {row['name'] or texts.untitled}  ({count}, {when})"

    async def _switch(self, payload: bytes) -> RequestReply:
        found = await self._find(read_json(payload, NamedSession).session_id, to_read=True)
        if found is not None:
            self.enter(found.id, stored=True)
        return await self._describe(self._texts.switched, found)

    async def _new(self, payload: bytes) -> RequestReply:
        self.who.require("chat")
        name = one_line(read_json(payload, CreateRequest).name, 200)
        self.begin_new()
        return await self._describe(self._texts.created, await self._create(name) if name else None)

    async def _clear(self, _payload: bytes) -> RequestReply:
        self.who.require("chat")
        old, was_stored = await self.short_id(), self._stored
        self.begin_new()
        text = self._texts.cleared.replace("{old}", old) if was_stored else self._texts.created
        return await self._describe(text, None)

    async def _rename(self, payload: bytes) -> RequestReply:
        self.who.require("chat")
        asked = read_json(payload, RenameRequest)
        name = one_line(asked.name, 200)
        if not name:
            raise BadInput("the name is empty; give one")
        found = await self._find(asked.session_id or self.id)
        if found is None:
            info = await self._create(name)
        else:
            info = await self._hub.store.rename(found.id, name)
        return await self._describe(self._texts.renamed, info)

    async def _delete(self, payload: bytes) -> RequestReply:
        self.who.require("chat")
        found = await self._find(read_json(payload, NamedSession).session_id)
        session = self.id if found is None else found.id
        if self._hub.runs_of(session):
            raise BadInput("an answer is being written in this session; cancel it, or wait for it")
        short = await self.short_id(session)
        if found is not None:
            await self._hub.store.trash(session)
        fields: dict[str, object] = {"deleted": session}
        if session != self.id:
            return RequestReply(self._texts.deleted.format(id=short), fields)
        self.begin_new()
        new = await self.short_id()
        fields |= {"session_id": self.id, "short_id": new}
        return RequestReply(self._texts.deleted_current.format(id=short, new=new), fields)

    async def _describe(self, text: str, info: SessionInfo | None) -> RequestReply:
        """A reply about a session; about the one that is not stored yet if there is none."""
        session, name = (self.id, "") if info is None else (info.id, one_line(info.title, 200))
        short = await self.short_id(session)
        shown = text.format(id=short, name=name or self._texts.untitled)
        return RequestReply(shown, {"session_id": session, "short_id": short, "name": name})

    async def _switch_model(self, payload: bytes) -> RequestReply:
        self.who.require("chat")
        model = read_json(payload, ModelSwitch).model.strip()
        if not model or len(model) > 200:
            raise BadInput("a model's name has 1 to 200 characters; `recollect models` lists them")
        await self._hub.runtime.check_model(RunOptions(model=model))
        self.model = model
        return RequestReply(self._texts.model.format(model=model), {"model": model})

    async def _ignore_port(self, _payload: bytes) -> RequestReply:
        return RequestReply(self._texts.udp, {"used": False})

    # --- history ---------------------------------------------------------------------------------

    async def _read_history(self, payload: bytes) -> RequestReply:
        asked = read_json(payload, HistoryRequest)
        self.who.require("read")
        if asked.format == "file":
            return await self._offer_history()
        if asked.format not in ("json", "text"):
            raise BadInput(f"the format {asked.format[:40]!r} is unknown; use json, text or file")
        offset, limit = max(0, asked.offset), _bounded(asked.limit, 1, MAX_LIMIT)
        count, records = 0, list[dict[str, Any]]()
        if self._stored:
            await self._hub.find(self.who, self.id)
            count, records = await self._history.records(
                self.id, offset=offset, limit=limit, count=asked.message_count
            )
        if asked.format == "text":
            return RequestReply(text_page(count, offset, records).payload.decode())
        page = json_page(self.id, count, offset, records)
        return RequestReply(page.payload.decode(), msgspec.json.decode(page.payload))

    async def _offer_history(self) -> RequestReply:
        if not self._downloads.url:
            raise BadInput("this server offers no downloads; ask for pages instead")
        if not self._stored:
            raise BadInput("this session has no messages yet")
        await self._hub.find(self.who, self.id)
        name, data = await export_session(self._hub.store, self.id, EXPORT_FORMAT)
        offer = self._downloads.document(self._downloads.register(name, data))
        return RequestReply(f"{name}: {offer['url']}", offer, offer)


def _bounded(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def _count_fitting(rows: list[dict[str, object]], lines: list[str]) -> int:
    """How many rows fit a frame, as words and as fields."""
    used = 0
    for number, (row, line) in enumerate(zip(rows, lines, strict=True)):
        used += max(len(encode_json(row)), len(line.encode("utf-8", "replace"))) + 1
        if used > LIST_ROOM:
            return number
    return len(rows)
