"""No hostile line that mode `free` or a generous rule lets run has an effect in a real sandbox."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from recollect.execution.bubblewrap import PRIVATE_FOLDERS
from recollect.permissions.command_rules import PermissionMode
from tests.execution.hostile_road import HostileRoad
from tests.execution.workbench import isolation_of
from tests.permissions.hostile_rules import RULED, RuledLine

LET_THROUGH = tuple(one for one in RULED if one.held)
OTHERS = tuple(one for one in RULED if not one.held)
# They print a secret, where nothing hides it.
PRINTERS = (
    "python3 -c 'print(open(chr(46)+\"env\").read())'",
    "make CMD='cat .env'",
    "x=.xnv; cat ${x/x/e}",
    "printf 'cat .%s' env > s.sh; bash s.sh",
    "cat $(printf '.%s' env)",
)
_PROGRAM = re.compile(r"(?<![\w./-])[a-z][a-z0-9-]*(?![\w./-])")


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def road(request: pytest.FixtureRequest) -> Iterator[HostileRoad]:
    isolation_of(request.param)  # skips where it is missing
    base = _outside_temporary_folders()
    with pytest.MonkeyPatch.context() as patch:
        made = HostileRoad(base, request.param)
        patch.setenv("RECOLLECT_HOME", str(base / "data"))
        patch.setenv("PATH", f"{made.work}/bin:/usr/bin:/bin")
        yield made
    shutil.rmtree(base)


def _outside_temporary_folders() -> Path:
    """Else the folder above the workspace would be the sandbox's own."""
    for place in (Path(sys.prefix).resolve(), Path.home().resolve()):
        if not any(place.is_relative_to(hidden) for hidden in PRIVATE_FOLDERS):
            with suppress(OSError):
                return Path(tempfile.mkdtemp(dir=place, prefix="recollect-test-"))
    pytest.skip("no folder outside the temporary ones can be written")


def _fired(
    lines: tuple[RuledLine, ...],
    road: HostileRoad,
    *,
    generous: bool = False,
    show: tuple[str, ...] = (),
) -> list[str]:
    mode: PermissionMode = "ask" if generous else "free"
    fired = []
    for one in lines:
        # a rule with `*` for whatever in the line may be a program
        allow = tuple(f"{name} *" for name in sorted(set(_PROGRAM.findall(one.line))))
        permission = road.judge(one.line, mode, allow if generous else (), show)
        if permission.reason:
            continue
        ran = road.run(one.line, approved=bool(show) or permission.word_for_word)
        if ran.effects - ({"printed a secret"} if show else set()):
            fired.append(f"{one.line!r} {sorted(ran.effects)[:3]}\n{ran.text[:300]}")
    return fired


def test_no_line_that_mode_free_lets_through_has_an_effect(road: HostileRoad) -> None:
    fired = _fired(LET_THROUGH[::12], road)
    assert fired == [], "\n".join(fired)


def test_whoever_shows_all_secrets_gives_away_nothing_else(road: HostileRoad) -> None:
    fired = _fired(LET_THROUGH[5::20], road, show=(".",))
    assert fired == [], "\n".join(fired)


def test_no_line_that_generous_rules_let_through_has_an_effect(road: HostileRoad) -> None:
    fired = _fired(RULED[::320], road, generous=True)
    assert fired == [], "\n".join(fired)


@pytest.mark.parametrize("line", PRINTERS)
def test_what_computes_a_secrets_name_does_not_print_it(road: HostileRoad, line: str) -> None:
    ran = road.run(line, approved=True)
    assert "printed a secret" in ran.effects, ran.text
    if road.judge(line, "free").reason:
        return
    ran = road.run(line)
    assert ran.effects == frozenset(), ran.text
    assert "hidden from this command: .env" in ran.text


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_line_at_all_that_mode_free_lets_through_has_an_effect(road: HostileRoad) -> None:
    fired = _fired(LET_THROUGH, road)
    fired += _fired(LET_THROUGH, road, show=(".",))
    assert fired == [], "\n".join(fired)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("generous", [False, True])
def test_none_of_the_other_hostile_lines_has_an_effect(road: HostileRoad, generous: bool) -> None:
    fired = _fired(OTHERS, road, generous=generous)
    assert fired == [], "\n".join(fired)
