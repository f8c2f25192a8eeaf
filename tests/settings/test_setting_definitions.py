"""Each setting is one field with its meaning; these tests name what a new one still lacks."""

from __future__ import annotations

import ast
import inspect
import re
from itertools import pairwise
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from recollect.agent.hook_events import EVENT_NAMES
from recollect.agent.hooks import DEFAULT_TIMEOUT
from recollect.settings import (
    CustomModel,
    HookCommand,
    Settings,
    parse_settings,
    setting_definitions,
)
from recollect.settings.setting_definitions import SETTINGS_SECTIONS, HookEventName
from recollect.stale_rules import STALE_RULES

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
TABLES: dict[str, type[msgspec.Struct]] = {
    "": Settings,
    **{f"{name}.": section for name, section in SETTINGS_SECTIONS.items()},
    "models.NAME.": CustomModel,
    "hooks.": HookCommand,
}
FIELDS = {
    prefix + field.name: field
    for prefix, table in TABLES.items()
    for field in msgspec.structs.fields(table)
    if prefix or field.name not in (*SETTINGS_SECTIONS, "models", "hooks")
}
# generated from the table of stale rules; tests/test_stale_rules.py checks that each has a row
OF_STALE_RULES = {
    f"context.{name}" for rule in STALE_RULES for name in (rule.keep_setting, rule.age_setting)
}


def read_meanings() -> dict[str, str]:
    """The text after each field, by key."""
    prefixes = {base.__name__: prefix for prefix, t in TABLES.items() for base in t.__mro__[:-2]}
    classes = ast.parse(inspect.getsource(setting_definitions)).body
    return {
        prefixes[node.name] + ast.unparse(field.target): " ".join(str(text.value.value).split())
        for node in classes
        if isinstance(node, ast.ClassDef) and node.name in prefixes
        for field, text in pairwise(node.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


MEANINGS = read_meanings()
ROWS = {
    key: (default, meaning)
    for key, default, meaning in re.findall(
        r"^\| `([\w.]+)` \| (.*?) \| (.*) \|$", PAGE.partition("## All settings")[2], re.M
    )
}


def shown_default(key: str) -> str:
    field = FIELDS[key]
    if key == "models.NAME.model":
        return "NAME"
    if field.required:
        return "required"
    if field.default is None:
        return "by its name" if key.startswith("models.") else "not set"
    default = {} if field.default is msgspec.NODEFAULT else field.default
    return f"`{msgspec.json.format(msgspec.json.encode(default), indent=0).decode()}`"


@pytest.mark.parametrize("key", FIELDS)
def test_a_setting_lacks_nothing(key: str) -> None:
    default, meaning = ROWS.get(key, ("", ""))
    expected = MEANINGS.get(key, meaning if key in OF_STALE_RULES else "")
    assert expected, f"say what {key} means, in a string after its field"
    row = f"| `{key}` | {shown_default(key)} | {expected} |"
    told = meaning == expected and default.startswith(shown_default(key))
    assert told, f"docs/settings.md needs the row {row}"


def test_no_other_setting_is_documented() -> None:
    assert set(ROWS) - set(FIELDS) == set()


def test_the_examples_of_the_page_are_accepted() -> None:
    found = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    first, project, routing = (parse_settings(text).settings for text in found)
    assert first.generation.temperature == 0.3
    assert project.hooks[0].words == ("./scripts/check-call.py", "--strict")
    assert len(routing.routing.choices) == 2


def test_the_values_of_hooks_are_those_of_the_code_that_runs_them() -> None:
    assert get_args(HookEventName) == EVENT_NAMES
    assert HookCommand(event="AfterTool", command="a").timeout == DEFAULT_TIMEOUT
