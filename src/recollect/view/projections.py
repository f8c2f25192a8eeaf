"""Other projections of a log: a router's window, the last prompt, the newest turns.

Pure, and in the order of the log.
"""

from __future__ import annotations

import msgspec

from recollect.entries import Message, Text
from recollect.view.curation import is_spoken, is_tool_result
from recollect.view.view import View


def routing_window(view: View, last: int = 20, of_these: int = 4) -> tuple[Message, ...]:
    """What a router looks at: only the text of the newest `last` messages, and of those with any
    text the newest `of_these`."""
    newest = view.messages[-last:] if last > 0 else ()
    texts = [text for message in newest if (text := _text_only(message)).parts]
    return tuple(texts[-of_these:]) if of_these > 0 else ()


def last_prompt(view: View) -> Message | None:
    """What the user said last, also when a compaction hides it; walks back no further than that."""
    for position in range(view.n - 1, -1, -1):
        message = view.log.message(position)
        if message is not None and is_spoken(message):
            return message
    return None


def _text_only(message: Message) -> Message:
    texts = [part for part in message.parts if isinstance(part, Text) and part.text.strip()]
    if len(texts) == len(message.parts):
        return message
    return msgspec.structs.replace(message, parts=tuple(texts))


def last_turns(view: View, turns: int = 5) -> tuple[Message, ...]:
    """The newest turns: each begins with what the user said, and has everything up to the next."""
    messages = view.messages
    starts = [at for at, message in enumerate(messages) if _begins_turn(message)]
    return (
        messages[starts[-turns] :]
        if 0 < turns <= len(starts)
        else messages[: len(messages) if turns > 0 else 0]
    )


def _begins_turn(message: Message) -> bool:
    return message.role == "user" and not message.context and not is_tool_result(message)
