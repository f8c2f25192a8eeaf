"""The events of a run as the server-sent events of the API.

Every item is added, filled and done in this order, and `done` events hold what the log has. When a
provider's reply breaks and is asked for again, its pieces are void: `recollect:retrying` says so,
and the item's `done` event has the true text. The last event is that of the response's end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from recollect.agent.exchange import ReplyFinished, ReplyStarted
from recollect.agent.tool_calls import ToolFinished
from recollect.codecs.wire_protocol import Delta
from recollect.entries import Message, ToolCall, ToolResult
from recollect.models.model_protocol import Retrying
from recollect.server.http.problem_details import json_bytes
from recollect.server.prompt_queue import ApprovalRequested, ServerEvent
from recollect.server.responses.api_error import ApiError
from recollect.server.responses.item_ids import call_id, item_id
from recollect.server.responses.output_items import (
    TOOL_CALL,
    Item,
    function_call_item,
    message_item,
    output_text,
    reasoning_item,
    reply_items,
    tool_call_item,
)

_TYPES = {"text": "message", "thought": "reasoning"}
_ENDS = {"completed": "response.completed", "failed": "response.failed"}
DONE = b"data: [DONE]\n\n"


def encode_event(event: Item) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json_bytes(event))


class _OpenItem(msgspec.Struct):
    """An item that is being streamed."""

    type: str
    id: str
    index: int  # in the response's output
    name: str = ""
    call: str = ""
    text: list[str] = []
    is_open: bool = True

    def item(self, status: str = "completed") -> Item:
        text = "".join(self.text)
        if self.type == "message":
            return message_item(self.id, text, status, empty=status == "in_progress")
        if self.type == "reasoning":
            return reasoning_item(self.id, text)
        if self.type == TOOL_CALL:
            return tool_call_item(self.id, self.name, text, None, status)
        return function_call_item(self.id, self.call, self.name, text, status)


class ResponseEvents:
    """Makes the events of one response, in order and numbered."""

    def __init__(self, client_tools: frozenset[str]) -> None:
        self._client_tools = client_tools
        self.run = ""  # its id, for approvals
        self._number = 0
        self._items = 0  # of the response, so far
        self._entry = ""
        self._streamed: list[_OpenItem] = []  # of the reply in progress
        self._calls = 0
        self._running: dict[str, _OpenItem] = {}  # by call id, tools of the server

    def state(self, name: str, response: Item) -> Item:
        return self._event(f"response.{name}", response=response)

    def end(self, response: Item) -> Iterator[Item]:
        """The last events, whatever is still open."""
        for item in (*self._streamed, *self._running.values()):
            if item.is_open:
                yield from self._close(item, item.item("incomplete"))
        yield self._event(_ENDS.get(response["status"], "response.incomplete"), response=response)

    def error(self, error: ApiError) -> Item:
        told = {"code": error.code, "message": str(error), "param": error.param}
        return self._event("error", error=error.payload, **told)

    def take(self, event: ServerEvent) -> Iterator[Item]:
        match event:
            case Delta():
                yield from self._delta(event)
            case ReplyStarted():
                self._entry, self._streamed, self._calls = event.entry, [], 0
            case ReplyFinished():
                yield from self._finish_reply(event.message)
            case ToolFinished():
                yield from self._finish_tool(event.call, event.result)
            case Retrying(shown=True):
                for item in self._streamed:
                    item.text = []
                yield self._event("recollect:retrying", reason=event.reason)
            case ApprovalRequested():
                yield self._approval(event)
            case _:
                pass

    def _approval(self, event: ApprovalRequested) -> Item:
        return self._event(
            "recollect:approval_requested",
            run_id=self.run,
            approval_id=event.id,
            name=event.request.call.name,
            arguments=event.request.call.arguments,
            reason=event.request.reason,
            normal_form=event.request.normal_form or None,
            expires_at=event.expires // 1000,
        )

    def _event(self, type_: str, **fields: Any) -> Item:
        self._number += 1
        return {"type": type_, "sequence_number": self._number - 1, **fields}

    # --- pieces ----------------------------------------------------------------------------------

    def _delta(self, delta: Delta) -> Iterator[Item]:
        current = self._streamed[-1] if self._streamed and self._streamed[-1].is_open else None
        if delta.kind == "call":
            if delta.name or current is None:
                yield from self._open_call(delta.name)
            current = self._streamed[-1]
        elif current is None or current.type != _TYPES[delta.kind]:
            yield from self._open(_TYPES[delta.kind])
            current = self._streamed[-1]
        if delta.text:
            current.text.append(delta.text)
            yield from self._piece(current, delta.text)

    def _open_call(self, name: str) -> Iterator[Item]:
        type_ = "function_call" if name in self._client_tools else TOOL_CALL
        yield from self._open(type_, name, call_id(self._entry, self._calls))
        self._calls += 1

    def _open(self, type_: str, name: str = "", call: str = "") -> Iterator[Item]:
        if self._streamed and self._streamed[-1].type != TOOL_CALL:  # those end with their tool
            last = self._streamed[-1]
            if last.is_open:
                yield from self._close(last, last.item())
        id_ = item_id(type_, self._entry, len(self._streamed))
        opened = _OpenItem(type_, id_, self._items, name, call, [])
        self._items += 1
        self._streamed.append(opened)
        item = opened.item("in_progress")
        yield self._event("response.output_item.added", output_index=opened.index, item=item)
        if type_ == "message":
            yield self._part("response.content_part.added", opened, "content", output_text(""))
        elif type_ == "reasoning":
            part = {"type": "summary_text", "text": ""}
            yield self._part("response.reasoning_summary_part.added", opened, "summary", part)

    def _part(self, type_: str, opened: _OpenItem, kind: str, part: Item) -> Item:
        return self._event(type_, **_place(opened, kind), part=part)

    def _piece(self, opened: _OpenItem, text: str) -> Iterator[Item]:
        match opened.type:
            case "message":
                place = _place(opened, "content")
                yield self._event("response.output_text.delta", **place, delta=text, logprobs=[])
            case "reasoning":
                place = _place(opened, "summary")
                yield self._event("response.reasoning_summary_text.delta", **place, delta=text)
            case "function_call":
                place = _place(opened)
                yield self._event("response.function_call_arguments.delta", **place, delta=text)

    def _close(self, opened: _OpenItem, item: Item) -> Iterator[Item]:
        """The events that end an item; `item` is as it will be returned later."""
        opened.is_open = False
        match opened.type:
            case "message":
                place, part = _place(opened, "content"), output_text(_text(item))
                text = part["text"]
                yield self._event("response.output_text.done", **place, text=text, logprobs=[])
                yield self._event("response.content_part.done", **place, part=part)
            case "reasoning":
                place = _place(opened, "summary")
                part = {"type": "summary_text", "text": "".join(s["text"] for s in item["summary"])}
                text = part["text"]
                yield self._event("response.reasoning_summary_text.done", **place, text=text)
                yield self._event("response.reasoning_summary_part.done", **place, part=part)
            case "function_call":
                yield self._event(
                    "response.function_call_arguments.done",
                    **_place(opened),
                    name=item["name"],
                    arguments=item["arguments"],
                )
        yield self._event("response.output_item.done", output_index=opened.index, item=item)

    # --- ends ------------------------------------------------------------------------------------

    def _finish_reply(self, message: Message) -> Iterator[Item]:
        """Close what was streamed with what was stored, and add what was not streamed."""
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        answered = {
            call.id: ToolResult(call_id=call.id, name=call.name)
            for call in calls
            if call.name not in self._client_tools
        }
        items = [shown.item for shown in reply_items(self._entry, message, answered)]
        for position, item in enumerate(items):
            if position >= len(self._streamed):
                yield from self._add(item)
            opened = self._streamed[position]
            if opened.type == TOOL_CALL:
                continue
            if opened.is_open:
                yield from self._close(
                    opened, item if item["type"] == opened.type else opened.item()
                )
        running = [opened for opened in self._streamed if opened.type == TOOL_CALL]
        own = [call for call in calls if call.id in answered]
        self._running = {call.id: each for call, each in zip(own, running, strict=False)}

    def _add(self, item: Item) -> Iterator[Item]:
        type_ = item["type"]
        if type_ in ("function_call", TOOL_CALL):
            yield from self._open_call(item["name"])
            text = item["arguments"]
        else:
            yield from self._open(type_)
            text = _text(item) if type_ == "message" else item["summary"][0]["text"]
        opened = self._streamed[-1]
        opened.text = [text]
        yield from self._piece(opened, text)

    def _finish_tool(self, call: ToolCall, result: ToolResult) -> Iterator[Item]:
        opened = self._running.pop(call.id, None)
        if opened is not None:
            item = tool_call_item(opened.id, call.name, call.arguments, result)
            yield from self._close(opened, item)


def _place(opened: _OpenItem, kind: str = "") -> Item:
    place: Item = {"item_id": opened.id, "output_index": opened.index}
    return place | {f"{kind}_index": 0} if kind else place


def _text(item: Item) -> str:
    return "".join(part["text"] for part in item["content"])
