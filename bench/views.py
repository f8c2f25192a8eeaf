"""The view: how fast it is made, grown and resumed; what rules save of it and snapshots keep."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from bench import views_peers
from bench.measure import ROOT, Failed, Result, Setting, fresh, once, progress, run
from bench.report import Row, Table, seconds

_APPENDS = 500
_OFTEN = 3  # times the usual rounds: a process may find the machine slow for all of its short life
_EVERY, _KEPT = 2_000, 300  # entries between compactions, and on both sides of the newest one
_RESUMED = 40  # often, because a busy machine lengthens most of them
_TARGETS = {"openai-agents": 1.0, "google-adk": 0.1}
_CHARACTERS = 14_600  # what the agent that wrote the transcripts needs for its own summaries
_COMPACT = f"compact --file {{past}} --no-model --budget-chars {_CHARACTERS} --print"
_SCORED = re.compile(r"^(\S{1,40}) {2,}(\w.*?)  (\d+) characters  ([\d.]+) s$", re.M)
_LONG = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl")
_SHARE = re.compile(r"(\w+) ([\d.]+(?:/\d+)?)")


def view(setting: Setting) -> Table:
    rows = [*_growing(setting), *_ready(setting, working=False), *_ready(setting, working=True)]
    note = (
        f"One more message: `append` and `tokens`, median of {_APPENDS} appends to the two "
        "sessions in turn. Ready to send: `fold`, `plan` with all rules and `messages`, CPU "
        "time, from entries in memory, with nothing remembered from the round before; 1 is the "
        "peer's time for the same messages, given as its own items. In the working session the "
        "rules have something to leave out, and their edits are appended; the peers shorten their "
        "outputs and count nothing, so there is no target. "
        f"Medians of {_OFTEN * setting.scale.rounds} rounds, a process each, ours and the peers in "
        "turn; in brackets the smallest and the largest ratio of a round."
    )
    return Table("view", "The view", note, tuple(rows))


def _growing(setting: Setting) -> list[Row]:
    few, many = setting.scale.views
    found = []
    for number in range(setting.scale.rounds):
        progress(f"growing views round {number + 1}")
        options = {"sizes": setting.scale.views, "appends": _APPENDS}
        found.append(once("view", "growing", setting.memory, **options))
    ratio = statistics.median(one["long"] / one["short"] for one in found)
    long = statistics.median(one["long"] for one in found)
    short = statistics.median(one["short"] for one in found)
    return [
        Row(
            f"one more message, {many:,} messages : {few:,}",
            ratio,
            1.5,
            seconds(short),
            rounds=found,
        ),
        Row(f"one more message to {many:,}", long * 1e6, 200, unit=" µs"),
        Row(
            f"one more message to {many:,}, 99th of 100",
            statistics.median(one["long_p99"] for one in found) * 1e6,
            unit=" µs",
        ),
    ]


def _ready(setting: Setting, *, working: bool) -> list[Row]:
    n, found = setting.scale.views[1], _in_turn(setting, working=working)
    mine = found["view"]
    what = f"{n:,} messages ready to send"
    if working:
        what = f"{n:,} of a working session, {mine[0]['left_out']:,} results left out"
    rows = [Row(f"{what}, CPU", _median(mine) * 1e3, unit=" ms", rounds=found)]
    options = {"n": n, "working": working, "counted": True}
    counted = [once("view", "ready", setting.memory, **options) for _ in mine]
    rows.append(Row(f"{what}, every token counted, CPU", _median(counted) * 1e3, unit=" ms"))
    for name, results in found.items():
        failed = [one["failed"] for one in results if "failed" in one]
        if failed:
            setting.notes.append(f"{name}: {failed[0].splitlines()[-1]}")
        elif name != "view":
            ratios = [one["cpu"] / other["cpu"] for one, other in zip(mine, results, strict=True)]
            spread = f"({min(ratios):.2g}× … {max(ratios):.2g}×)"
            beside = f"{name} {seconds(_median(results))}"
            target = None if working else _TARGETS[name]
            ratio = statistics.median(ratios)
            rows.append(Row(f"{what} : {name} {spread}", ratio, target, beside))
    return rows


def _median(results: list[Result]) -> float:
    return float(statistics.median(one["cpu"] for one in results))


def _in_turn(setting: Setting, *, working: bool) -> dict[str, list[Result]]:
    names = ["view", *_peers(setting)]
    found: dict[str, list[Result]] = {name: [] for name in names}
    for number in range(_OFTEN * setting.scale.rounds):
        for name in names:
            progress(f"ready to send, working={working}, round {number + 1}: {name}")
            options = {"n": setting.scale.views[1], "working": working}
            try:
                found[name].append(once(name, "ready", setting.memory, **options))
            except Failed as failure:
                if name == "view":
                    raise
                found[name].append({"failed": str(failure)})
    return found


def _peers(setting: Setting) -> list[str]:
    if not setting.peers:
        setting.notes.append("view: its peers need --peers and their packages")
        return []
    for name, peer in views_peers.PEERS.items():
        known = views_peers.installed(name)
        setting.notes.append(f"{name}: {peer.does if known else 'not installed'}")
    return [name for name in views_peers.PEERS if views_peers.installed(name)]


def resume(setting: Setting) -> Table:
    sizes = setting.scale.resumed
    took: dict[int, list[Result]] = {n: [] for n in sizes}
    with fresh(setting.disk) as parent:
        for n in sizes:
            progress(f"preparing {n:,} entries with compactions")
            (parent / str(n)).mkdir()
            run("ours", "fill_compacted", parent / str(n), n=n, every=_EVERY, kept=_KEPT)
        for number in range(setting.scale.rounds):
            for n in sizes:
                progress(f"resuming {n:,} entries round {number + 1}")
                took[n].append(run("ours", "resuming", parent / str(n), repeats=_RESUMED))
    few, many = sizes
    shown = {n: took[n][0]["items"] for n in sizes}
    assert shown[few] == shown[many], f"what is shown differs: {shown}"
    best = {n: min(one["best"] for one in took[n]) for n in sizes}
    first = statistics.median(one["first"] for one in took[many])
    rows = (
        Row(f"{many:,} entries, closed to ready", best[many] * 1e3, 50, unit=" ms", rounds=took),
        Row(f"{many:,} entries : {few:,}", best[many] / best[few], 1.5, seconds(best[few])),
        Row(f"{many:,} entries, the first time in a process", first * 1e3, unit=" ms"),
    )
    note = (
        "From a closed database to messages that a provider accepts: open_store, resume, items, "
        "tokens and repair; wall time on disk, warm file cache, everything imported. Shortest of "
        f"{_RESUMED * setting.scale.rounds} runs, closing not counted. A compaction every "
        f"{_EVERY:,} entries; {shown[many]:,} items are shown, {took[many][0]['read']:,} are read."
    )
    return Table("resume", "Resuming a session with compactions", note, rows)


# --- what is saved, and what is kept -------------------------------------------------------------


def rules(setting: Setting) -> Table:
    found: dict[str, Result] = {}
    for file in _transcripts(setting, "rules"):
        progress(f"rules on {file.name}")
        found[file.stem[:8]] = once("view", "saving", setting.memory, path=str(file))
    total = sum(one["tokens"] for one in found.values())
    rows = []
    for rule in sorted({rule for one in found.values() for rule in one["end"]}):
        saved = sum(one["end"].get(rule, 0) for one in found.values())
        what = "all rules" if rule == "all" else rule
        rows.append(Row(f"{what}, at the end", *_share(saved, total), unit=" %"))
    for name, one in found.items():
        end = _share(one["end"]["all"], one["tokens"])
        by_turn = _share(one["by_turn"]["all"], one["tokens"])
        rows.append(Row(f"{name}, at the end", *end, unit=" %", rounds=one))
        rows.append(Row(f"{name}, planned at each of {one['turns']} turns", *by_turn, unit=" %"))
    note = (
        "Tokens that the rules leave out of long transcripts, before any compaction, as a share of "
        "all (estimated). At the end: one plan at the time of the last entry, however little it "
        "saves. Planned at each turn: plans when the user speaks, applied when worth 2,000 tokens. "
        "The run fails unless each thing left out comes back exactly as it was."
    )
    return Table("rules", "What rules alone save", note, tuple(rows))


def _transcripts(setting: Setting, name: str) -> list[Path]:
    given = os.environ.get("RECOLLECT_TRANSCRIPTS")
    if not given:
        setting.notes.append(f"{name}: set RECOLLECT_TRANSCRIPTS to the transcripts' directory")
        return []
    folder = Path(given) / "claude-code"
    return sorted(path for path in folder.glob("*.jsonl") if _LONG.fullmatch(path.name))


def _share(saved: int, total: int) -> tuple[float, None, str]:
    return 100 * saved / total, None, f"{saved:,} of {total:,} tokens"


def retention(setting: Setting) -> Table:
    script, rows = os.environ.get("RECOLLECT_RETENTION"), []
    files = _transcripts(setting, "retention")
    if not script:
        setting.notes.append("retention: set RECOLLECT_RETENTION to the script that scores it")
    elif files:
        progress("retention")
        theirs = _scores(script, files, [])
        ours = _scores(script, files, [sys.executable, "-m", "recollect", *_COMPACT.split()])
        for name, share in ours["mean"]["shares"].items():
            each = [one["shares"][name] for stem, one in ours.items() if stem != "mean"]
            what = f"{name} kept ({', '.join(f'{one:.2f}' for one in each)})"
            their = f"its own summary {theirs['mean']['shares'][name]:.2f}"
            rows.append(Row(what, share, None, their, unit="", rounds=(ours, theirs)))
        their = f"its own summary {theirs['mean']['characters']:,.0f}"
        characters = max(one["characters"] for one in ours.values())
        rows.append(Row("characters, at most", characters, _CHARACTERS, their, unit=""))
        longest = max(one["seconds"] for one in ours.values())
        rows.append(Row("time, at most", longest, unit=" s"))
    note = (
        "Of what the 30 tool calls after a compaction use and the past had, the shares that the "
        f"snapshot still names, mean of {len(files)} transcripts and each: `recollect {_COMPACT}`, "
        "no model called. Beside it the summary that the agent's own model wrote there. Names tell "
        "little: `bench/exam` has what a blind reader can do with the text."
    )
    return Table("retention", "What a snapshot keeps", note, tuple(rows))


def _scores(script: str, files: list[Path], command: list[str]) -> dict[str, Result]:
    """By transcript, and their mean."""
    call = [sys.executable, script, *map(str, files), *(["--", *command] if command else [])]
    done = subprocess.run(call, check=False, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise Failed(done.stderr.strip()[-800:] or f"retention: exit {done.returncode}")
    found = {}
    for name, shares, characters, took in _SCORED.findall(done.stdout):
        each = {key: _number(value) for key, value in _SHARE.findall(shares)}
        found[name] = {"shares": each, "characters": int(characters), "seconds": float(took)}
    if "mean" not in found:
        raise Failed(f"retention said: {done.stdout[-400:]}")
    return found


def _number(text: str) -> float:
    kept, _, needed = text.partition("/")
    return float(kept) / (float(needed or 1) or 1.0)
