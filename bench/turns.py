"""The agent's own time per turn: everything but the model and the tools, beside peers' agents."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench import turns_peers
from bench.measure import ROOT, Failed, Result, Setting, fresh, progress
from bench.report import Row, Table, figure, seconds

_TURNS, _FEW = 20, 5  # of a peer with a long session only a few: its ratio is clear enough
_WARM_UP = 3
_PIECE = 8  # characters
_SLOW = 1.0  # seconds for a turn; such a peer is measured in one round only
_FIFTH = 0.2
_TIMEOUT = 900
_STREAMED = "streamed"
_CLOCKS = {"wall": "wall on disk", "cpu": "CPU"}


def turns(setting: Setting) -> Table:
    few, many = setting.scale.views
    names = _peers(setting)
    with fresh(setting.memory) as ready:
        for name in ("ours", *names):
            for n in (few, many):
                progress(f"turns: {name} says {n:,} messages")
                _prepared(ready, name, n)
        found = _rounds(setting, ready, names)
    rows = [row for clock in _CLOCKS for row in _rows(setting, found, names, clock)]
    note = (
        "A turn: the user says something, the model calls a tool that only reads, gets its "
        "result and answers; model and tool answer at once, from the same script for all, with "
        "whole replies. Ours: `Agent.run` with a store on disk that syncs every append, rules, "
        "view, budget, hooks, loop watch, exact counts, and the bytes of both requests, in the "
        "pieces in which `HttpModel` hands them to the connection. The peers write no bytes for a "
        "provider. The session already has "
        f"{few:,} or {many:,} messages and all of them are sent. Ours: the two sessions in turn. "
        f"Median of {_TURNS} turns after {_WARM_UP} (a peer with {many:,} messages: {_FEW} after "
        f"1), then of {setting.scale.rounds} rounds, a process each (a peer that takes over "
        f"{_SLOW:.0f} s for a turn: one round). In brackets the smallest and the largest ratio."
    )
    return Table("turns", "The agent's own time per turn", note, tuple(rows))


def _peers(setting: Setting) -> list[str]:
    if not setting.with_peers:
        setting.notes.append("turns: the peers need --peers and their packages")
        return []
    found = []
    for name, peer in turns_peers.PEERS.items():
        known = turns_peers.installed(name)
        setting.notes.append(f"{name}, turns: {peer.does if known else 'not installed'}")
        found += [name] if known else []
    return found


def _prepared(ready: Path, name: str, n: int) -> None:
    place = _folder(ready, name) / str(n)
    place.mkdir(parents=True)
    _worked(name, "prepare", place, n=n)


def _folder(ready: Path, name: str) -> Path:
    return ready / name.replace(" ", "-")


def _rounds(setting: Setting, ready: Path, names: list[str]) -> list[dict[str, Result]]:
    """Of each round by contender, then by the number of messages."""
    found: list[dict[str, Result]] = []
    for number in range(setting.scale.rounds):
        one = {}
        for name, piece in (("ours", 0), (_STREAMED, _PIECE)):
            progress(f"turns, round {number + 1}: {name}")
            options = {"sizes": setting.scale.views, "count": _TURNS, "warm_up": _WARM_UP}
            one[name] = _measured(setting, _folder(ready, "ours"), "ours", piece=piece, **options)
        for name in names:
            slow = (
                {n for n, took in found[0][name].items() if took["wall"] > _SLOW}
                if number
                else set()
            )
            one[name] = _peer(setting, ready, name, slow)
        found.append(one)
    return found


def _peer(setting: Setting, ready: Path, name: str, slow: set[str]) -> Result:
    few, many = setting.scale.views
    found: Result = {}
    for n, count, warm_up in ((few, _TURNS, _WARM_UP), (many, _FEW, 1)):
        if str(n) in slow:
            continue
        progress(f"turns: {name} with {n:,}")
        counted = {"n": n, "count": count, "warm_up": warm_up}
        prepared = _folder(ready, name) / str(n)
        try:
            found[str(n)] = _measured(setting, prepared, name, **counted)
        except Failed as failure:  # the others are worth having all the same
            reason = str(failure).strip().splitlines()[-1]
            setting.notes.append(f"{name} with {n:,} messages failed: {reason}")
    return found


def _measured(setting: Setting, prepared: Path, name: str, **options: Any) -> Result:
    """On a copy on disk of what was prepared."""
    with fresh(setting.disk) as place:
        shutil.copytree(prepared, place, dirs_exist_ok=True)
        return _worked(name, "turns", place, **options)


def _worked(contender: str, task: str, place: Path, **options: Any) -> Result:
    whose = "turns" if contender == "ours" else f"turns of {contender}"
    job = {"contender": whose, "task": task, "place": str(place), "options": options}
    with fresh(place.parent) as beside:
        out = beside / "found.json"
        call = [sys.executable, "-m", "bench.worker", str(out), json.dumps(job)]
        done = subprocess.run(
            call, check=False, cwd=ROOT, capture_output=True, text=True, timeout=_TIMEOUT
        )
        if done.returncode:
            raise Failed(done.stderr.strip()[-800:] or f"exit {done.returncode}")
        found: Result = json.loads(out.read_text())
        return found


# --- rows ----------------------------------------------------------------------------------------


def _rows(
    setting: Setting, found: list[dict[str, Result]], names: list[str], clock: str
) -> list[Row]:
    few, many = (str(n) for n in setting.scale.views)
    shown = {n: f"{int(n):,}" for n in (few, many)}
    what, wanted = _CLOCKS[clock], clock == "wall"
    growth = [one["ours"][many][clock] / one["ours"][few][clock] for one in found]
    ours = {n: [one["ours"][n][clock] for one in found] for n in (few, many)}
    streamed = {n: [one[_STREAMED][n][clock] for one in found] for n in (few, many)}
    target, fifth = (1.5, _FIFTH) if wanted else (None, None)
    title = f"{what}, {shown[many]} messages : {shown[few]}{_spread(growth)}"
    rows = [Row(title, statistics.median(growth), target, _median(ours[few]), rounds=found)]
    rows += [
        Row(f"{what}, {shown[n]} messages{pieces}", statistics.median(took) * 1e3, unit=" ms")
        for pieces, times in (("", ours), (f", in pieces of {_PIECE} characters", streamed))
        for n, took in times.items()
    ]
    for name in names:
        for n in (few, many):
            pairs = [(one["ours"][n], one[name][n]) for one in found if n in one[name]]
            if not pairs:
                continue
            ratios = [mine[clock] / theirs[clock] for mine, theirs in pairs]
            title = f"{what}, {shown[n]} messages : {name}{_spread(ratios)}"
            beside = _median([theirs[clock] for _, theirs in pairs])
            rows.append(Row(title, statistics.median(ratios), fifth, beside))
    return rows


def _median(times: list[float]) -> str:
    return seconds(statistics.median(times))


def _spread(ratios: list[float]) -> str:
    return f" ({figure(min(ratios))} … {figure(max(ratios))})" if len(ratios) > 1 else ""
