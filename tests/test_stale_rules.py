"""A stale rule is one row; these tests name what a new row still lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.settings import Settings, parse_settings
from recollect.stale_rules import STALE_RULES, StaleRule
from recollect.toolkinds import TOOL_NAMES
from recollect.view.elision_rules import ElisionRules
from recollect.view.placeholders import write_placeholder
from tests.view.growing_log import GrowingLog
from tests.view.logs import STALE_TOOLS

ROOT = Path(__file__).parent.parent
for_each_rule = pytest.mark.parametrize("rule", STALE_RULES, ids=lambda rule: rule.name)


def wrong_kinds(rule: StaleRule) -> Iterator[str]:
    for kind in rule.tool_kinds:
        if kind not in TOOL_NAMES:
            yield f"the tool kind {kind!r} in src/recollect/toolkinds.py"
        if kind in ("read", "write", "edit", "delete"):
            yield f"another tool kind: uses of {kind!r} are judged by file, not by age"
        if sum(kind in other.tool_kinds for other in STALE_RULES) > 1:
            yield f"a tool kind of its own: {kind!r} is in two rules"


def missing(rule: StaleRule) -> Iterator[str]:
    """What a rule lacks, each with the place where it belongs."""
    page = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    tests = (ROOT / "tests/view/test_elision_rules.py").read_text(encoding="utf-8")
    if "{what}" not in rule.english:
        yield "{what} in the English placeholder"
    if not re.search(r"[\u4e00-\u9fff]", rule.chinese):
        yield "a Chinese placeholder"
    yield from wrong_kinds(rule)
    if not re.search(rf"^\| `{rule.name}` \|", page, re.M):
        yield f"a row `{rule.name}` in the table of rules in docs/settings.md"
    for key in (rule.keep_setting, rule.age_setting):
        if not re.search(rf"^\| `context.{key}` \|", page, re.M):
            yield f"a row `context.{key}` in docs/settings.md"
    if f'"{rule.name}"' not in tests:
        yield "an example in tests/view/test_elision_rules.py"


@for_each_rule
def test_a_rule_lacks_nothing(rule: StaleRule) -> None:
    assert list(missing(rule)) == []


def test_names_and_settings_are_those_that_settings_files_and_logs_hold() -> None:
    known = {rule.name: (rule.keep_setting, rule.age_setting) for rule in STALE_RULES}
    assert known["stale-shell"] == ("keep_shell", "shell_age")
    assert known["stale-search"] == ("keep_search", "search_age")
    assert len(known) == len(STALE_RULES)
    defaults = {rule.name: (rule.keep, rule.age) for rule in Settings().context.stale_rules}
    assert defaults["stale-shell"] == (5, 900.0)
    assert defaults["stale-search"] == (5, 600.0)


@for_each_rule
def test_its_settings_take_effect(rule: StaleRule) -> None:
    text = f"[context]\n{rule.keep_setting} = 3\n{rule.age_setting} = 1.5"
    rules = ElisionRules.from_settings(parse_settings(text).settings).stale
    (changed,) = [one for one in rules if one.name == rule.name]
    assert (changed.keep, changed.age) == (3, 1.5)
    assert [one for one in rules if one.name != rule.name] == [
        one for one in STALE_RULES if one.name != rule.name
    ]


@for_each_rule
def test_the_newest_results_stay_and_older_ones_go_when_their_time_is_up(rule: StaleRule) -> None:
    log = GrowingLog()
    tool = STALE_TOOLS[rule.name][0]
    log.use(tool, {}, is_error=True)  # errors stay and are not counted
    uses = [log.use(tool, {}) for _ in range(rule.keep + 2)]
    age = round(rule.age * 1_000)
    assert log.elided(now=age) == []
    assert log.elided(now=age + 1) == [uses[1], uses[0]]
    assert {saving.rule for saving in log.plan().savings} == {rule.name}


@for_each_rule
def test_every_tool_of_its_kinds_is_looked_at(rule: StaleRule) -> None:
    for tool in STALE_TOOLS[rule.name]:
        log = GrowingLog()
        first, *_ = [log.use(tool, {}) for _ in range(rule.keep + 1)]
        assert log.elided() == [first], tool


@for_each_rule
def test_its_placeholder_names_the_tool_the_size_and_the_handle(rule: StaleRule) -> None:
    english = write_placeholder(rule.name, "the tool", 1_234, "e1")
    assert "the tool" in english
    assert english.startswith("[recall e1: ")
    assert english.endswith(", 1,234 tokens]")
    chinese = write_placeholder(rule.name, "the tool", 1_234, "e1", "zh")
    assert chinese == f"[recall e1] {rule.chinese} (1,234 token)"
