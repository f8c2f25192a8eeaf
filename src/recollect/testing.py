"""Builders and a model that plays a script, for tests, ours and yours: no mocks.

>>> await store.append(session.id, [user("hi"), model("hello")], parent=None)
>>> scripted = ScriptedModel(["hello", says("let me look", call("grep", pattern="x")), "found it"])

A `ScriptedModel` is asked like any other model. It gives its turns in order, in pieces of equal
length, the same every time, and keeps what it was asked in `requests`. Asked once too often it
raises `ScriptExhausted`, which is an AssertionError and no ModelError: nothing may swallow it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from recollect.codecs.wire_protocol import DecodedRequest, Delta, RequestOptions
from recollect.entries import (
    Content,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Usage,
    json_text,
)
from recollect.errors import BadReply, ModelError
from recollect.models.model_protocol import ModelEvent, RequestMessages, Retrying, attach_partial
from recollect.view.view import View


def user(text: str, *parts: Part) -> Message:
    return Message(role="user", parts=(Text(text=text), *parts))


def model(text: str, *parts: Part) -> Message:
    return Message(role="model", parts=(Text(text=text), *parts))


def call(name: str, /, id: str = "call-1", **arguments: object) -> ToolCall:  # noqa: A002
    return ToolCall(id=id, name=name, arguments=json_text(arguments))


def result(of: ToolCall, output: str, *more: Content, is_error: bool = False) -> Message:
    content = (Text(text=output), *more)
    answer = ToolResult(call_id=of.id, name=of.name, content=content, is_error=is_error)
    return Message(role="user", parts=(answer,))


# --- a model that plays a script ---------------------------------------------------------------

ScriptStep: TypeAlias = Part | Retrying


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One reply of a script, or one failure: make it with `says`, `fails` or `breaks_after`."""

    steps: tuple[ScriptStep, ...] = ()
    finish: str = ""  # empty: calls when there are any, else stop
    usage: Usage | None = None
    delay: float = 0.0  # seconds before the first piece
    error: ModelError | None = None  # raised after the steps


# A text or a message is what the model says; a function gets the request and answers.
ScriptLine: TypeAlias = (
    "str | Message | ModelError | Turn | Callable[[DecodedRequest], str | Message | Turn]"
)


class ScriptExhausted(AssertionError):
    def __init__(self, turns: int, asked: DecodedRequest) -> None:
        last = asked.messages[-1] if asked.messages else None
        words = [part.text for part in last.parts if isinstance(part, Text)] if last else []
        shown = f"{last.role} {' '.join(words)[:80]!r}" if last else "no message"
        super().__init__(
            f"the script has {turns} turns and was asked for one more, after {shown}; "
            "add a turn, or find out why it is asked again"
        )
        self.turns, self.asked = turns, asked


def says(
    *said: str | ScriptStep, finish: str = "", usage: Usage | None = None, delay: float = 0.0
) -> Turn:
    """A reply of these parts; text and thoughts and calls in the order given.

    A `Retrying` among them makes what came before it void, as when a connection broke.
    """
    return Turn(steps=_steps(said), finish=finish, usage=usage, delay=delay)


def fails(error: ModelError, *, delay: float = 0.0) -> Turn:
    """No reply at all."""
    return Turn(error=error, delay=delay)


def breaks_after(
    *said: str | ScriptStep, error: ModelError | None = None, delay: float = 0.0
) -> Turn:
    """A stream that breaks when this much has been shown; `partial_of` the error gives it."""
    error = BadReply("a stream that broke off") if error is None else error
    return Turn(steps=_steps(said), error=error, delay=delay)


class ScriptedModel:
    """Plays `script`, one line for each request; `piece` is the length of what is streamed.

    >>> import asyncio
    >>> from recollect.testing import ScriptedModel, call, says, user
    >>> scripted = ScriptedModel([says("I look", call("grep", pattern="x")), "found it"])
    >>> async def ask(text):
    ...     return [e async for e in scripted.stream([user(text)], Prompt(model="any"))][-1]
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
            raise ValueError(f"a piece has at least one character, not {piece}")
        self.name, self.piece = name, piece
        self.script = tuple(script)
        self.requests: list[DecodedRequest] = []

    @property
    def left(self) -> int:
        """Turns that nobody has asked for."""
        return len(self.script) - len(self.requests)

    async def stream(
        self, messages: RequestMessages, prompt: RequestOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        shown = messages.messages if isinstance(messages, View) else messages
        asked = DecodedRequest(prompt, tuple(shown))
        if not self.left:
            raise ScriptExhausted(len(self.script), asked)
        line = self.script[len(self.requests)]
        self.requests.append(asked)
        turn = _turn(line, asked)
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
                await asyncio.sleep(0)  # others get their turn, and a cancellation its chance
        reply = self._reply(turn, tuple(valid))
        if turn.error is not None:
            attach_partial(turn.error, msgspec.structs.replace(reply, finish=""))
            raise turn.error
        yield reply

    def _reply(self, turn: Turn, parts: tuple[Part, ...]) -> Message:
        calls = any(isinstance(part, ToolCall) for part in parts)
        finish = turn.finish or ("calls" if calls else "stop")
        return Message(role="model", parts=parts, model=self.name, finish=finish, usage=turn.usage)


def _steps(said: Iterable[str | ScriptStep]) -> tuple[ScriptStep, ...]:
    return tuple(Text(text=step) if isinstance(step, str) else step for step in said)


def _turn(line: ScriptLine, asked: DecodedRequest) -> Turn:
    if callable(line):
        line = line(asked)
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
            for piece in _pieces(part.text, size):
                yield Delta("text", piece)
        case Thought():
            for piece in _pieces(part.text, size):
                yield Delta("thought", piece)
        case ToolCall():
            for number, piece in enumerate(_pieces(part.arguments, size)):
                yield Delta("call", piece, "" if number else part.name)
        case _:
            return


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))
