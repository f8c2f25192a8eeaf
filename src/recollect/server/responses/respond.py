"""Runs a response: resolves what it continues, queues its prompt in the hub, and reads its end.

Continuing from the newest response of a session appends to it; from an older one, or beside another
writer, the response goes on in a fork, which shares everything before it. A response that is not to
be stored runs in a scratch session. A client that hangs up stops its response.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from recollect.codecs.wire_protocol import Declaration
from recollect.entries import Body, Entry, Message, Text
from recollect.errors import RecollectError
from recollect.runtime.prompt_run import RunOptions, RunResult, RunStarted
from recollect.server.access import Identity
from recollect.server.prompt_queue import PromptRun, RunFailed
from recollect.server.responses.api_error import ApiError, api_error, invalid
from recollect.server.responses.conversation_items import find_conversation
from recollect.server.responses.create_body import (
    CreateBody,
    declared_tools,
    read_generation,
    read_tool_choice,
)
from recollect.server.responses.input_items import first_words, read_input
from recollect.server.responses.item_ids import RESPONSE
from recollect.server.responses.output_items import Item
from recollect.server.responses.response_events import DONE, ResponseEvents, encode_event
from recollect.server.responses.response_object import (
    IN_PROGRESS,
    ResponseState,
    describe_response,
)
from recollect.server.responses.response_record import (
    RecordedResponse,
    cut_response,
    find_response,
    response_entry,
)
from recollect.server.session_hub import SessionHub
from recollect.session import Session
from recollect.store.contract import SessionInfo
from recollect.store.ids import new_id, now
from recollect.text import one_line
from recollect.view.view import View

OWN_MODEL, OWN_AGENT = "recollect", "recollect-agent"
TITLE_LENGTH = 60


class StartedResponse(msgspec.Struct, frozen=True):
    """A response whose run was accepted."""

    entry: Entry
    run: PromptRun
    client_tools: tuple[Declaration, ...]

    @property
    def id(self) -> str:
        return f"{RESPONSE}{self.entry.id}"

    def begun(self) -> RecordedResponse:
        """The response before anything came of it."""
        found = cut_response(self.entry, (), self.run.session)
        assert found is not None
        return found


class Responder:
    """Begins responses, and follows those that are in progress on this server."""

    def __init__(self, hub: SessionHub) -> None:
        self.hub = hub
        self.active: dict[str, StartedResponse] = {}  # by id

    async def start(self, who: Identity, raw: dict[str, Any], body: CreateBody) -> StartedResponse:
        who.require("chat")
        options = self._options(body)
        await self.hub.runtime.check_model(options)
        previous = None
        if body.previous_response_id is not None:
            given = body.previous_response_id
            previous = await find_response(self.hub.store, who, given, "previous_response_id")
        messages = await read_input(self.hub.store, who, body.input)
        if options.kind == "agent" and body.instructions:
            said = Message(role="system", parts=(Text(text=body.instructions),))
            messages = (said, *messages)
        end = previous.end if previous is not None else None
        entry = response_entry(new_id(), end, now(), raw, len(messages))
        run = await self._queue(who, body, previous, (entry, *messages), options)
        started = StartedResponse(entry, run, options.client_tools)
        self.active[started.id] = started
        return started

    def _options(self, body: CreateBody) -> RunOptions:
        name, agent = body.model or OWN_MODEL, False
        if name == OWN_AGENT or name.startswith(f"{OWN_AGENT}/"):
            name, agent = name.removeprefix(OWN_AGENT).removeprefix("/"), True
        if agent and not body.is_stored:
            why = "recollect-agent changes files, so its sessions are stored; leave out 'store'"
            raise invalid(why, "store")
        tools = declared_tools(body)
        return RunOptions(
            model="" if name == OWN_MODEL else name,
            kind="agent" if agent else "client",
            system="" if agent else body.instructions or "",
            generation=read_generation(body),
            client_tools=tools,
            tool_choice=read_tool_choice(body, tools),
            reduces=body.truncation != "disabled",
        )

    async def _queue(
        self,
        who: Identity,
        body: CreateBody,
        previous: RecordedResponse | None,
        prompt: tuple[Body | Entry, ...],
        options: RunOptions,
    ) -> PromptRun:
        if not body.is_stored:
            scratch = await self.scratch(previous)
            return await self.hub.prompt_scratch(who, scratch, prompt, options)
        info = await self._session(who, body, previous, prompt)
        return await self.hub.prompt(who, info, prompt, options, can_approve=body.can_approve)

    async def _session(
        self,
        who: Identity,
        body: CreateBody,
        previous: RecordedResponse | None,
        prompt: tuple[Body | Entry, ...],
    ) -> SessionInfo:
        """Where the response is appended."""
        hub = self.hub
        if body.conversation_id is not None:
            return await find_conversation(hub, who, body.conversation_id, "conversation")
        if previous is None:
            messages = [item for item in prompt if isinstance(item, Message)]
            return await hub.create(who, one_line(first_words(messages), TITLE_LENGTH))
        info = await hub.find_writable(who, previous.session)
        if info.head != previous.end or hub.runs_of(info.id):
            return await hub.store.fork(info.id, at=previous.end)
        return info

    async def scratch(self, previous: RecordedResponse | None) -> Session:
        """A session that stores nothing, over the one of a response."""
        if previous is None:
            return Session(self.hub.store, new_id(), View.fold()).scratch()
        return (await self.hub.runtime.session(previous.session)).scratch()

    # --- its end ---------------------------------------------------------------------------------

    async def finish(self, started: StartedResponse) -> Item:
        """Wait for the end; raises `ApiError` if there is no reply."""
        end = await started.run.wait()
        self.active.pop(started.id, None)
        if isinstance(end, RunFailed):
            raise _failure(end)
        return describe_response(_recorded(started, end))

    async def follow(self, started: StartedResponse) -> AsyncIterator[bytes]:
        """Every event of the response, as bytes to send."""
        tools = frozenset(tool.name for tool in started.client_tools)
        events = ResponseEvents(tools, started.run.id)
        begun = False
        try:
            async for event in started.run.events():
                if not begun and not isinstance(event, RunStarted):  # its entry is stored now
                    first = describe_response(started.begun(), IN_PROGRESS)
                    yield encode_event(events.state("created", first))
                    yield encode_event(events.state("in_progress", first))
                    begun = True
                for each in events.take(event):
                    yield encode_event(each)
                if isinstance(event, RunResult):
                    response = describe_response(_recorded(started, event))
                    yield b"".join(map(encode_event, events.end(response)))
                elif isinstance(event, RunFailed):
                    yield b"".join(map(encode_event, await self._fail(events, started, event)))
            yield DONE
        finally:
            self.active.pop(started.id, None)
            started.run.cancel()  # the client hung up; nothing if it has ended

    async def _fail(
        self, events: ResponseEvents, started: StartedResponse, failed: RunFailed
    ) -> list[Item]:
        error = _failure(failed)
        recorded = started.begun()
        state = ResponseState("failed", error={"code": error.code or "", "message": str(error)})
        if failed.cancelled:
            state = ResponseState("cancelled", incomplete={"reason": "interrupted"})
            return list(events.end(describe_response(recorded, state)))
        return [events.error(error), *events.end(describe_response(recorded, state))]


def _failure(failed: RunFailed) -> ApiError:
    if failed.cancelled:
        return ApiError("the response was cancelled", status=499, code="cancelled")
    if isinstance(failed.error, RecollectError):
        return api_error(failed.error)
    return ApiError(failed.message, status=500, type="server_error", code="server_error")


def _recorded(started: StartedResponse, result: RunResult) -> RecordedResponse:
    """The response as the session's handle has it; nothing is read from the store."""
    view = result.session.view()
    position = view.log.position(started.entry.id, view.n)
    after = view.entries[position + 1 :] if position is not None else ()
    found = cut_response(started.entry, after, result.session.id)
    assert found is not None
    return found
