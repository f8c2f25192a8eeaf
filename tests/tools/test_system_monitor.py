"""The machine's figures, as the model reads them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from recollect.entries import Text
from recollect.tools.builtin import sys_monitor
from recollect.tools.tool import ToolContext, ToolOutput


def measured(root: Path, arguments: str = "{}") -> str:
    output = asyncio.run(sys_monitor(arguments, ToolContext(roots=(root,))))
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
        measuring = asyncio.ensure_future(sys_monitor("{}", ToolContext(roots=(tmp_path,))))
        turns = 0
        while not measuring.done():
            await asyncio.sleep(0.01)
            turns += 1
        return turns, measuring.result()

    turns, output = asyncio.run(story())
    assert turns > 3
    assert not output.is_error


@pytest.mark.parametrize(
    ("metric", "names"),
    [
        ("cpu", ["cpu", "load"]),
        ("memory", ["memory", "swap", "this process"]),
        ("disk", ["disk"]),
        ("all", ["cpu", "load", "memory", "swap", "disk", "this process"]),
    ],
)
def test_a_metric_chooses_what_is_measured(metric: str, names: list[str], tmp_path: Path) -> None:
    lines = measured(tmp_path, f'{{"metric":"{metric}"}}').splitlines()
    assert [line.partition(":")[0] for line in lines] == names


def test_an_unknown_metric_is_an_error_that_the_model_reads(tmp_path: Path) -> None:
    context = ToolContext(roots=(tmp_path,))
    assert asyncio.run(sys_monitor('{"metric":"weather"}', context)).is_error


def test_it_changes_nothing() -> None:
    assert sys_monitor.effect == "read"
