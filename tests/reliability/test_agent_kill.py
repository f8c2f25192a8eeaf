"""kill -9 while an agent works: nothing acknowledged is lost, no prompt is lost, nothing is run
twice, every provider takes the next request, and the next prompt is answered."""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from recollect.agent.run_events import RunFinished
from recollect.codecs.encoder import encode
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.wire_protocol import RequestOptions
from recollect.entries import Entry, Message, Part, ToolCall, ToolResult
from recollect.session import Session
from recollect.store.recovery import store_doctor
from recollect.store.sqlite import SqliteStore
from recollect.testing import ScriptedModel
from recollect.view_loader import load_view
from tests.agent.long_session import make_files
from tests.agent.valid_requests import Providers
from tests.reliability.agent_worker import STAGES, TOOLS_HERE, agent_for
from tests.reliability.children import (
    Child,
    Fact,
    acknowledged,
    assert_contiguous,
    in_store,
    new_session,
    note_figures,
    text_of,
)

AGENT_WORKER = Path(__file__).with_name("agent_worker.py")
KILLS_PER_STORE = 5
PROVIDERS = tuple(tool.declaration for tool in TOOLS_HERE)


class Trials:
    """One store, one session, killed again and again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        make_files(folder)
        self.root, self.path = folder, folder / "s.db"
        self.session = new_session(self.path)
        self.known: set[str] = set()  # entries
        self.prompts: set[str] = set()
        self.ran: set[str] = set()
        self.number = 0

    def start(self, mode: str, *more: str) -> Child:
        self.number += 1
        before = [sys.executable, str(AGENT_WORKER)]
        arguments = (self.session, str(self.root), f"m{self.number}", *more)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # it imports our tests
        return Child(mode, self.path, *arguments, before=before, env=env)

    def after(self, facts: list[Fact]) -> tuple[Entry, ...]:
        """All that has to hold after a kill; gives what was in the log."""
        self.known.update(acknowledged(facts))
        self.prompts.update(fact["prompt"] for fact in facts if fact["what"] == "prompt")
        self.ran.update(fact["call"] for fact in facts if fact["what"] == "ran")
        tried = {fact["prompt"] for fact in facts if fact["what"] == "try"}
        runs = self.runs()
        entries = in_store(self.path, self._look)
        assert_contiguous(entries)
        assert self.known <= {entry.id for entry in entries}
        said = Counter(text_of(e).split(":")[0] for e in entries if is_said_by(e, "user"))
        assert {said[name] for name in self.prompts} <= {1}
        assert {said[name] for name in tried} <= {0, 1}
        check_calls(entries, self.ran, runs)
        assert store_doctor.examine_store(self.path).healthy
        in_store(self.path, self._go_on)
        assert self.runs() == runs, "something was run again by itself"
        return entries

    def runs(self) -> list[str]:
        file = self.root / "runs"
        return file.read_text().splitlines() if file.exists() else []

    async def _look(self, store: SqliteStore) -> tuple[Entry, ...]:
        assert not any("journal" in warning for warning in store.warnings), store.warnings
        return await store.path(self.session)

    async def _go_on(self, store: SqliteStore) -> None:
        view = await load_view(store, self.session)
        providers = Providers(PROVIDERS)
        if view.messages:  # the first kill can come before anything was said
            providers.check(view, types=True)
        model = ScriptedModel([f"reply after {self.number}: and on"])
        talk = Session(store, self.session, view)
        said = f"prompt after {self.number}: go on"
        events = [event async for event in agent_for(model, self.root).stream(said, talk)]
        last = events[-1]
        assert isinstance(last, RunFinished)
        assert last.reason == "answered"
        providers.check(last.session.view(), types=False)
        entries = await store.path(self.session, last=1)
        assert text_of(entries[0]).startswith("reply after")


def is_said_by(entry: Entry, role: str) -> bool:
    return isinstance(entry.body, Message) and entry.body.role == role


def parts_of(entries: tuple[Entry, ...]) -> list[Part]:
    return [p for e in entries if isinstance(e.body, Message) for p in e.body.parts]


def check_calls(entries: tuple[Entry, ...], ran: set[str], runs: list[str]) -> None:
    calls = Counter(part.id for part in parts_of(entries) if isinstance(part, ToolCall))
    results = Counter(part.call_id for part in parts_of(entries) if isinstance(part, ToolResult))
    assert set(calls.values()) <= {1}
    assert set(results.values()) <= {1}
    assert results.keys() <= calls.keys()
    assert ran <= results.keys(), "a result that somebody heard of was lost"
    assert set(Counter(runs).values()) <= {1}, "something was run twice"
    assert set(runs) <= calls.keys(), "something ran before its call was in the log"


def random_trials(folder: Path, kills: int) -> int:
    trials = Trials(folder)
    for _ in range(kills):
        child = trials.start("session")
        if random.random() < 0.1:
            time.sleep(random.uniform(0.1, 0.6))  # while Python starts or the store opens
        else:
            child.wait_for("try", random.randint(1, 6))
            time.sleep(random.uniform(0, 0.08))
        assert child.process.poll() is None, child.errors  # it is we who end it
        trials.after(child.kill())
    return len(trials.known)


def staged_trial(trials: Trials, stage: str) -> None:
    child = trials.start("staged", stage)
    if stage == "mid-stream":
        child.wait_for("piece", random.randint(70, 90))
        killed = time.time()
    else:
        child.wait_for("stage")
    facts = child.kill()
    entries = trials.after(facts)
    mark = f"m{trials.number}"
    if stage == "mid-stream":
        check_stream(facts, entries, killed)
        return
    results = {part.call_id for part in parts_of(entries) if isinstance(part, ToolResult)}
    runs = trials.runs()
    first, second = f"{mark}.work", f"{mark}.work2"
    expected: dict[str, tuple[list[str], set[str]]] = {
        "call-stored": ([], set()),
        "tool-running": ([first], set()),
        "result-stored": ([first], {first}),
        "before-the-reply": ([first, second], {first, second}),
    }
    assert [run for run in runs if run.startswith(mark + ".")] == expected[stage][0]
    assert {r for r in results if r.startswith(mark + ".")} == expected[stage][1]


def check_stream(facts: list[Fact], entries: tuple[Entry, ...], killed: float) -> None:
    """All but the last second is there, marked as interrupted; more where the child runs slowly."""
    pieces = [fact for fact in facts if fact["what"] == "piece"]
    delay = max(after["time"] - before["time"] for before, after in pairwise(pieces))
    due = [fact["text"] for fact in pieces if fact["time"] < killed - 1.0 - 10 * (delay - 0.02)]
    if not due:
        return
    reply = entries[-1]
    assert isinstance(reply.body, Message)
    assert reply.body.finish == "interrupted"
    assert text_of(reply).startswith(due[-1])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("store", range(2))
def test_an_agent_killed_at_any_moment_can_continue(tmp_path: Path, store: int) -> None:
    random_trials(tmp_path / "a", KILLS_PER_STORE)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stage", STAGES)
def test_an_agent_killed_at_a_stage_can_continue(tmp_path: Path, stage: str) -> None:
    trials = Trials(tmp_path / "a")
    for _ in range(2):
        staged_trial(trials, stage)


def test_the_model_sees_a_call_cut_off_by_a_kill_as_interrupted(tmp_path: Path) -> None:
    trials = Trials(tmp_path / "a")
    child = trials.start("staged", "tool-running")
    child.wait_for("stage")
    child.kill()

    async def ask(store: SqliteStore) -> bytes:
        view = await load_view(store, trials.session)
        return encode(OpenAIWire(model="m"), view, RequestOptions(model="m", tools=PROVIDERS)).body

    body = in_store(trials.path, ask).decode()
    assert '"tool_call_id":"m1.work"' in body
    assert "this call was interrupted" in body.split('"tool_call_id":"m1.work"')[1][:60]


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("part", range(10))
def test_four_hundred_kills_at_any_moment(tmp_path: Path, part: int) -> None:
    known = sum(random_trials(tmp_path / f"a{n}", 10) for n in range(4))
    note_figures("replies acknowledged by killed agents", known)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("stage", STAGES)
def test_four_hundred_kills_at_a_stage(tmp_path: Path, stage: str) -> None:
    for n in range(8):
        trials = Trials(tmp_path / f"a{n}")
        for _ in range(10):
            staged_trial(trials, stage)
