from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

from recollect.entries import Text
from recollect.tools.monitoring import system_monitor
from recollect.tools.tool import ToolContext, ToolOutput


def told(root: Path) -> str:
    outcome = asyncio.run(system_monitor("{}", ToolContext(roots=(root,))))
    assert not outcome.is_error
    (content,) = outcome.content
    assert isinstance(content, Text)
    return content.text


def test_processors_memory_and_disk_are_told_in_a_few_lines(tmp_path: Path) -> None:
    text = told(tmp_path)
    assert [line.split(":")[0] for line in text.split("\n")] == [
        "cpu",
        "load",
        "memory",
        "swap",
        "disk",
        "this process",
    ]
    assert re.search(r"^cpu: \d+ % of \d+ processors", text, re.M)
    assert re.search(r"^memory: [\d.]+ [kMGT]?B of [\d.]+ [kMGT]?B available", text, re.M)
    assert re.search(r"^disk: [\d.]+ [kMGT]?B of [\d.]+ [kMGT]?B free", text, re.M)
    assert len(text) < 500


def test_what_cannot_be_known_is_said_to_be_unknown() -> None:
    text = told(Path("/no/such/place"))
    assert "disk: unknown" in text
    assert re.search(r"^memory: \d", text, re.M)


def test_the_loop_goes_on_while_the_processors_are_watched(tmp_path: Path) -> None:
    async def story() -> tuple[int, ToolOutput]:
        watching = asyncio.ensure_future(system_monitor("{}", ToolContext(roots=(tmp_path,))))
        turns = 0
        while not watching.done():
            await asyncio.sleep(0.01)
            turns += 1
        return turns, watching.result()

    started = time.monotonic()
    turns, outcome = asyncio.run(story())
    assert turns > 3
    assert not outcome.is_error
    assert time.monotonic() - started < 3


def test_it_looks_and_changes_nothing() -> None:
    assert system_monitor.effect == "read"
    assert system_monitor.declaration.parameters.count('"properties":{}') == 1
