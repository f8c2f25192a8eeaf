"""Runs a response: resolves what it continues, queues its prompt in the hub, and reads its end.

Continuing from the newest response of a session appends to it; from an older one, or beside another
writer, the response goes on in a fork, which shares everything before it. A response that is not to
be stored runs in a scratch session. A client that hangs up stops its response.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from typing import Any

import msgspec

from recollect.entries import Body, Entry, Message, Text
from recollect.errors import RecollectError
from recollect.models.resolve import resolve_model
from recollect.runtime.prompt_run import RunOptions, RunResult, RunStarted
from recollect.server.access import Identity
from recollect.server.problem_kinds import client_sentence
from recollect.server.prompt_queue import PromptRun, RunFailed, ServerEvent
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


class PlannedResponse(msgspec.Struct, frozen=True):
    """A response that was checked, and of which nothing is stored yet."""

    who: Identity
    entry: Entry
    prompt: tuple[Body | Entry, ...]
    options: RunOptions
    previous: RecordedResponse | None
    conversation: SessionInfo | None
    is_stored: bool
    can_approve: bool

    @property
    def id(self) -> str:
        return f"{RESPONSE}{self.entry.id}"

    def begun(self) -> RecordedResponse:
        """The response before anything came of it."""
        session = self.conversation.id if self.conversation is not None else ""
        found = cut_response(self.entry, (), session)
        assert found is not None
        return found


class StartedResponse(msgspec.Struct, frozen=True):
    """A response whose run was accepted."""

    plan: PlannedResponse
    run: PromptRun


class Responder:
    """Begins responses, and follows those that are in progress on this server."""

    def __init__(self, hub: SessionHub) -> None:
        self.hub = hub
        self.active: dict[str, StartedResponse] = {}  # by id

    async def plan(self, who: Identity, raw: dict[str, Any], body: CreateBody) -> PlannedResponse:
        """Everything that a request refers to, looked up; raises where it cannot be answered."""
        self.hub.check_limits(who)
        options, store = self._options(body), self.hub.store
        await self._check_model(options)
        previous, conversation = None, None
        if (given := body.previous_response_id) is not None:
            previous = await find_response(store, who, given, "previous_response_id")
        if (given := body.conversation_id) is not None:
            conversation = await find_conversation(self.hub, who, given, "conversation")
        messages = await read_input(store, who, body.input)
        if options.kind == "agent" and body.instructions:
            said = Message(role="system", parts=(Text(text=body.instructions),))
            messages = (said, *messages)
        end = previous.end if previous is not None else None
        entry = response_entry(new_id(), end, now(), raw, len(messages))
        return PlannedResponse(
            who=who,
            entry=entry,
            prompt=(entry, *messages),
            options=options,
            previous=previous,
            conversation=conversation,
            is_stored=body.is_stored,
            can_approve=body.can_approve,
        )

    async def _check_model(self, options: RunOptions) -> None:
        """Raise if the model cannot be called."""
        if options.kind == "agent":
            await self.hub.runtime.check_model(options)
        else:
            resolve_model(options.model or self.hub.model, self.hub.runtime.settings)

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

    async def start(self, plan: PlannedResponse) -> StartedResponse:
        """Queue the prompt where it belongs."""
        if plan.is_stored:
            info = await self._session(plan)
            run = await self.hub.prompt(
                plan.who, info, plan.prompt, plan.options, can_approve=plan.can_approve
            )
        else:
            scratch = await self.scratch(plan.previous)
            run = await self.hub.prompt_scratch(plan.who, scratch, plan.prompt, plan.options)
        started = self.active[plan.id] = StartedResponse(plan, run)
        return started

    async def _session(self, plan: PlannedResponse) -> SessionInfo:
        """Where the response is appended."""
        hub, previous = self.hub, plan.previous
        if plan.conversation is not None:
            return plan.conversation
        if previous is None:
            messages = [item for item in plan.prompt if isinstance(item, Message)]
            return await hub.create(plan.who, one_line(first_words(messages), TITLE_LENGTH))
        info = await hub.find_writable(plan.who, previous.session)
        if info.head != previous.end or hub.runs_of(info.id):
            hub.check_new_session(plan.who)
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
        self.active.pop(started.plan.id, None)
        if isinstance(end, RunFailed):
            raise _failure(end)
        return describe_response(_recorded(started.plan, end))

    async def follow(self, plan: PlannedResponse) -> AsyncGenerator[bytes, None]:
        """Begin the response, and give every event of it as bytes to send. `created` says that it
        was accepted, `in_progress` that what was asked is on disk."""
        events = ResponseEvents(frozenset(tool.name for tool in plan.options.client_tools))
        first = describe_response(plan.begun(), IN_PROGRESS)
        yield encode_event(events.state("created", first))
        started, begun = None, False
        try:
            started = await self.start(plan)
            events.run = started.run.id
            async for batch in started.run.batches():
                found: list[Item] = []
                if not begun and not all(isinstance(event, RunStarted) for event in batch):
                    found.append(events.state("in_progress", first))
                    begun = True
                for event in batch:
                    found += self._events_of(events, plan, event)
                if found:
                    yield b"".join(map(encode_event, found))
        except RecollectError as error:  # it could not be queued
            failed = RunFailed(client_sentence(error), error=error)
            yield b"".join(map(encode_event, _fail(events, plan, failed)))
        finally:
            self.active.pop(plan.id, None)
            if started is not None:
                started.run.cancel()  # the client hung up; nothing if it has ended
        yield DONE

    def _events_of(
        self, events: ResponseEvents, plan: PlannedResponse, event: ServerEvent
    ) -> Iterable[Item]:
        if isinstance(event, RunResult):
            return events.end(describe_response(_recorded(plan, event)))
        if isinstance(event, RunFailed):
            return _fail(events, plan, event)
        return events.take(event)


def _fail(events: ResponseEvents, plan: PlannedResponse, failed: RunFailed) -> list[Item]:
    """The last events of a response without an end of its own."""
    error, recorded = _failure(failed), plan.begun()
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


def _recorded(plan: PlannedResponse, result: RunResult) -> RecordedResponse:
    """The response as the session's handle has it; nothing is read from the store."""
    view = result.session.view()
    position = view.log.position(plan.entry.id, view.n)
    after = view.entries[position + 1 :] if position is not None else ()
    found = cut_response(plan.entry, after, result.session.id)
    assert found is not None
    return found
