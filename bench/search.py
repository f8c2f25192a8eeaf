"""Search: complete with text and snippet, against SQLite's own index and against a scan."""

from __future__ import annotations

from pathlib import Path

from bench import conversation
from bench.measure import Result, Setting, fresh, median, progress, run
from bench.report import Row, Table, seconds

_QUERIES = (
    ("a rare word", conversation.RARE),
    ("a common word", conversation.COMMON),
    ("a phrase", conversation.PHRASE),
    ("a Chinese word", conversation.CHINESE),
)


def search(setting: Setting) -> Table:
    n = setting.scale.search
    rows = []
    with fresh(setting.memory) as place:
        progress(f"preparing {n:,} messages")
        run("raw", "fill", place, n=n, warm_up=True)
        indexed = run("raw", "index", place)
        built = run("ours", "fill", place, n=n)
        for what, words in _QUERIES:
            rows += _query(setting, place, what, words)
        rows += _ranked(setting, place)
    rows.append(
        Row(
            f"writing and indexing {n:,} : SQLite's FTS5 'rebuild'",
            built["cpu"] / indexed["cpu"],
            None,
            seconds(indexed["cpu"]),
            rounds={"ours": built, "raw": indexed},
        )
    )
    note = (
        "The 20 newest hits with snippets, wall time, median of 9. Ours returns whole verified "
        "entries and their sessions. FTS5: default tokenizer, positions, external content; it "
        "cannot find a Chinese word inside a sentence. Scan: LIKE over the JSON text, newest "
        "first, so it stops early where hits are many."
    )
    return Table("search", f"Search over {n:,} messages", note, tuple(rows))


def _ranked(setting: Setting, place: Path) -> list[Row]:
    """What whoever looks back gets: the nearest passages, near-duplicates folded."""
    rows = []
    both = f"{conversation.RARE} {conversation.COMMON}"
    question = (
        f"why is {conversation.RARE} not what the {conversation.COMMON} {conversation.PHRASE} has?"
    )
    for what, words in (("two words", both), ("a question", question)):
        rounds = range(setting.scale.rounds)
        mine = [run("ours", "search", place, words=words, ranked=True) for _ in rounds]
        took = median(mine, "wall") * 1e3
        hits = f"{mine[0]['count']} passages"
        rows.append(Row(f"{what}, ranked, {hits}", took, unit=" ms", rounds={"ours": mine}))
    return rows


def _query(setting: Setting, place: Path, what: str, words: str) -> list[Row]:
    mine: list[Result] = []
    match: list[Result] = []
    scan: list[Result] = []
    for number in range(setting.scale.rounds):
        progress(f"search for {what} round {number + 1}")
        match.append(run("raw", "search", place, words=words, how="match"))
        mine.append(run("ours", "search", place, words=words))
        scan.append(run("raw", "search", place, words=words, how="scan"))
    took = median(mine, "wall")
    hits = f"{mine[0]['count']} hits"
    found = {"ours": mine, "match": match, "scan": scan}
    rows = [Row(f"{what}, {hits}", took * 1e3, unit=" ms", rounds=found)]
    for title, results in (("FTS5", match), ("scan", scan)):
        other = median(results, "wall")
        rows.append(
            Row(
                f"{what} : {title}",
                took / other,
                None,
                f"{seconds(other)}, {results[0]['count']} hits",
            )
        )
    return rows
