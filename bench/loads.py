"""Reading: whole sessions, their newest entries, and the list of all sessions."""

from __future__ import annotations

from pathlib import Path

from bench import peers
from bench.appends import others
from bench.measure import Result, Setting, best, fresh, median, progress, ratio, run, side_by_side
from bench.report import Row, Table, seconds


def loads(setting: Setting) -> Table:
    ways = ("single appends", "batches, compressed")
    rows = [_load(setting, n, how) for n in setting.scale.load for how in ways]
    note = (
        "Raw: SELECT and json.loads of the same rows. Ours checks every hash and returns typed "
        "entries. CPU time, median of 5 loads after one that does not count. Compressed: the store "
        "had its dictionary before this session was written."
    )
    return Table("loads", "Loading a session whole", note, tuple(rows))


def _load(setting: Setting, n: int, how: str) -> Row:
    with fresh(setting.memory) as place:
        progress(f"preparing {n:,} entries, {how}")
        run("raw", "fill", place, n=n)
        single = how == "single appends"
        run("ours", "append" if single else "fill", place, n=n)
        found = side_by_side(["ours"], "load", place, rounds=setting.scale.rounds, shared=True, n=n)
        if single:
            names = [name for name in setting.peers if peers.can(name, "load", n)]
            for name in ("sqlite3", *names):
                found |= side_by_side([name], "load", place, rounds=1, shared=True, n=n)
    return Row(
        f"{n:,} entries after {how}",
        ratio(found["ours"], "cpu"),
        1.3,
        seconds(median(found["ours"], "cpu", of_raw=True)),
        others(setting, found, "cpu"),
        rounds=found,
    )


def windows(setting: Setting) -> Table:
    sizes, wanted = setting.scale.windows, setting.scale.windows[0]
    took: dict[int, list[Result]] = {}
    with fresh(setting.memory) as parent:
        for n in sizes:
            _prepare(parent / str(n), "fill", n)
            took[n] = []
        for number in range(setting.scale.rounds):
            for n in sizes:
                progress(f"newest {wanted:,} of {n:,} round {number + 1}")
                found = side_by_side(
                    ["ours"],
                    "load",
                    parent / str(n),
                    rounds=1,
                    shared=True,
                    last=wanted,
                    repeats=15,
                )
                took[n] += found["ours"]
    base = best(took[wanted])
    rows = [
        Row(
            f"newest {wanted:,} of {n:,} : of {wanted:,}",
            best(results) / base,
            1.3,
            _beside(results),
            rounds=results,
        )
        for n, results in took.items()
    ]
    note = (
        "Here 1 is our own time for the shortest session; beside it our time and raw's for the "
        "same (SELECT … LIMIT and json.loads). Shortest wall time, warm; the stores have their "
        "dictionaries."
    )
    return Table("windows", f"The newest {wanted:,} entries", note, tuple(rows))


def _prepare(place: Path, task: str, n: int) -> None:
    progress(f"preparing: {task} {n:,}")
    place.mkdir()
    run("raw", task, place, n=n)
    run("ours", task, place, n=n)


def _beside(results: list[Result]) -> str:
    return f"{seconds(best(results))}; raw {seconds(best(results, of_raw=True))}"


def opening(setting: Setting) -> Table:
    many, few = setting.scale.sessions, 10
    opened = {}
    with fresh(setting.disk) as parent:
        for n in (few, many):
            place, rounds = parent / str(n), setting.scale.rounds
            _prepare(place, "fill_sessions", n)
            opened[n] = side_by_side(["ours"], "opening", place, rounds=rounds, shared=True)["ours"]
        listed = side_by_side(["ours"], "listing", parent / str(many), rounds=rounds, shared=True)
    mine = listed["ours"]
    rows = (
        Row(
            f"open and close, {many:,} sessions : {few} sessions",
            best(opened[many]) / best(opened[few]),
            None,
            _beside(opened[few]),
            rounds=opened,
        ),
        Row(
            f"list {many:,} sessions",
            ratio(mine, "wall"),
            None,
            seconds(median(mine, "wall", of_raw=True)),
            rounds=listed,
        ),
        Row(f"list {many:,} sessions", median(mine, "wall") * 1e3, unit=" ms"),
    )
    note = (
        "On disk, wall time, within a process that has imported recollect. For opening, 1 is our "
        "own shortest time with few sessions. Raw listing reads one flat table with nothing to "
        "join; ours finds the head, length and last use of each."
    )
    return Table("opening", f"A store with {many:,} sessions", note, rows)
