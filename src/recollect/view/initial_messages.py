"""The messages that every session's view begins with: instructions, then the environment block.

`plan_initial_context` says what must be appended so that a view begins with them, whichever way the
session came to be; applied once, it plans nothing more. What is there already stays, word for word:
a resumed session never changes by itself. What a user left out or restored is not overruled.

The messages carry a mark in `extra` that says what they hold. Sessions from before there were marks
are recognised by their text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from recollect.entries import Body, Elide, Elided, Entry, Message, Pin, Restore, Text, json_text
from recollect.user_text import begins_with_environment
from recollect.view.view import View, ViewItem
from recollect.view.view_state import pinned_by

InstructionsOwner: TypeAlias = Literal["agent", "ask", "client"]
MEMORY_BEGIN, MEMORY_END = "<memory_file ", "</memory_file>"  # around each memory file
_UNMARKED_BLOCK = "This is recollect. We are setting up the context for our chat."
# the elision of what ours took the place of: other instructions, another program's block
REPLACED_RULE = "instructions"
_INSTRUCTIONS, _ENVIRONMENT = "instructions", "environment"
_UNMARKED_AGENT = "You are recollect, an agent"  # how the agent's began before there were marks


def instructions_message(text: str, owner: InstructionsOwner = "agent") -> Message:
    """System instructions; `owner` says which door they are for."""
    extra = json_text({_INSTRUCTIONS: owner})
    return Message(role="system", parts=(Text(text=text),), context="initial", extra=extra)


def mark_environment(extra: str) -> str:
    """The `extra` of a message that is the environment block."""
    return json_text({**(json.loads(extra) if extra else {}), _ENVIRONMENT: True})


def memory_in(text: str) -> str:
    """The part of an initial message's text that is memory; its end may have been cut off."""
    start = text.find(f"\n\n{MEMORY_BEGIN}")
    if start < 0:
        return ""
    end = text.rfind(MEMORY_END)
    return text[start : end + len(MEMORY_END)] if end > start else text[start:]


def is_environment(message: Message) -> bool:
    """Whether this is the environment block; a message about one directory is not."""
    if message.role != "user":
        return False
    if message.context == "initial" and _mark(message, _ENVIRONMENT) is True:
        return True
    return _text(message).startswith(_UNMARKED_BLOCK)


def _is_foreign_block(message: Message) -> bool:
    """Whether this is the environment block of the program that a session was imported from."""
    is_initial = message.role == "user" and message.context == "initial"
    return is_initial and not is_environment(message) and begins_with_environment(_text(message))


def instructions_owner(message: Message) -> InstructionsOwner | None:
    """Whose instructions a message holds; None if it holds none of ours."""
    if message.role != "system" or message.context != "initial":
        return None
    owner = _mark(message, _INSTRUCTIONS)
    if owner == "agent" or (owner is None and _text(message).startswith(_UNMARKED_AGENT)):
        return "agent"
    if owner == "client":
        return "client"
    return "ask" if owner in ("ask", None) else None


def plan_initial_context(
    view: View,
    instructions: Message,
    block: Message,
    *,
    new_id: Callable[[], str],
    now: int,
) -> tuple[Body | Entry, ...]:
    """What to append, in one piece, so that the view begins with instructions and the block.

    `instructions` comes from `instructions_message`. Those of the agent take the place of those of
    `ask`, and serve `ask` as well. `new_id` gives ids for entries that the pin must name.
    """
    if view.state.last < 0:
        return instructions, block
    serving = {"agent", instructions_owner(instructions)}

    def serves(message: Message) -> bool:
        return instructions_owner(message) in serving

    lead: list[str] = []
    new: list[Entry] = []
    for message, is_wanted in (
        (instructions, serves),
        (block, is_environment),
    ):
        item = _find_item(view, is_wanted)
        if item is not None:
            lead += [] if item.cuts else [item.entry.id]
        elif not _is_left_out(view, is_wanted):
            new.append(Entry(new_id(), None, now, message))
            lead.append(new[-1].id)
    begin = [item.entry.id for item in view.items[: len(lead)]]
    replaced = _leave_out_replaced(view, serves, _is_foreign_block)
    moved = begin != lead or any(isinstance(edit, Restore) for edit in replaced)
    pin = (Pin(entries=tuple(lead), first=True),) if moved else ()
    return *new, *replaced, *pin


def plan_client_instructions(
    view: View, text: str, *, new_id: Callable[[], str], now: int
) -> tuple[Body | Entry, ...]:
    """What to append so that the view begins with a client's instructions and has no others: those
    of its earlier requests are not carried over. Nothing if they are there already, or if there
    are none and `text` is empty."""
    instructions = instructions_message(text, "client")

    def serves(message: Message) -> bool:
        return bool(text) and message == instructions

    if view.state.last < 0:
        return (instructions,) if text else ()
    replaced = _leave_out_replaced(view, serves, lambda _: False)
    item = _find_item(view, serves)
    if not text or (item is not None and not item.cuts):
        return tuple(replaced)
    entry = Entry(new_id(), None, now, instructions)
    return entry, *replaced, Pin(entries=(entry.id,), first=True)


def _find_item(view: View, is_wanted: Callable[[Message], bool]) -> ViewItem | None:
    stored = ((item, item.entry.body) for item in view.items)
    return next((i for i, b in stored if isinstance(b, Message) and is_wanted(b)), None)


def _is_left_out(view: View, is_wanted: Callable[[Message], bool]) -> bool:
    """Whether an elision in force leaves such a message out; neither a compaction counts, nor
    that others took its place for a time."""
    state, log = view.state, view.log
    cut = (
        log.at[entry]
        for entry, changed in state.changed.items()
        if any(one.rule != REPLACED_RULE for one in changed.cuts)
    )
    in_sight = (p for p in cut if p >= state.base or p in state.kept)
    return any(is_wanted(message) for _, message in log.messages(in_sight))


def _leave_out_replaced(
    view: View, serves: Callable[[Message], bool], is_old_block: Callable[[Message], bool]
) -> Sequence[Restore | Elide]:
    """Leave out instructions of ours that no longer apply and another program's block, unless a
    user holds them; what placed them first is undone before."""

    def is_replaced(message: Message) -> bool:
        others = instructions_owner(message) is not None and not serves(message)
        return others or is_old_block(message)

    state, log = view.state, view.log
    first = {log.entries[position].id: pinned_by(log, position) for position in state.first_pins}
    gone = {
        item.entry.id: Elided(entry=item.entry.id, placeholder="", tokens=item.tokens)
        for item in view.items
        if not item.cuts and item.entry.id not in state.restored
        if state.pins.get(item.entry.id) in (None, *first)
        if isinstance(item.entry.body, Message) and is_replaced(item.entry.body)
    }
    if not gone:
        return ()
    elide = Elide(rule=REPLACED_RULE, items=tuple(gone.values()))
    pins = tuple(pin for pin, held in first.items() if gone.keys() & set(held))
    return (Restore(entries=pins), elide) if pins else (elide,)


def _mark(message: Message, name: str) -> object:
    found = json.loads(message.extra) if message.extra else {}
    return found.get(name) if isinstance(found, dict) else None


def _text(message: Message) -> str:
    first = message.parts[0] if message.parts else None
    return first.text if isinstance(first, Text) else ""
