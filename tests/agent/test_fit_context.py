"""What an agent sends in the middle of a prompt: rules, oversized output, compaction, in order."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given

from recollect.agent.fit_context import FILL_LIMIT, ContextFitter, ContextReduced
from recollect.agent.hooks import Hooks
from recollect.agent.loop import Agent
from recollect.compaction.budget import Budget
from recollect.entries import Compaction, Elide, Message, Text, ToolResult, handle_of
from recollect.session import Session
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel, call, model, says, user
from recollect.tokens import ESTIMATE
from recollect.tools.tool import tool
from recollect.view.elision_rules import ElisionRules
from recollect.view.view import View
from tests.agent.harness import allow_all, in_store, new_session
from tests.compaction.generated_sessions import (
    HardExchanges,
    HardLog,
    hard_exchanges,
    hard_logs,
    initial_ids,
    unpaired,
)
from tests.compaction.sessions import turns

BUDGET = Budget(40_000, 28_000, 22_000, 4_000)


@tool("read")
async def print_lines(lines: int, width: int) -> str:
    """Prints lines."""
    return "".join(f"line {number} {'x' * width}\n" for number in range(lines))


@pytest.mark.parametrize(("lines", "width"), [(5_000, 8), (5_000, 120), (1, 710_000)])
def test_fresh_output_that_is_too_large_is_never_sent_whole(
    tmp_path: Path, lines: int, width: int
) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        first = says("I look.", call("print_lines", id="a", lines=lines, width=width))
        scripted = ScriptedModel([first, "I see."])
        agent = Agent(
            model=scripted, tools=(print_lines,), permission_check=allow_all, budget=BUDGET
        )
        events = [event async for event in agent.stream("Look.", session)]
        _, second = scripted.requests
        sent = sum(map(ESTIMATE.message, second.messages))
        assert sent < BUDGET.window
        (shown,) = [p for m in second.messages for p in m.parts if isinstance(p, ToolResult)]
        text = "".join(part.text for part in shown.content if isinstance(part, Text))
        assert text.startswith("line 0 ")
        assert text.endswith("x\n")
        assert "recall" in text
        assert any(isinstance(event, ContextReduced) for event in events)

    in_store(tmp_path, story)


def test_a_preview_in_the_middle_of_a_prompt_is_what_is_sent(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store, *(b for b in turns(60) if isinstance(b, Message)))
        use = call("print_lines", id="a", lines=3_000, width=8)
        answer = ToolResult(call_id="a", name=use.name, content=(Text(text="line\n" * 3_000),))
        await session.append(model("I look.", use), Message(role="user", parts=(answer,)))
        scripted = ScriptedModel(["Done."])
        agent = Agent(model=scripted, tools=(print_lines,), budget=BUDGET)
        prepared = await agent.prepare(None, session)
        await agent.run(None, session)
        assert scripted.requests[0].messages == prepared.view.messages
        assert prepared.reduced

    in_store(tmp_path, story)


def test_the_user_is_told_which_pin_had_to_go(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store, user("keep " * 60_000), model("Yes."))
        pinned = session.view().entries[0].id
        await session.pin(pinned)
        warned: list[str] = []
        told = Session(store, session.id, session.view(), warned.append)
        await Agent(model=ScriptedModel(["Hello."]), budget=BUDGET).run("Hi.", told)
        (warning,) = warned
        assert handle_of(pinned) in warning
        assert pinned not in warning
        assert told.view().tokens < BUDGET.window

    in_store(tmp_path, story)


class FailingWriter:
    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, messages: Sequence[Message], prompt: str) -> str:
        self.calls += 1
        return "I would rather not."


LIMIT = int(BUDGET.window * FILL_LIMIT)


@given(hard_logs(), hard_exchanges())
def test_every_request_of_a_prompt_fits_and_a_writer_that_fails_is_called_once(
    log: HardLog, more: HardExchanges
) -> None:
    async def play(store: SqliteStore) -> None:
        session = Session(store, (await store.create()).id, View.fold())
        await session.append(*log)
        writer = FailingWriter()
        fitter = ContextFitter(ElisionRules(), Hooks(), writer, (), 2_000)
        await session.append(user("Go on."))
        for messages in [[], *more]:
            await session.append(*messages)
            initial, start = initial_ids(session.view()), session.view().n
            await fitter.fit(session, BUDGET)
            view = session.view()
            assert view.tokens <= LIMIT
            assert initial_ids(view) == initial
            assert unpaired(view) == (set(), set())
            check_order([entry.body for entry in view.entries[start:]])
        assert writer.calls <= 1
        loaded = await store.path(session.id)
        assert View.fold(loaded).messages == session.view().messages

    async def opened() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with open_store(Path(folder) / "s.db") as store:
                await play(store)

    asyncio.run(opened())


def check_order(edits: Sequence[object]) -> None:
    """Elisions come before a compaction; where the window itself forces another round, it begins
    with the rules again."""
    order = [isinstance(edit, Compaction) for edit in edits if isinstance(edit, Elide | Compaction)]
    rounds = sum(after < before for before, after in pairwise(order))
    assert rounds <= 1
    assert sum(order) <= 2
