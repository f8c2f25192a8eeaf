"""What a rule or a mode lets run has no effect that it should not have: every hostile line that
is allowed is really run, in a sandbox full of traps."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest

from recollect.permissions.command_judge import judge_line
from recollect.permissions.command_rules import CommandRules, PermissionMode, parse_rules
from recollect.permissions.parsed_line import word_set
from tests.permissions.hostile_rules import RULED, RuledLine
from tests.permissions.trap_sandbox import WORK, TrapSandbox, find_harm, has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

_MODES: tuple[PermissionMode, ...] = ("plan", "ask", "edit", "free")
# These write files of the folder by their nature; the others only print.
_WRITERS = word_set("chmod cp curl git ln make mkdir mv npm rm sed tar tee touch")
_SAMPLE = RULED[::4]  # all of them in the long run
_NAMES = {name for one in RULED for name in re.findall(r"[\w./-]+", one.line)}
_GENEROUS = tuple(f"{name} *" for name in sorted(_NAMES) if re.fullmatch(r"[a-z][a-z0-9-]*", name))


@pytest.fixture(scope="module")
def traps(tmp_path_factory: pytest.TempPathFactory) -> TrapSandbox:
    return TrapSandbox(tmp_path_factory.mktemp("traps") / "one")


def _rules(one: RuledLine, mode: PermissionMode, *more: str) -> CommandRules:
    harm = () if one.allow == "touch *" else ("touch *",)
    return parse_rules(allow=(one.allow, *more), deny=(*harm, *one.deny), mode=mode)


def _allowed(
    lines: tuple[RuledLine, ...], traps: TrapSandbox, *, generous: bool
) -> Iterator[tuple[RuledLine, PermissionMode]]:
    more = tuple(rule for rule in _GENEROUS if rule != "touch *") if generous else ()
    for one in lines:
        for mode in ("ask",) if generous else _MODES:
            if mode in ("edit", "free") and one.honest:
                continue
            verdict = judge_line(
                one.line,
                _rules(one, mode, *more),
                root=WORK,
                sandboxed=True,
                find_secrets=traps.find_secrets,
            )
            if verdict.decision == "allow":
                yield one, mode


def _fired(allowed: Iterator[tuple[RuledLine, PermissionMode]], traps: TrapSandbox) -> list[str]:
    seen: dict[str, frozenset[str]] = {}
    fired = []
    for one, mode in allowed:
        if one.line not in seen:
            seen[one.line] = traps.run(one.line) - {"printed the environment"}
        may_write = mode in ("edit", "free") or one.allow.removesuffix(" *") in _WRITERS
        if harm := find_harm(seen[one.line], may_write=may_write):
            fired.append(f"{mode} {one.allow!r}: {one.line!r} {sorted(harm)[:3]}")
    return fired


def test_no_hostile_line_that_its_rule_or_a_mode_allows_fires(traps: TrapSandbox) -> None:
    fired = _fired(_allowed(_SAMPLE, traps, generous=False), traps)
    assert fired == [], "\n".join(fired)


def test_no_hostile_line_that_the_most_generous_rules_allow_fires(traps: TrapSandbox) -> None:
    fired = _fired(_allowed(_SAMPLE, traps, generous=True), traps)
    assert fired == [], "\n".join(fired)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("generous", [False, True])
def test_none_of_all_the_hostile_lines_fires_if_it_is_allowed(
    traps: TrapSandbox, generous: bool
) -> None:
    fired = _fired(_allowed(RULED, traps, generous=generous), traps)
    assert fired == [], "\n".join(fired)


def _quiet(lines: tuple[RuledLine, ...], traps: TrapSandbox) -> list[str]:
    fires = (one for one in lines if one.fires and _is_installed(one.allow.split()[0]))
    return [one.line for one in fires if not find_harm(traps.run(one.line))]


def _is_installed(program: str) -> bool:
    return shutil.which(program, path="/usr/bin:/bin") is not None


def test_the_hostile_lines_do_fire(traps: TrapSandbox) -> None:
    quiet = _quiet(tuple(one for one in RULED[::60] if "npm" not in one.line), traps)
    assert quiet == []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_all_the_hostile_lines_do_fire(traps: TrapSandbox) -> None:
    assert len(_quiet(RULED, traps)) <= 0.03 * len(RULED)
