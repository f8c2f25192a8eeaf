from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.terminal.command_help import EXAMPLES, GROUPS
from recollect.terminal.slash_commands import COMMANDS, parse_command

PAGE = (Path(__file__).parents[2] / "docs" / "terminal.md").read_text(encoding="utf-8")


def test_every_command_is_in_one_group_and_examples_are_of_commands() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(one.name for one in COMMANDS)
    assert set(EXAMPLES) <= set(grouped)
    for name, examples in EXAMPLES.items():
        assert all(each.split()[0] == f"/{name}" for each in examples)


def test_the_page_has_a_row_for_every_command_with_its_arguments_and_other_names() -> None:
    rows = re.findall(r"^\| `/(\w+)( [^`]*)?` \| ([^|]*) \|", PAGE, re.M)
    expected = {
        (one.name, one.arguments, ", ".join(f"`/{alias}`" for alias in one.aliases))
        for one in COMMANDS
    }
    found = {(name, given.strip().replace("\\|", "|"), also.strip()) for name, given, also in rows}
    assert found == expected


@pytest.mark.parametrize(
    "text", ["/etc/hosts is gone", "//help", "/ help", "/", "hi /help", "\n/x"]
)
def test_a_path_and_two_slashes_are_prompts(text: str) -> None:
    assert parse_command(text) is None


@given(st.text())
def test_any_text_is_a_command_or_a_prompt(text: str) -> None:
    command = parse_command(text)
    assert command is None or (text.startswith("/") and command[0] and "/" not in command[0])


def test_arguments_may_begin_on_the_next_line() -> None:
    assert parse_command("/Review\nthis file\nand that") == ("review", "this file\nand that")
