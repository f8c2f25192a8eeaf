"""Attacks that nobody thought of one by one: made from the data of programs, and at random.

What is allowed is run in the trap sandbox, random lines with bash and with dash. A fixed sample
runs always; `-m long` runs all of them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from recollect.permissions.command_judge import judge_line
from recollect.permissions.command_rules import CommandRules, PermissionMode, parse_rules
from recollect.permissions.folder_contents import FindSecrets
from tests.permissions.option_attacks import OptionAttack, make_option_attacks
from tests.permissions.random_attacks import RandomAttack, make_attack
from tests.permissions.trap_sandbox import WORK, TrapSandbox, find_harm, has_bubblewrap
from tests.permissions.workspaces import no_secrets

needs_bubblewrap = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
_SECONDS = 0.05  # of processor time, for one line
_DENY = ("touch *", "git push *")


@pytest.fixture(scope="module")
def traps(tmp_path_factory: pytest.TempPathFactory) -> TrapSandbox:
    return TrapSandbox(tmp_path_factory.mktemp("traps") / "one")


def _allowing_mode(attack: OptionAttack, traps: TrapSandbox) -> PermissionMode | None:
    """The strictest mode in which the program's own rule, or the mode itself, lets it run."""
    modes: tuple[PermissionMode, ...] = ("ask",) if attack.target.honest else ("ask", "free")
    for mode in modes:
        rules = parse_rules(allow=(f"{attack.target.program} *",), deny=_DENY, mode=mode)
        verdict = judge_line(
            attack.line, rules, root=WORK, sandboxed=True, find_secrets=traps.find_secrets
        )
        if verdict.decision == "allow":
            return mode
    return None


def _run_options(attacks: Iterable[OptionAttack], traps: TrapSandbox) -> list[str]:
    fired = []
    for attack in attacks:
        if (mode := _allowing_mode(attack, traps)) is None:
            continue
        effects = traps.run(attack.line) - {"printed the environment"}
        may_write = attack.target.writes or mode == "free"
        if harm := find_harm(effects, may_write=may_write):
            fired.append(f"{mode}: {attack.line!r} {sorted(harm)[:3]}")
    return fired


@needs_bubblewrap
def test_no_option_of_a_known_program_carries_a_payload_past_its_rule(traps: TrapSandbox) -> None:
    fired = _run_options(list(make_option_attacks())[::97], traps)
    assert fired == [], "\n".join(fired)


@needs_bubblewrap
@pytest.mark.long
@pytest.mark.timeout(7200)
def test_no_option_at_all_carries_a_payload_past_its_rule(traps: TrapSandbox) -> None:
    fired = _run_options(make_option_attacks(), traps)
    assert fired == [], "\n".join(fired)


def _judge_timed(
    attacks: Iterable[RandomAttack], find_secrets: FindSecrets
) -> Iterator[tuple[RandomAttack, bool, float]]:
    gc.disable()  # its pauses are not the judge's
    try:
        for number, attack in enumerate(attacks):
            if number % 2_000 == 0:
                gc.collect()
            begun = time.thread_time()
            verdict = judge_line(
                attack.line, attack.rules, root=WORK, sandboxed=True, find_secrets=find_secrets
            )
            yield attack, verdict.decision == "allow", time.thread_time() - begun
    finally:
        gc.enable()


def _run_random(attacks: Iterable[RandomAttack], traps: TrapSandbox) -> list[str]:
    fired = []
    for attack in attacks:
        for shell in ("bash", "dash"):
            effects = traps.run(attack.line, shell=shell) - {"printed the environment"}
            if harm := find_harm(effects, may_write=True):
                fired.append(f"{shell} {attack.mode}: {attack.line!r} {sorted(harm)[:3]}")
    return fired


_PIECES = (
    "[]]", "[", "(", "{", "}", "\\", "'", '"', "$(", "`", "*", "?", "a|", "a;", "$x", "${x:-",
    "$((", "-", "--", "~/", "../", "/!!", "s/a/b/;", "{a,b}", "[a-z]", "*a", "?(", "=(", "x=",
    "#", "%", "[[:alpha:]]", "**/", "é", "a ", "-a ", "a=b ", "a{1..9}", "time ", "sudo ", "env ",
    "bash -c ", "xargs ", "timeout 1 ", "-name a -o ", "-exec cat {} + ", "export x=$x;",
    "for i in a; do ", "[[ a ]] && ",
)  # fmt: skip
_BEFORE_AND_AFTER = (
    "{}", "ls {}", "sed -n '/{}/!!'", "sed 's/{}/x/'", "awk '{}'", "cat {}", "git {} push",
    "cp {} .", "find . -name '{}' -exec cat x +", "rg -g '{}' x", "bash -c '{}'",
    "PYTHONPATH={} ls", "foo {}", "python -c '{}'", "find . {}", "find . | xargs {}", "cat $({})",
)  # fmt: skip


@pytest.mark.parametrize("piece", _PIECES)
def test_no_repeated_piece_of_syntax_keeps_the_judge_busy(piece: str) -> None:
    rules = parse_rules(allow=("cat *", "ls *", "sed *", "rg *", "cp *"), deny=_DENY, mode="free")
    for shape in _BEFORE_AND_AFTER:
        most = 1_450 // len(piece.split()) if " " in piece else 8_000  # words of a line
        line = shape.replace("{}", (piece * most)[:7_900])
        # quadratic ones took seconds; a garbage collection in between is not the judge's
        fast = any(_thread_seconds(line, rules) < 4 * _SECONDS for _ in range(3))
        assert fast, f"{shape} {piece}"


@pytest.mark.parametrize("line", ["export " + "@a" * 3_900, "test " + "[a" * 3_900])
def test_a_declaration_or_a_test_takes_no_longer_than_its_length(line: str) -> None:
    rules = parse_rules(mode="free")
    assert min(_thread_seconds(line, rules) for _ in range(3)) < _SECONDS


def _thread_seconds(line: str, rules: CommandRules) -> float:
    begun = time.thread_time()
    judge_line(line, rules, root=WORK, sandboxed=True, find_secrets=no_secrets)
    return time.thread_time() - begun


@needs_bubblewrap
def test_random_lines_that_are_allowed_have_no_effect(traps: TrapSandbox) -> None:
    judged = list(_judge_timed(map(make_attack, range(400)), traps.find_secrets))
    fired = _run_random([attack for attack, allowed, _ in judged if allowed][:30], traps)
    assert fired == [], "\n".join(fired)


@needs_bubblewrap
@pytest.mark.long
@pytest.mark.timeout(7200)
def test_two_hundred_thousand_random_lines_are_judged_in_time_and_have_no_effect(
    traps: TrapSandbox,
) -> None:
    allowed, slow, worst, count = [], [], 0.0, 0
    attacks, looked = map(make_attack, range(200_000)), cache(traps.find_secrets)
    for attack, is_allowed, seconds in _judge_timed(attacks, looked):
        count, worst = count + 1, max(worst, seconds)
        if seconds > _SECONDS:
            slow.append((seconds, attack.line))
        if is_allowed:
            allowed.append(attack)
    fired = _run_random(allowed[:: max(1, len(allowed) // 4_000)], traps)
    figures = f"{count} lines, {len(allowed)} allowed, slowest {worst * 1000:.1f} ms"
    assert slow == [], figures
    assert fired == [], "\n".join(fired)
