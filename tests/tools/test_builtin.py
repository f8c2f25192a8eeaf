"""Every tool that comes with recollect is complete: what a new one still lacks is named here."""

from __future__ import annotations

import inspect
import json
import re
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import pytest

from recollect.profiles import CODER_MODEL, find_profile
from recollect.toolkinds import classify_tool
from recollect.tools import builtin
from recollect.tools.builtin import builtin_tools
from recollect.tools.tool import Tool

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (\w+) \| \w.*\. \|$", re.M)


def not_called(*_: object) -> NoReturn:
    raise AssertionError("a declaration calls nothing")


TOOLS = builtin_tools(not_called, not_called)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_has_descriptions_a_row_in_the_docs_and_a_kind(tool: Tool) -> None:
    rows = {name: row for name, *row in ROW.findall(PAGE.read_text(encoding="utf-8"))}
    missing = [] if tool.declaration.description else ["a docstring in tools/builtin.py"]
    for name, schema in json.loads(tool.declaration.parameters)["properties"].items():
        if not schema.get("description"):
            missing.append(f"a line `{name}: …` in its docstring in tools/builtin.py")
    if rows.get(tool.name, [""])[0] != tool.effect:
        missing.append(f"a row in docs/tools.md: | `{tool.name}` | {tool.effect} | kind | … |")
    elif rows[tool.name][1] != classify_tool(tool.name):
        missing.append(
            f"its name under {rows[tool.name][1]!r} in toolkinds.py, as docs/tools.md says"
        )
    assert missing == []


def test_every_declared_tool_is_offered() -> None:
    declared = {tool.name for tool in vars(builtin).values() if isinstance(tool, Tool)}
    assert declared - {tool.name for tool in TOOLS} == set(), "name it in `builtin_tools`"


def test_the_docs_have_no_row_for_a_tool_that_is_gone() -> None:
    rows = {name for name, *_ in ROW.findall(PAGE.read_text(encoding="utf-8"))}
    assert rows - {tool.name for tool in TOOLS} == set()


def test_a_small_window_gets_fewer_tools() -> None:
    small = {tool.name for tool in builtin_tools(not_called, not_called, small=True)}
    assert small < {tool.name for tool in TOOLS}
    assert {"read_file", "replace", "run_shell_command", "recall"} <= small


def test_a_model_that_many_tools_confuse_gets_those_for_files_and_commands() -> None:
    names = {tool.name for tool in builtin_tools(not_called, not_called, few=True)}
    files = {"read_file", "write_file", "replace", "list_directory", "search_file_content"}
    assert names == files | {"run_shell_command"}
    assert find_profile(CODER_MODEL).few_tools


def test_each_call_leads_to_a_function_that_takes_its_arguments() -> None:
    calls = re.findall(
        r'_call\(\s*"([\w.]+):(\w+)",\s*([^"]*?),?\s*\)\n', inspect.getsource(builtin)
    )
    assert len(calls) == inspect.getsource(builtin).count("await _call(") > 8
    for module, name, given in calls:
        function = getattr(import_module(f"recollect.tools.{module}"), name)
        words = [word.strip() for word in given.strip("*()").split(",")]
        named = {word.partition("=")[0]: word for word in words if "=" in word}
        inspect.signature(function).bind(*range(len(words) - len(named)), **named)
