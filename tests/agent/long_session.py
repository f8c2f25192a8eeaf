"""A random long session, the same for the same seed: prompts, replies, tool calls, failures, and
the moments at which a turn is stopped.

Every text has a number of its own, so that tests can look for it in the log.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.entries import Message, Thought, ToolCall
from recollect.errors import ContextOverflow, ProviderBusy
from recollect.models.model_protocol import ModelEvent, RequestMessages
from recollect.testing import ScriptedModel, ScriptLine, ScriptStep, breaks_after, call, fails, says
from recollect.tools.builtin import (
    glob,
    list_directory,
    read_file,
    replace,
    search_file_content,
    write_file,
)
from recollect.tools.tool import Tool, ToolContext, ToolFailed, ToolOutput, tool

Stop: TypeAlias = Literal["", "event", "moment", "close", "tool"]
FILES = tuple(f"src/part{n}.py" for n in range(6))


class PlannedTurn(NamedTuple):
    said: str
    lines: tuple[ScriptLine, ...]
    stop: Stop
    after: int  # events, or milliseconds, before it is stopped


@dataclass
class Played:
    """A model that plays the script of one turn and keeps its whole replies."""

    scripted: ScriptedModel
    given: list[Message]
    name: str = "scripted"
    pause: float = 0.0

    async def stream(
        self, messages: RequestMessages, prompt: RequestOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(self.scripted.stream(messages, prompt)) as events:
            async for event in events:
                if self.pause and isinstance(event, Delta):
                    await asyncio.sleep(self.pause)
                if isinstance(event, Message):
                    self.given.append(event)
                yield event


@tool("read")
async def print_much(size: int, key: str) -> str:
    """Prints much.

    size: characters
    key: what it is for
    """
    line = f"{key} line of a log that nobody reads twice, with a number {size}\n"
    return (line * (size // len(line) + 1))[:size]


@tool("write")
async def work_slowly(milliseconds: int, key: str) -> str:
    """Works for a while."""
    await asyncio.sleep(milliseconds / 1_000)
    return f"worked for {key}"


@tool("write")
async def go_wrong(how: str) -> ToolOutput | str:
    """Goes wrong."""
    if how == "failed":
        raise ToolFailed("there is nothing here; look elsewhere")
    if how == "bug":
        raise ZeroDivisionError("division by zero")
    return ToolOutput(is_error=True)


@tool("run")
async def run_program(words: str, place: ToolContext) -> str:
    """Runs `printf`, and nothing else."""
    process = await asyncio.create_subprocess_exec(
        "printf", "%s\n", *words.split(), cwd=place.root, stdout=asyncio.subprocess.PIPE
    )
    try:
        out, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return out.decode()


TOOLS: tuple[Tool, ...] = (
    read_file,
    write_file,
    replace,
    list_directory,
    glob,
    search_file_content,
    print_much,
    work_slowly,
    go_wrong,
    run_program,
)


def make_files(root: Path) -> None:
    (root / "src").mkdir()
    for number, name in enumerate(FILES):
        lines = [f"def part{number}_step{n}(x):\n    return x + {n}\n" for n in range(40)]
        (root / name).write_text("version = 0\n" + "".join(lines))


class Script:
    """The turns of a session, one after the other, from one seed."""

    def __init__(self, seed: int, *, largest: int = 200_000, mark: str = "") -> None:
        """`mark` precedes every number, for sessions that several scripts write."""
        self._chance, self._mark = random.Random(seed), mark
        self._largest = largest
        self._calls = self._texts = 0

    def turn(self, number: int) -> PlannedTurn:
        chance = self._chance
        lines = tuple(self._line() for _ in range(chance.choice([0, 1, 1, 2, 3, 5])))
        last = says(*self._thoughts(), self._text(chance.randint(1, 60)))
        spare = tuple(says(self._text(3)) for _ in range(3))
        stops: tuple[Stop, ...] = ("", "", "", "event", "moment", "close", "tool")
        stop = chance.choice(stops)
        if stop == "tool":
            self._calls += 1
            key = f"{self._mark}c{self._calls}"
            slow = call("work_slowly", id=key, milliseconds=500, key=key)
            lines = (*lines[:1], says(self._text(5), slow, *self._some_calls()))
        after = chance.randint(1, 40) if stop in ("event", "close") else chance.randint(0, 30)
        said = f"prompt {self._mark}{number}: " + " ".join(["please"] * chance.randint(1, 30))
        return PlannedTurn(said, (*lines, last, *spare), stop, after)

    def _line(self) -> ScriptLine:
        chance = self._chance
        match chance.randint(0, 24):
            case 0:
                return breaks_after(*self._thoughts(), self._text(20))
            case 1:
                return fails(ProviderBusy("too many requests", 429, 3))
            case 2:
                return fails(ContextOverflow("too long", 400, chance.choice([None, 7_000])))
            case _:
                return says(
                    *self._thoughts(), self._text(chance.randint(0, 30)), *self._some_calls()
                )

    def _thoughts(self) -> tuple[ScriptStep, ...]:
        if self._chance.random() < 0.7:
            return ()
        self._texts += 1
        signature = self._chance.choice(["", "c2lnbmF0dXJl"])
        return (Thought(text=f"thought {self._mark}{self._texts}: is it so?", signature=signature),)

    def _text(self, words: int) -> str:
        self._texts += 1
        noise = (str(self._chance.randint(0, 10**6)) for _ in range(words))
        return f"reply {self._mark}{self._texts}: " + " ".join(noise)

    def _some_calls(self) -> tuple[ToolCall, ...]:
        return tuple(self._call() for _ in range(self._chance.choice([1, 1, 1, 2, 4])))

    def _call(self) -> ToolCall:
        chance = self._chance
        self._calls += 1
        key, file = f"{self._mark}c{self._calls}", chance.choice(FILES)
        match chance.randint(0, 11):
            case 0 | 1 | 2:
                return call("read_file", id=key, absolute_path=file)
            case 3:
                size = int(self._largest ** chance.uniform(0.5, 1))
                return call("print_much", id=key, size=size, key=key)
            case 4:
                old, new = f"version = {chance.randint(0, 1)}", f"version = {chance.randint(0, 1)}"
                return call("replace", id=key, file_path=file, old_string=old, new_string=new)
            case 5:
                content = f"version = 0\n# {key}\n" + "x = 1\n" * chance.randint(1, 300)
                return call("write_file", id=key, file_path=file, content=content)
            case 6:
                return call("list_directory", id=key, path="src")
            case 7:
                return call("search_file_content", id=key, pattern=f"step{chance.randint(0, 9)}")
            case 8:
                return call("glob", id=key, pattern="**/*.py")
            case 9:
                return call("go_wrong", id=key, how=chance.choice(["failed", "bug", "empty"]))
            case 10:
                return call("work_slowly", id=key, milliseconds=chance.randint(0, 3), key=key)
            case _:
                broken = chance.choice(["{", "[]", '{"nobody": 1}', "", '{"words": "a b"}'])
                return ToolCall(id=key, name="run_program", arguments=broken)
