"""Facts for later sessions: one clean line each, or an error the model reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.tools.builtin import save_memory_tool
from recollect.tools.tool import ToolFailed
from recollect.workspace.memory_writer import SavedFact
from tests.tools.calls import made, text


class Memory:
    def __init__(self, error: Exception | None = None) -> None:
        self.facts: list[str] = []
        self.error = error

    async def save(self, fact: str) -> SavedFact:
        if self.error is not None:
            raise self.error
        is_new = fact not in self.facts
        self.facts.append(fact)
        return SavedFact(Path("MEMORY.md"), fact, "+ a line" if is_new else "")


def test_a_fact_is_stored_as_one_clean_line() -> None:
    memory = Memory()
    output = made(save_memory_tool(memory.save), fact=" likes\n\n## Heading\x1b[2J tabs ")
    assert memory.facts == ["likes ## Heading tabs"]
    assert text(output) == "Remembered in MEMORY.md: likes ## Heading tabs"


def test_a_fact_that_was_there_already_is_said_to_be() -> None:
    tool = save_memory_tool(Memory().save)
    assert text(made(tool, fact="likes tabs")).startswith("Remembered")
    again = text(made(tool, fact="likes tabs"))
    assert again == "MEMORY.md has this fact already; nothing was stored: likes tabs"


def test_saving_a_memory_is_a_change_that_may_need_approval() -> None:
    tool = save_memory_tool(Memory().save)
    assert (tool.name, tool.effect) == ("save_memory", "write")
    assert list(json.loads(tool.declaration.parameters)["properties"]) == ["fact"]


@pytest.mark.parametrize(
    "fact", ["", " \n", "\x00", "x" * 1_001, "x" * 1_000_000, "\x00" * 9_000 + "a"]
)
def test_a_fact_without_words_or_without_end_is_refused(fact: str) -> None:
    memory = Memory()
    assert made(save_memory_tool(memory.save), fact=fact).is_error
    assert memory.facts == []


@pytest.mark.parametrize("error", [PermissionError("read-only"), ToolFailed("not allowed")])
def test_a_memory_that_cannot_be_written_is_an_error_the_model_reads(error: Exception) -> None:
    output = made(save_memory_tool(Memory(error).save), fact="x")
    assert output.is_error
    assert str(error) in text(output)
