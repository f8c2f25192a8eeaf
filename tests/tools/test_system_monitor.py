"""The machine's figures, as the model reads them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from recollect.entries import Text
from recollect.tools.builtin import system_monitor
from recollect.tools.tool import ToolContext, ToolOutput


def measured(root: Path) -> str:
    output = asyncio.run(system_monitor("{}", ToolContext(roots=(root,))))
    assert not output.is_error
    (content,) = output.content
    assert isinstance(content, Text)
    return content.text


def test_processors_memory_and_disk_take_a_few_lines(tmp_path: Path) -> None:
    text = measured(tmp_path)
    assert [line.split(":")[0] for line in text.split("\n")] == [
        "cpu",
        "load",
        "memory",
        "swap",
        "disk",
        "this process",
    ]
    assert re.search(r"^cpu: \d+ % of \d+ processors", text, re.M)
    size = r"[\d.]+ ([kMGT]B|bytes)"
    assert re.search(rf"^memory: {size} of {size} available", text, re.M)
    assert re.search(rf"^disk: {size} of {size} free", text, re.M)
    assert len(text) < 500


def test_a_figure_that_cannot_be_measured_is_unknown() -> None:
    text = measured(Path("/no/such/place"))
    assert "disk: unknown" in text
    assert re.search(r"^memory: \d", text, re.M)


def test_the_event_loop_runs_while_the_processors_are_measured(tmp_path: Path) -> None:
    async def story() -> tuple[int, ToolOutput]:
        measuring = asyncio.ensure_future(system_monitor("{}", ToolContext(roots=(tmp_path,))))
        turns = 0
        while not measuring.done():
            await asyncio.sleep(0.01)
            turns += 1
        return turns, measuring.result()

    turns, output = asyncio.run(story())
    assert turns > 3
    assert not output.is_error


def test_it_changes_nothing_and_takes_no_parameters() -> None:
    assert system_monitor.effect == "read"
    assert system_monitor.declaration.parameters.count('"properties":{}') == 1
