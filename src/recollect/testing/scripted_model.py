"""A model that plays a script, called like any other model.

>>> scripted = ScriptedModel(["hello", says("let me look", call("grep", pattern="x")), "found it"])

A `ScriptedModel` streams its turns in order, in pieces of equal length, the same every time, and
keeps the requests in `requests`. One request too many raises `ScriptExhausted`, an AssertionError
and not a ModelError, so that nothing swallows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from recollect.codecs.wire_protocol import DecodedRequest, Delta, RequestOptions
from recollect.entries import (
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    Usage,
    json_text,
)
from recollect.errors import BadReply, ModelError
from recollect.models.model_protocol import ModelEvent, RequestMessages, Retrying, attach_partial
from recollect.view.view import View

__all__ = [
    "ScriptExhausted",
    "ScriptLine",
    "ScriptStep",
    "ScriptedModel",
    "Turn",
    "breaks_after",
    "call",
    "fails",
    "says",
]


def call(name: str, /, id: str = "call-1", **arguments: object) -> ToolCall:  # noqa: A002
    return ToolCall(id=id, name=name, arguments=json_text(arguments))


ScriptStep: TypeAlias = Part | Retrying


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One reply of a script, or one failure; `says`, `fails` and `breaks_after` make one."""

    steps: tuple[ScriptStep, ...] = ()
    finish: str = ""  # empty: calls when there are any, else stop
    usage: Usage | None = None
    delay: float = 0.0  # seconds before the first piece
    error: ModelError | None = None  # raised after the steps


# A text or a message is the reply; a function receives the request and returns the reply.
ScriptLine: TypeAlias = (
    "str | Message | ModelError | Turn | Callable[[DecodedRequest], str | Message | Turn]"
)


class ScriptExhausted(AssertionError):
    def __init__(self, turns: int, request: DecodedRequest) -> None:
        last = request.messages[-1] if request.messages else None
        texts = [part.text for part in last.parts if isinstance(part, Text)] if last else []
        shown = f"{last.role} {' '.join(texts)[:80]!r}" if last else "no message"
        super().__init__(
            f"the script has {turns} turns and got one more request, after {shown}; "
            "add a turn, or find out why the model is called again"
        )
        self.turns, self.request = turns, request


def says(
    *parts: str | ScriptStep, finish: str = "", usage: Usage | None = None, delay: float = 0.0
) -> Turn:
    """A reply of these parts, in this order. A `Retrying` among them voids the parts before it,
    as when a connection breaks."""
    return Turn(steps=_steps(parts), finish=finish, usage=usage, delay=delay)


def fails(error: ModelError, *, delay: float = 0.0) -> Turn:
    """A request that fails before any reply."""
    return Turn(error=error, delay=delay)


def breaks_after(
    *parts: str | ScriptStep, error: ModelError | None = None, delay: float = 0.0
) -> Turn:
    """A stream that breaks after these parts; `partial_of(error)` returns them."""
    error = BadReply("a stream that broke off") if error is None else error
    return Turn(steps=_steps(parts), error=error, delay=delay)


class ScriptedModel:
    """Plays `script`, one line for each request, in pieces of `piece` characters.

    >>> import asyncio
    >>> from recollect.testing import ScriptedModel, call, says, user
    >>> scripted = ScriptedModel([says("I look", call("grep", pattern="x")), "found it"])
    >>> async def ask(text):
    ...     events = scripted.stream([user(text)], RequestOptions(model="any"))
    ...     return [event async for event in events][-1]
    >>> asyncio.run(ask("where is x?")).finish
    'calls'
    >>> asyncio.run(ask("and?")).parts[0].text
    'found it'
    >>> [len(request.messages) for request in scripted.requests], scripted.left
    ([1, 1], 0)
    """

    def __init__(
        self, script: Iterable[ScriptLine], *, name: str = "scripted", piece: int = 8
    ) -> None:
        if piece < 1:
            raise ValueError(f"a piece of {piece} characters; it needs at least one")
        self.name, self.piece = name, piece
        self.script = tuple(script)
        self.requests: list[DecodedRequest] = []

    @property
    def left(self) -> int:
        """The number of turns that were not requested yet."""
        return len(self.script) - len(self.requests)

    async def stream(
        self, messages: RequestMessages, options: RequestOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        sent = messages.messages if isinstance(messages, View) else messages
        request = DecodedRequest(options, tuple(sent))
        if not self.left:
            raise ScriptExhausted(len(self.script), request)
        line = self.script[len(self.requests)]
        self.requests.append(request)
        turn = _turn(line, request)
        await asyncio.sleep(turn.delay)
        valid: list[Part] = []
        for step in turn.steps:
            if isinstance(step, Retrying):
                valid.clear()
                yield step
                continue
            valid.append(step)
            for delta in _deltas(step, self.piece):
                yield delta
                await asyncio.sleep(0)  # lets other tasks run, and a cancellation arrive
        reply = self._reply(turn, tuple(valid))
        if turn.error is not None:
            attach_partial(turn.error, msgspec.structs.replace(reply, finish=""))
            raise turn.error
        yield reply

    def _reply(self, turn: Turn, parts: tuple[Part, ...]) -> Message:
        calls = any(isinstance(part, ToolCall) for part in parts)
        finish = turn.finish or ("calls" if calls else "stop")
        return Message(role="model", parts=parts, model=self.name, finish=finish, usage=turn.usage)


def _steps(parts: Iterable[str | ScriptStep]) -> tuple[ScriptStep, ...]:
    return tuple(Text(text=step) if isinstance(step, str) else step for step in parts)


def _turn(line: ScriptLine, request: DecodedRequest) -> Turn:
    if callable(line):
        line = line(request)
    if isinstance(line, Turn):
        return line
    if isinstance(line, ModelError):
        return fails(line)
    if isinstance(line, Message):
        return Turn(steps=line.parts, finish=line.finish, usage=line.usage)
    if isinstance(line, str):
        return says(line)
    raise TypeError(f"a script has texts, turns, messages and errors, not {type(line).__name__}")


def _deltas(part: Part, size: int) -> Iterator[Delta]:
    match part:
        case Text():
            whole = Delta("text", part.text)
        case Thought():
            whole = Delta("thought", part.text)
        case ToolCall():
            whole = Delta("call", part.arguments, part.name)
        case _:
            return
    for start in range(0, len(whole.text), size):
        piece = whole.text[start : start + size]
        yield Delta(whole.kind, piece, "" if start else whole.name)
