"""One reply of a provider as plain data: what it says, and everything that goes wrong on its way.

>>> faulty("half an ans", end="none")  # complete text, but the stream never says that it ended
>>> faulty("hello", chunk=1, line_end="\r")  # every byte by itself
>>> faulty("hello", cut="event", close="reset")

A `WireReply` without any field is a correct reply. Its fields can be combined freely; a value that
is none of a field's choices is refused when the reply is made.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import msgspec

from recollect.entries import Message
from recollect.testing.scripted_model import ScriptStep, Turn, says

__all__ = ["WireReply", "faulty"]

MAX_ENDLESS = 2_000_000_000  # bytes after which an endless reply ends, whoever still reads it

# all      the finish word and the end marker, as the provider sends them
# word     the finish word only: no `[DONE]`, no `message_stop`
# marker   the end marker only
# none     neither: the stream stops after its contents
EndParts: TypeAlias = Literal["all", "word", "marker", "none"]
# Where the bytes stop: in the middle of the last event with contents, of the first character that
# has several bytes, of the calls' arguments.
CutPlace: TypeAlias = Literal["", "event", "character", "arguments"]
# clean    the response is complete, as HTTP understands it
# early    the connection is closed before that
# reset    the connection is reset
# silence  nothing more comes, and the connection stays open until the client closes it
Closing: TypeAlias = Literal["clean", "early", "reset", "silence"]
Framing: TypeAlias = Literal["", "chunked", "length", "close"]  # empty: as providers do
LineEnd: TypeAlias = Literal["", "\n", "\r\n", "\r"]  # empty: the provider's own
# After its contents the reply never ends: more text, comments, or one line without an end.
Endless: TypeAlias = Literal["", "text", "comments", "line"]


class WireReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply and its faults. Without a fault it is what the provider would send."""

    turn: Turn = Turn()
    stream: bool | None = None  # None: as the request asks
    delay: float = 0.0  # seconds before the headers; the turn's own delay follows them

    # what the reply says of itself
    finish: str = ""  # the provider's own word; empty: that of the turn's finish
    finish_message: str = ""  # Gemini's explanation of it
    end: EndParts = "all"
    put: tuple[tuple[str, str], ...] = ()  # fields (such as `tool_calls.index`) and JSON for them
    drop: tuple[str, ...] = ()  # fields that are left out
    events: tuple[str, ...] = ()  # JSON texts that are sent in place of the turn
    error_event: str = ""  # the JSON of an error that follows the contents
    body: bytes | None = None  # sent in place of everything above
    echo_key: int = 0  # characters of the request's API key that take the place of KEY in the body

    # how its bytes are cut
    piece: int = 8  # characters of text or arguments in one event; more if the text is long
    line_end: LineEnd = ""
    bom: bool = False
    pings: bool = False  # a comment after every event
    chunk: int = 0  # bytes that are sent at once; 0: an event
    pause: float = 0.0  # seconds between two of them
    cut: CutPlace = ""
    close: Closing = "clean"
    endless: Endless = ""
    most: int = MAX_ENDLESS

    # HTTP
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = ""
    framing: Framing = ""
    length_error: int = 0  # added to the length that the headers claim
    gzip: bool = False
    inflate: int = 0  # bytes of text that are added to a compressed stream, as a bomb

    def __post_init__(self) -> None:
        for field, choices in _CHOICES.items():
            if (given := getattr(self, field)) not in choices:
                known = ", ".join(map(repr, choices))
                raise ValueError(f"{field}={given!r} is unknown; use one of {known}")
        if self.framing == "length" and (self.endless or self.inflate):
            raise ValueError("a reply without an end has no length; use chunked framing")
        for field in ("piece", "most", "status"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field}={getattr(self, field)}; it needs at least 1")


_CHOICES: dict[str, tuple[str, ...]] = {
    "end": get_args(EndParts),
    "line_end": get_args(LineEnd),
    "cut": get_args(CutPlace),
    "close": get_args(Closing),
    "endless": get_args(Endless),
    "framing": get_args(Framing),
}


def faulty(*said: str | ScriptStep | Message | Turn | WireReply, **fields: Any) -> WireReply:
    """A reply with these fields of `WireReply`.

    `said` is one turn, message or reply, or the texts and parts of a turn. `put` may be a mapping,
    `headers` too."""
    for name in ("put", "headers"):
        if isinstance(given := fields.get(name), dict):
            fields[name] = tuple(given.items())
    match said:
        case (WireReply() as reply,):
            return msgspec.structs.replace(reply, **fields)
        case (Turn() as turn,):
            return WireReply(turn=turn, **fields)
        case (Message() as message,):
            turn = Turn(steps=message.parts, finish=message.finish, usage=message.usage)
            return WireReply(turn=turn, **fields)
    parts = [part for part in said if not isinstance(part, Message | Turn | WireReply)]
    if len(parts) < len(said):
        raise TypeError("a turn, a message or a reply stands alone; add the other parts to it")
    return WireReply(turn=says(*parts), **fields)
