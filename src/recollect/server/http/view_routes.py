"""What a model sees of a session, over HTTP: the view, its explanation, past requests, edits."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.compaction.proposal import Proposal
from recollect.entries import Entry, Message, entry_to_json
from recollect.errors import BadInput, CannotEdit
from recollect.explanation import Explanation
from recollect.models.resolve import ResolvedModel
from recollect.runtime.model_choice import next_model, writes_snapshots
from recollect.runtime.prompt_run import RunOptions
from recollect.runtime.request_replay import Replay, load_next, load_replay
from recollect.runtime.runtime import Runtime
from recollect.server.http.api_call import ApiCall, ApiReply, NoBody, NoQuery, tag_of
from recollect.server.http.api_values import (
    CompactionDocument,
    CompactionRequest,
    EditRequest,
    EditResult,
    ExplainQuery,
    RequestDocument,
    RequestPreview,
    RequestQuery,
    ViewDocument,
    ViewEntry,
    ViewQuery,
)
from recollect.session import Session
from recollect.store.contract import SessionInfo
from recollect.tokens import counter_for
from recollect.view.omissions import find_omissions
from recollect.view.view import View, ViewItem
from recollect.view_loader import fold_stored, read_needed_entries


async def get_view(call: ApiCall[ViewQuery, NoBody]) -> ApiReply[ViewDocument]:
    """Show what a model sees, message by message with tokens, and everything that is left out."""
    info, query = await call.session(), call.query
    tag, at = call.unless_known(tag_of(info)), info.head
    if query.at:
        at = await call.entry_id(info, query.at)
    view, model = await _load(call.hub.runtime, info, at, query.model)
    document = ViewDocument(
        session=info.id,
        head=at,
        model=model.name,
        exact=view.log.counter.exact,
        tokens=view.tokens,
        items=tuple(map(_item_document, view.items)),
        left_out=find_omissions(view),
        problems=view.problems,
    )
    return ApiReply(document, tag=tag)


async def _load(
    runtime: Runtime, info: SessionInfo, at: str | None, named: str
) -> tuple[View, ResolvedModel]:
    """The view at an entry, counted for the model that is named, else for the next request's."""
    store = runtime.store
    entries = await read_needed_entries(store, info.id, at=at) if at is not None else ()
    model = next_model(runtime.settings, entries, named)
    return await fold_stored(store, entries, counter_for(model.name), runtime.curation), model


async def _open(runtime: Runtime, info: SessionInfo, named: str) -> tuple[Session, ResolvedModel]:
    view, model = await _load(runtime, info, info.head, named)
    return Session(runtime.store, info.id, view, runtime.door.warn), model


def _item_document(item: ViewItem) -> ViewEntry:
    return ViewEntry(
        entry=item.entry.id,
        time=item.entry.time,
        place=item.place,
        role=item.message.role,
        tokens=item.tokens,
        pinned=item.pinned,
        rules=tuple(cut.rule for cut in item.cuts),
        message=_message_document(item.message),
    )


def _message_document(message: Message) -> dict[str, Any]:
    body: dict[str, Any] = entry_to_json(Entry("", None, 0, message))["body"]
    return body


async def get_explanation(call: ApiCall[ExplainQuery, NoBody]) -> ApiReply[Explanation]:
    """Explain what a model sees and what not: by which rule, why, since when, how it comes back."""
    info = await call.session()
    tag = call.unless_known(tag_of(info))
    session, _ = await _open(call.hub.runtime, info, call.query.model)
    return ApiReply(await session.explain(), tag=tag)


async def get_request(call: ApiCall[RequestQuery, NoBody]) -> ApiReply[RequestDocument]:
    """Encode the request of any past moment again: a request's own, or the one after a message."""
    info, query, runtime = await call.session(), call.query, call.hub.runtime
    _, at = await call.hub.store.entry(call.path("entry"), session=info.id)
    replay = await load_replay(runtime, info, at, query.to or None, query.model or None)
    return ApiReply(_request_document(runtime, info.id, replay, at.id))


async def preview_request(call: ApiCall[NoQuery, RequestPreview]) -> ApiReply[RequestDocument]:
    """Encode the request that would be sent next; nothing is stored, sent or called.

    With a `prompt` it needs the right to chat: files that the prompt mentions are in the request.
    """
    info, body, hub = await call.session(), call.body, call.hub
    call.check_expected(info)
    if body.prompt:
        call.who.require("chat")
    options = RunOptions(model=body.model or hub.model, kind=body.kind, system=body.system)
    replay = await load_next(hub.quiet, info, body.prompt, body.to or None, options)
    return ApiReply(_request_document(hub.runtime, info.id, replay, None), tag=tag_of(info))


def _request_document(
    runtime: Runtime, session: str, replay: Replay, entry: str | None
) -> RequestDocument:
    past = replay.past
    encoded, _ = runtime.encode(past.view, past.model, past.options, text_tools=past.text_tools)
    return RequestDocument(
        session=session,
        entry=entry,
        model=past.model.name,
        format=past.model.endpoint.wire,
        verdict=replay.judge(encoded),
        sha256=encoded.digest,
        body=msgspec.Raw(encoded.body),
    )


# --- edits ---------------------------------------------------------------------------------------


async def edit_view(call: ApiCall[NoQuery, EditRequest]) -> ApiReply[EditResult]:
    """Pin, drop or restore messages, all of them or none; nothing is deleted."""
    info, body = await call.writable(), call.body
    if not (body.pin or body.drop or body.restore):
        raise BadInput("no entry is named; give `pin`, `drop` or `restore`")
    session, _ = await _open(call.hub.runtime, info, "")
    before = session.view().tokens
    if call.header("if-match"):
        planned = await session.scratch().edit(pin=body.pin, drop=body.drop, restore=body.restore)
        with call.expecting():
            edits = await session.append(*(one.body for one in planned), on_conflict="raise")
    else:
        edits = await session.edit(pin=body.pin, drop=body.drop, restore=body.restore)
    return _edit_reply(session, edits, before)


def _edit_reply(session: Session, edits: tuple[Entry, ...], before: int) -> ApiReply[EditResult]:
    view = session.view()
    result = EditResult(
        session=session.id,
        head=view.head,
        edits=tuple(map(entry_to_json, edits)),
        tokens_before=before,
        tokens_after=view.tokens,
    )
    return ApiReply(result, tag=f'"{view.head}"')


async def compact_session(
    call: ApiCall[NoQuery, CompactionRequest],
) -> ApiReply[CompactionDocument]:
    """Replace older messages with a snapshot, or show what that would be; it can be undone."""
    body, runtime = call.body, call.hub.runtime
    info = await (call.session() if body.preview else call.writable())
    session, model = await _open(runtime, info, body.model)
    by_model = body.use_model and writes_snapshots(model, named=bool(body.model))
    with call.expecting():
        proposal = await runtime.compact(
            session,
            model,
            target=body.budget,
            instructions=body.instructions,
            use_model=by_model,
            preview=body.preview,
        )
    if not proposal.succeeded:
        raise CannotEdit("compact", info.id, proposal.compaction.reason)
    entry = None if body.preview else session.view().compaction
    return ApiReply(_compaction_document(info.id, proposal, entry), tag=_head_tag(session, entry))


def _head_tag(session: Session, entry: Entry | None) -> str:
    return f'"{session.view().head}"' if entry is not None else ""


def _compaction_document(
    session: str, proposal: Proposal, entry: Entry | None
) -> CompactionDocument:
    made = proposal.compaction
    return CompactionDocument(
        session=session,
        entry=entry.id if entry is not None else None,
        status=made.status,
        reason=made.reason,
        by_model=proposal.by_model,
        tokens_before=made.tokens_before,
        tokens_after=made.tokens_after,
        first_kept=made.first_kept,
        kept=made.kept,
        report=proposal.report,
        snapshot=made.snapshot,
    )


async def undo_compaction(call: ApiCall[NoQuery, NoBody]) -> ApiReply[EditResult]:
    """Undo the compaction in force."""
    session, _ = await _open(call.hub.runtime, await call.writable(), "")
    before = session.view().tokens
    return _edit_reply(session, await session.undo_compaction(), before)
