"""The codecs: how fast requests are written and replies read, beside peers on the same messages."""

from __future__ import annotations

import statistics
from typing import Any

from bench import codecs_peers
from bench.codecs_ours import MODELS
from bench.measure import Failed, Result, Setting, once, progress
from bench.report import Row, Table, seconds
from bench.streams import READERS

_REQUESTS = 500
_PIECE = 20  # bytes
_LARGE = 4_096  # characters
_THIRD = 0.333
_OURS = "codec"


def encode(setting: Setting) -> Table:
    names = _peers(setting)
    rows = [row for wire in MODELS for row in _wire(setting, wire, names)]
    note = (
        "The next request: one more message was appended, and an `Encoder` that wrote the requests "
        f"before gives the body in chunks; wall time, median of {_REQUESTS} requests of the two "
        "sessions in turn; joined: the chunks put together to one `bytes`. From nothing: `encode` "
        "of a folded view, CPU time, with nothing remembered. Both repair, and give the bytes of "
        "the whole request. A peer remembers nothing: each of its requests maps the whole history, "
        "given as its own messages, to Python objects (mapping, CPU time), which `json.dumps` then "
        "turns into bytes (with dumps); nothing is repaired. Each ratio is ours to that. "
        f"Medians of {setting.scale.rounds} rounds, ours and the peers in turn, a process each."
    )
    return Table("encode", "Writing requests", note, tuple(rows))


def _wire(setting: Setting, wire: str, names: list[str]) -> list[Row]:
    few, many = setting.scale.views
    names = [name for name in names if wire in codecs_peers.PEERS[name].wires]
    next_, found = _in_turn(setting, wire, names)
    objects, _ = found[_OURS]
    size = f"{next_[0]['bytes'] / 1e6:.1f} MB"
    short, long = _median(next_, "short"), _median(next_, "long")
    ratio = statistics.median(one["long"] / one["short"] for one in next_)
    what = f"{wire}, next request of {many:,}"
    rows = [
        Row(f"{what} : {few:,}", ratio, 1.5, seconds(short), rounds=next_),
        Row(what, long * 1e6, None, size, unit=" µs"),
        Row(f"{what}, joined", _median(next_, "long_joined") * 1e6, None, size, unit=" µs"),
        Row(
            f"{wire}, {many:,} from nothing, CPU",
            _median(objects, "cpu") * 1e3,
            None,
            size,
            unit=" ms",
            rounds=found,
        ),
    ]
    for name in names:
        rows += _beside(setting, wire, name, next_, found)
    return rows


def _beside(
    setting: Setting,
    wire: str,
    name: str,
    next_: list[Result],
    found: dict[str, tuple[list[Result], list[Result]]],
) -> list[Row]:
    """Ours to one peer: chunks to its objects, and bytes to its bytes."""
    mapped, dumped = found[name]
    failed = [one["failed"] for one in (*mapped, *dumped) if "failed" in one]
    if failed:
        setting.notes.append(f"{name} for {wire}: {failed[0].strip().splitlines()[-1]}")
        return []
    objects, joined = found[_OURS]
    plain, whole = f"mapping {seconds(_median(mapped, 'cpu'))}", "with dumps "
    whole += seconds(_median(dumped, "cpu"))
    following = f"{wire}, next request"
    return [
        Row(f"{following} : {name}", _ratio(next_, mapped, "long"), _THIRD, plain),
        Row(f"{following}, joined : {name}", _ratio(next_, dumped, "long_joined"), _THIRD, whole),
        Row(f"{wire}, from nothing : {name}", _ratio(objects, mapped, "cpu"), None, plain),
        Row(f"{wire}, from nothing, joined : {name}", _ratio(joined, dumped, "cpu"), None, whole),
    ]


def _median(results: list[Result], key: str) -> float:
    return float(statistics.median(one[key] for one in results))


def _ratio(ours: list[Result], theirs: list[Result], key: str) -> float:
    """The median over the rounds; a peer is always measured by its CPU time."""
    pairs = zip(ours, theirs, strict=True)
    return float(statistics.median(one[key] / other["cpu"] for one, other in pairs))


def _in_turn(
    setting: Setting, wire: str, names: list[str]
) -> tuple[list[Result], dict[str, tuple[list[Result], list[Result]]]]:
    """Of each round the next requests, and per contender what came in pieces and as bytes."""
    next_: list[Result] = []
    found: dict[str, tuple[list[Result], list[Result]]] = {n: ([], []) for n in (_OURS, *names)}
    sizes = setting.scale.views
    for number in range(setting.scale.rounds):
        progress(f"requests for {wire}, round {number + 1}")
        options: dict[str, Any] = {"wire": wire, "sizes": sizes, "requests": _REQUESTS}
        next_.append(once(_OURS, "following", setting.memory, **options))
        for name, kept in found.items():
            for joined in (False, True):
                options = {"n": sizes[1], "wire": wire, "joined": joined}
                kept[joined].append(_one(setting, name, options))
    return next_, found


def _one(setting: Setting, name: str, options: dict[str, Any]) -> Result:
    try:
        return once(name, "whole", setting.memory, python=codecs_peers.python(name), **options)
    except Failed as failure:
        if name == _OURS:
            raise
        return {"failed": str(failure)}


def _peers(setting: Setting) -> list[str]:
    if not setting.with_peers:
        setting.notes.append("encode: its peers need --peers and their packages")
        return []
    versions = {name: codecs_peers.version(name) for name in codecs_peers.PEERS}
    for name, version in versions.items():
        does = codecs_peers.PEERS[name].does
        note = f"{name} {version}: {does}" if version else f"{name}: not installed"
        setting.notes.append(note)
    return [name for name, version in versions.items() if version]


# --- replies -------------------------------------------------------------------------------------


def decode(setting: Setting) -> Table:
    rows = [*_streams(setting), *_scans(setting)]
    note = (
        f"A streamed reply in the OpenAI format, {_PIECE} bytes at a time, a word in each event: "
        "every delta and the finished message, CPU time, MB of what comes over the wire. Beside "
        "it, on the same pieces and only as far as the text: `json.loads` of each line of the "
        "joined bytes, `httpx-sse` with `json.loads`, and the `openai` package. Text tools: the "
        "scanner alone, on prose, code that is no call, and a call in every 2 kB or so. "
        f"Medians of {setting.scale.rounds} rounds, a process each."
    )
    return Table("decode", "Reading replies", note, tuple(rows))


def _streams(setting: Setting) -> list[Row]:
    few, many = setting.scale.streams
    found: dict[str, list[Result]] = {name: [] for name in (_OURS, "long", *READERS)}
    for number in range(setting.scale.rounds):
        progress(f"streamed replies, round {number + 1}")
        for size, key in ((few, _OURS), (many, "long")):
            options = {"size": size, "piece": _PIECE}
            found[key].append(once(_OURS, "streamed", setting.memory, **options))
        for name in READERS:
            found[name].append(_read(setting, name, few))
    mine, long = found[_OURS], found["long"]
    speed = _speed(mine)
    what = f"{few / 1e6:g} MB in pieces of {_PIECE} bytes"
    rows = [
        Row(what, speed, 20, unit=" MB/s", at_least=True, rounds=found),
        _growth("a stream of", mine, long, setting),
    ]
    for name in READERS:
        failed = [one["failed"] for one in found[name] if "failed" in one]
        if failed:
            setting.notes.append(f"decode: {name}: {failed[0].strip().splitlines()[-1]}")
            continue
        beside = seconds(_median(found[name], "cpu"))
        rows.append(Row(f"{what} : {name}", _ratio(mine, found[name], "cpu"), None, beside))
    return rows


def _scans(setting: Setting) -> list[Row]:
    few, many = setting.scale.streams
    found: dict[str, list[Result]] = {"short": [], "long": [], "large": []}
    for number in range(setting.scale.rounds):
        progress(f"text tools, round {number + 1}")
        for key, size, piece in (
            ("short", few, _PIECE),
            ("long", many, _PIECE),
            ("large", few, _LARGE),
        ):
            options = {"size": size, "piece": piece}
            found[key].append(once(_OURS, "scanned", setting.memory, **options))
    what = f"text tools, {few / 1e6:g} MB in pieces of"
    speed, at_once = _speed(found["short"]), _speed(found["large"])
    return [
        Row(f"{what} {_PIECE}", speed, 2, unit=" MB/s", at_least=True, rounds=found),
        Row(f"{what} {_LARGE:,}", at_once, unit=" MB/s"),
        _growth("text tools,", found["short"], found["long"], setting),
    ]


def _speed(results: list[Result]) -> float:
    return float(statistics.median(one["bytes"] / one["cpu"] / 1e6 for one in results))


def _growth(what: str, short: list[Result], long: list[Result], setting: Setting) -> Row:
    """To ourselves, so the shortest time counts."""
    few, many = setting.scale.streams
    best = [min(one["best_cpu"] for one in each) for each in (short, long)]
    what = f"{what} {many / 1e6:g} MB : {few / 1e6:g} MB"
    return Row(what, best[1] / best[0], 1.1 * many / few, seconds(best[0]))


def _read(setting: Setting, name: str, size: int) -> Result:
    options = {"reader": name, "size": size, "piece": _PIECE}
    try:
        return once("reader", "read", setting.memory, **options)
    except Failed as failure:
        return {"failed": str(failure)}
