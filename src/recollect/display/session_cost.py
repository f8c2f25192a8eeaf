"""What a session has cost: every reply on all of its branches, at the price of its own model.

The log is read once, in steps; after that only what is new. Sub-agents' tokens count as the model's
that called them.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from recollect.agent.subagents import read_subagent_usage
from recollect.entries import Body, Message, ToolResult, Usage
from recollect.errors import UnknownEntry, UnknownModel
from recollect.models.resolve import look_up_model
from recollect.profiles import compute_cost, find_profile
from recollect.settings import ModelPrice, Settings
from recollect.store.contract import Store
from recollect.tokens import add_usage

STEP = 250  # entries


class Cost(NamedTuple):
    dollars: float | None = None  # None: no price is known
    complete: bool = True  # whether every model's price is known


class SessionCost:
    def __init__(self) -> None:
        self._session = ""
        self._last: str | None = None  # the newest entry that is counted
        self._model = ""
        self._usage: dict[str, Usage] = {}

    async def follow(self, store: Store, session: str) -> None:
        """Count what was appended since the last time."""
        if session != self._session:
            self._start(session)
        while True:
            try:
                page = await store.tree_page(session, limit=STEP, after=self._last)
            except UnknownEntry:  # of another branch of another store: count again
                self._start(session)
                continue
            if not page or self._session != session:
                return
            for entry in page:
                self._add(entry.body)
            self._last = page[-1].id
            if len(page) < STEP:
                return
            await asyncio.sleep(0)

    def cost(self, settings: Settings) -> Cost:
        dollars, complete = None, True
        for model, usage in self._usage.items():
            one = compute_cost(usage, _price(model, settings))
            if one is None:
                complete = False
            else:
                dollars = one + (dollars or 0.0)
        return Cost(dollars, complete)

    def _start(self, session: str) -> None:
        self._session, self._last, self._model = session, None, ""
        self._usage = {}

    def _add(self, body: Body) -> None:
        if not isinstance(body, Message):
            return
        if body.role == "model":
            self._model = body.model or self._model
            self._count(body.usage)
            return
        for part in body.parts:
            if isinstance(part, ToolResult):
                self._count(read_subagent_usage(part))

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self._usage[self._model] = add_usage(self._usage.get(self._model, Usage()), usage)


def _price(model: str, settings: Settings) -> ModelPrice | None:
    try:
        return look_up_model(model, settings).profile.price
    except UnknownModel:
        return find_profile(model).price
