"""A refusal names what helps, rules do not permit more than they say, and what a developer types
all day runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.permissions.command_judge import judge_line
from recollect.permissions.command_rules import CommandRules, parse_rule, parse_rules
from recollect.permissions.program_record import ProgramRecord
from recollect.permissions.program_table import find_record
from recollect.permissions.script_checks import SCRIPT_CHECKS
from recollect.permissions.shell_builtins import BUILTIN_CHECKS
from recollect.permissions.text_programs import TEXT_PROGRAMS
from tests.permissions.hostile_rules import RULED
from tests.permissions.trap_sandbox import WORK
from tests.permissions.workspaces import no_secrets

_LINES = (Path(__file__).parent / "developer_lines.txt").read_text(encoding="utf-8").splitlines()
FREE = CommandRules(mode="free")


def _decide(text: str, given: CommandRules) -> str:
    return judge_line(text, given, root=WORK, sandboxed=True, find_secrets=no_secrets).decision


def test_what_a_developer_types_all_day_runs_in_mode_free_with_a_sandbox() -> None:
    refused = [text for text in _LINES if _decide(text.replace("⏎", "\n"), FREE) != "allow"]
    assert refused == []


@pytest.mark.parametrize("sandboxed", [True, False])
def test_suggested_rules_allow_the_line_when_the_settings_have_them(sandboxed: bool) -> None:
    for one in RULED[::9]:
        verdict = judge_line(
            one.line, FREE, root=WORK, sandboxed=sandboxed, find_secrets=no_secrets
        )
        if verdict.suggested_rules:
            given = parse_rules(allow=verdict.suggested_rules, mode="free")
            again = judge_line(
                one.line, given, root=WORK, sandboxed=sandboxed, find_secrets=no_secrets
            )
            assert again.decision == "allow", (one.line, verdict.suggested_rules)


@pytest.mark.parametrize("text", ["CI=1 GIT_PAGER=x git log", "! git push", "time -p git push"])
def test_a_rule_with_more_than_words_gives_the_whole_line(text: str) -> None:
    assert parse_rule(text).line == text
    assert judge_line(text, parse_rules(allow=(text,)), sandboxed=False).decision == "allow"


def _inner(found: ProgramRecord) -> Iterator[ProgramRecord]:
    yield found
    for one in found.commands.values():
        yield from _inner(one)


def test_every_language_that_a_table_names_has_its_check() -> None:
    names = (*TEXT_PROGRAMS, "git", "npm", "cargo", "go", "pip", "uv", "python", "bash", "set")
    found = [one for name in names if (one := find_record(name)) is not None]
    checks = {inner.check for one in found for inner in _inner(one)} - {""}
    assert checks <= SCRIPT_CHECKS.keys() | BUILTIN_CHECKS.keys()


def test_a_message_with_the_words_of_a_deny_rule_runs_and_code_with_them_does_not() -> None:
    given = parse_rules(deny=("git push *",), allow=("hyperfine *",), mode="free")
    assert _decide("git commit -m 'describe git push'", given) == "allow"
    assert _decide("grep -rn 'git push' docs", given) == "allow"
    assert _decide("hyperfine 'git push'", given) == "ask"


def test_a_rule_for_publishing_permits_no_code_with_it() -> None:
    assert _decide("poetry publish", FREE) == "ask"
    assert (
        _decide("poetry publish", parse_rules(allow=("poetry publish *",), mode="free")) == "allow"
    )
    assert _decide("cargo publish --config x=y", parse_rules(allow=("cargo *",))) == "ask"
