"""The items that a view shows: as they were given, but for what recollect left out.

An elided output keeps its call id and holds the placeholder, so every call keeps its answer. Calls
and outputs that lost each other (a crash, a compaction, a pin) are never sent as they are: the
Responses API and the Chat Completions API refuse both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from recollect.adapters.response_items import (
    CALLS,
    FUNCTION_CALL,
    OUTPUTS,
    REASONING,
    ItemSpan,
    plain_item,
    read_items,
    to_messages,
    write_content,
)
from recollect.codecs.call_pairing import INTERRUPTED
from recollect.entries import Content, Message, Part, Text, Thought, ToolCall, ToolResult
from recollect.transcripts.json_values import Json, object_or_empty, string_or_empty
from recollect.view.elision import ActiveElision, apply_elisions, results_as_text
from recollect.view.view import View, ViewItem

# outputs whose text can be replaced by a placeholder
_TEXT_OUTPUTS = OUTPUTS - {"computer_call_output", "shell_call_output"}
# calls that get an answer when theirs is missing; other calls are left out
_ANSWERED = frozenset({FUNCTION_CALL, "custom_tool_call"})


def show_items(view: View) -> list[Json]:
    """Every item of the view, in order."""
    return [shown for item in view.items for shown in _show(item)]


def _show(item: ViewItem) -> list[Json]:
    stored, shown = item.entry.body, item.message
    if not isinstance(stored, Message):  # a compaction's snapshot
        return [span.item for span in read_items(shown)]
    if shown.parts == stored.parts:
        return [span.item for span in read_items(stored)]
    if _has_results(stored) and not _has_results(shown):  # their calls are not shown
        return [span.item for span in read_items(msgspec.structs.replace(shown, extra=""))]
    found: list[Json] = []
    lost_thought = False
    for span in read_items(stored):
        each = _show_span(span, stored, item.cuts)
        if each is None:
            lost_thought = lost_thought or span.item.get("type") == REASONING
        else:
            # an item with an id is refused without the reasoning item that preceded it
            found.append({k: v for k, v in each.items() if k != "id"} if lost_thought else each)
    return found


def _has_results(message: Message) -> bool:
    return any(isinstance(part, ToolResult) for part in message.parts)


def _show_span(span: ItemSpan, stored: Message, cuts: Iterable[ActiveElision]) -> Json | None:
    own = [cut for each in cuts if (cut := _within(each, span)) is not None]
    parts = stored.parts[span.start : span.end]
    shown = apply_elisions(Message(role=stored.role, parts=parts), own).parts
    if shown == parts:
        return span.item
    return _replace(span.item, stored, shown) if shown else None


def _within(cut: ActiveElision, span: ItemSpan) -> ActiveElision | None:
    """The elision as it concerns these parts, with positions among them."""
    if not cut.what.parts:
        return cut
    own = tuple(at - span.start for at in cut.what.parts if span.start <= at < span.end)
    what = msgspec.structs.replace(cut.what, parts=own)
    return msgspec.structs.replace(cut, what=what) if own else None


def _replace(item: Json, stored: Message, shown: Sequence[Part]) -> Json:
    """The item with what the view shows of it."""
    kind, first = string_or_empty(item.get("type")), shown[0]
    if isinstance(first, ToolCall):
        if kind == FUNCTION_CALL:
            return item | {"arguments": first.arguments}
        return item | {"input": first.arguments} if kind == "custom_tool_call" else item
    if isinstance(first, ToolResult):
        return _replace_output(item, kind, first.content)
    contents = [part for part in shown if not isinstance(part, ToolCall | ToolResult | Thought)]
    if item.get("content") is None:
        return plain_item("message", stored.role, contents)
    listed = isinstance(item["content"], list)
    return item | {"content": write_content(contents, stored.role, listed=listed)}


def _replace_output(item: Json, kind: str, content: Sequence[Content]) -> Json:
    if kind in _TEXT_OUTPUTS:
        return item | {"output": write_content(content, "user")}
    if kind == "shell_call_output":
        text = "\n".join([part.text for part in content if isinstance(part, Text)])
        outcome = {"type": "exit", "exit_code": 0}
        return item | {"output": [{"stdout": text, "stderr": "", "outcome": outcome}]}
    return item  # a screenshot: the field takes nothing else


# --- calls and their outputs -------------------------------------------------------------------


def pair_calls(items: Sequence[Json]) -> list[Json]:
    """The same items when every call has its output, and no output is without its call.

    A call without an output gets one that says so, or is left out with its reasoning where the
    output cannot be text. An output without a call becomes text. An output that came after the
    user's next message moves to its call.
    """
    outputs = {key: item for item in items if (key := _output_key(item)) is not None}
    called: set[tuple[str, str]] = set()
    waiting: dict[tuple[str, str], Json] = {}  # calls whose output is to come
    found: list[Json] = []
    for item in items:
        key, call = _output_key(item), _call_key(item)
        if call is not None:
            called.add(call)
            waiting[call] = item
        elif key is not None:
            if key in waiting:
                del waiting[key]
            elif key in called:
                continue  # it moved to its call, or is there twice
            else:
                item = _as_text(item)  # noqa: PLW2901 - the rest is the same for both
        elif waiting and item.get("type") != REASONING:
            _answer(waiting, outputs, found, spoken=item.get("role") not in (None, "assistant"))
        found.append(item)
    _answer(waiting, outputs, found, spoken=True)
    return found


def _call_key(item: Json) -> tuple[str, str] | None:
    kind = string_or_empty(item.get("type"))
    if kind not in CALLS or _is_programs(item):
        return None
    return CALLS[kind][0], string_or_empty(item.get("call_id"))


def _output_key(item: Json) -> tuple[str, str] | None:
    kind, id_ = string_or_empty(item.get("type")), item.get("call_id")
    if kind not in OUTPUTS or _is_programs(item) or not isinstance(id_, str):
        return None
    return kind, id_


def _is_programs(item: Json) -> bool:
    """Whether a program that the server runs made the call: it may answer it there."""
    return object_or_empty(item.get("caller")).get("type") == "program"


def _answer(
    waiting: dict[tuple[str, str], Json],
    outputs: dict[tuple[str, str], Json],
    found: list[Json],
    *,
    spoken: bool,
) -> None:
    """Answer the calls that wait: a later output moves here only when the user spoke before it."""
    for key, call in list(waiting.items()):
        if key in outputs:
            if spoken:
                found.append(outputs[key])
                del waiting[key]
            continue
        del waiting[key]
        if call.get("type") in _ANSWERED:
            found.append({"type": key[0], "call_id": key[1], "output": INTERRUPTED})
        else:
            _leave_out(call, found)


def _leave_out(call: Json, found: list[Json]) -> None:
    at = next(at for at, item in enumerate(found) if item is call)
    while at and found[at - 1].get("type") == REASONING:
        at -= 1  # reasoning is refused without the item that follows it
        del found[at]
    del found[at]


def _as_text(output: Json) -> Json:
    (message,) = to_messages([output], {})
    text = results_as_text(message)
    return plain_item("message", "user", text.parts)
