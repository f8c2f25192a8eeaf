from __future__ import annotations

import re

import pytest

from recollect.permissions.command_judge import judge_line
from recollect.permissions.command_parser import parse_line
from recollect.permissions.command_rules import CommandRule, CommandRules, parse_rules
from tests.permissions.harmless_commands import HARMLESS, SENSIBLE
from tests.permissions.hostile_folder import HostileFolder, can_run
from tests.permissions.hostile_programs import HOSTILE
from tests.permissions.workspaces import no_secrets

# Every name that stands anywhere in a hostile command is allowed with any further words: the
# program, what it wraps, its files. Only `touch`, the harm itself, is not.
_NAMES = {name for case in HOSTILE for name in re.split(r"[\s;|&()'\"]+", case.command)}
GENEROUS = CommandRules(
    allow=tuple(
        CommandRule((name,), is_prefix=True) for name in _NAMES if not name.endswith("touch")
    )
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> HostileFolder:
    return HostileFolder(tmp_path_factory.mktemp("hostile"))


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_hostile_command_fires_and_is_not_allowed_by_the_most_generous_rules(
    number: int, folder: HostileFolder
) -> None:
    case = HOSTILE[number]
    if not can_run(case):
        pytest.skip(f"{case.needs} is not installed")
    assert folder.fires(case), f"does not fire: {case.command[:200]!r}"
    assert (
        judge_line(case.command, GENEROUS, sandboxed=True, find_secrets=no_secrets).decision
        != "allow"
    ), case.command[:200]


@pytest.mark.parametrize("mode", ["plan", "ask"])
def test_no_hostile_command_runs_where_no_user_can_be_asked(mode: str) -> None:
    given = CommandRules(allow=GENEROUS.allow, mode="plan" if mode == "plan" else "ask")
    verdicts = [
        judge_line(case.command, given, interactive=False, sandboxed=True, find_secrets=no_secrets)
        for case in HOSTILE
    ]
    assert {verdict.decision for verdict in verdicts} == {"deny"}


def test_exact_rules_for_parts_of_a_line_do_not_allow_what_is_never_allowed_by_rule() -> None:
    for case in HOSTILE:
        commands = parse_line(case.command).commands
        exact = tuple(
            CommandRule(command.words)
            for command in commands
            if not command.words[0].endswith("touch")
        )
        given = CommandRules(allow=exact)
        if not any(one.gives_line(case.command, parse_line(case.command)) for one in exact):
            verdict = judge_line(case.command, given, sandboxed=True, find_secrets=no_secrets)
            assert verdict.decision != "allow", case.command[:200]


def test_at_least_two_hundred_hostile_commands_need_nothing_unusual() -> None:
    usual = {case.command for case in HOSTILE if not case.needs and can_run(case)}
    assert len(usual) >= 200


def test_nineteen_of_twenty_everyday_commands_are_allowed_by_sensible_rules() -> None:
    given = parse_rules(allow=SENSIBLE)
    asked = [
        text
        for text in HARMLESS
        if judge_line(text, given, sandboxed=True, find_secrets=no_secrets).decision != "allow"
    ]
    assert len(HARMLESS) >= 100
    assert len(asked) <= len(HARMLESS) * 0.05, asked


def test_sensible_rules_allow_no_hostile_command() -> None:
    given = parse_rules(allow=SENSIBLE)
    wrong = [
        case.command
        for case in HOSTILE
        if judge_line(case.command, given, sandboxed=True, find_secrets=no_secrets).decision
        == "allow"
    ]
    assert wrong == []
