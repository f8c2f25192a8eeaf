"""The ledger: what code alone can say about the state of a session. Values only.

Every fact says how often it was seen and when last, counted in tool calls, so that a snapshot can
choose by recency and frequency. All texts are clean and bounded.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from recollect.snapshot.plan_steps import PlanStep
from recollect.snapshot.snapshot_format import Snapshot


class Tally(NamedTuple):
    """A name, how much it was seen, and at which call last."""

    name: str
    weight: float
    last: int


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    path: str  # relative to the ledger's root if it is below it
    created: bool = False
    deleted: bool = False
    edits: int = 0
    reads: int = 0
    weight: float = 0.0  # how much it was touched and mentioned
    last: int = 0
    defines: tuple[str, ...] = ()
    names: tuple[Tally, ...] = ()

    @property
    def touched(self) -> bool:
        return self.created or self.deleted or self.edits > 0 or self.reads > 0


class Passage(NamedTuple):
    """A text, such as a task's description, that names files and names together."""

    files: tuple[str, ...]
    names: tuple[str, ...]
    last: int


class Quotation(NamedTuple):
    """The beginning of a text for people that a tool returned, such as a task's description."""

    source: str
    text: str
    last: int


class CommandRun(NamedTuple):
    text: str
    times: int
    failed: bool
    last: int


class OpenFailure(NamedTuple):
    """A failure that nothing later has shown to be fixed."""

    subject: str
    line: str
    last: int


class AgentAction(NamedTuple):
    verb: str
    what: str
    note: str = ""


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    root: str = ""
    now: int = 0  # calls so far: the age of a fact is `now - last`
    goal: str = ""
    directives: tuple[str, ...] = ()
    knowledge: tuple[str, ...] = ()  # prose of earlier snapshots, oldest first
    files: tuple[FileFacts, ...] = ()
    passages: tuple[Passage, ...] = ()  # newest first
    quotations: tuple[Quotation, ...] = ()  # newest first
    names: tuple[Tally, ...] = ()
    chains: tuple[Tally, ...] = ()
    commands: tuple[CommandRun, ...] = ()
    failures: tuple[OpenFailure, ...] = ()
    actions: tuple[AgentAction, ...] = ()
    steps: tuple[PlanStep, ...] = ()
    report: str = ""  # the agent's last message without a call
    question: str = ""  # asked by the agent, not answered yet
    written: Snapshot | None = None  # what a model wrote
