"""`python -m bench`: measure, print tables of ratios, write JSON and Markdown."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import (
    appends,
    codecs,
    first_paint,
    imports,
    index_upkeep,
    loads,
    machine,
    peers,
    postgres,
    processes,
    report,
    search,
    sizes,
    startup,
    turns,
    views,
)
from bench.measure import QUICK, RESULTS, Failed, Scale, Setting, once, progress

BENCHMARKS: dict[str, Callable[[Setting], report.Table]] = {
    "singles": appends.singles,
    "growth": appends.growth,
    "batches": appends.batches,
    "loads": loads.loads,
    "windows": loads.windows,
    "opening": loads.opening,
    "search": search.search,
    "sizes": sizes.sizes,
    "imports": imports.imports,
    "startup": startup.startup,
    "first_paint": first_paint.first_paint,
    "upkeep": index_upkeep.upkeep,
    "processes": processes.processes,
    "postgres": postgres.postgres,
    "view": views.view,
    "resume": views.resume,
    "rules": views.rules,
    "retention": views.retention,
    "encode": codecs.encode,
    "decode": codecs.decode,
    "turns": turns.turns,
}
_EXAMPLES = """examples:
  uv run python -m bench                       everything of ours
  uv run python -m bench --quick               tries the harness in a minute; not for numbers
  uv run python -m bench --only singles --only loads --markdown
  RECOLLECT_TRANSCRIPTS=/path uv run python -m bench --only sizes --only rules
  UV_PROJECT_ENVIRONMENT=/tmp/peers uv run --no-group sdks --group peers -p 3.12 \\
    python -m bench --peers

A whole run writes bench/results/latest.json and latest.md; a partial one only where --out says."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m bench",
        description="Ratios to raw SQLite and to peers, measured side by side in one run.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small numbers, one round")
    parser.add_argument("--peers", action="store_true", help="measure installed peers as well")
    parser.add_argument(
        "--only", action="append", choices=sorted(BENCHMARKS), metavar="NAME",
        help=f"one benchmark, may be given again: {', '.join(BENCHMARKS)}",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON; Markdown goes beside it")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    return parser.parse_args()


@contextlib.contextmanager
def _places() -> Iterator[tuple[Path, Path]]:
    """A directory in memory and one on disk, both removed at the end."""
    RESULTS.mkdir(exist_ok=True)
    shared = Path("/dev/shm")
    parent = shared if shared.is_dir() else None
    memory = Path(tempfile.mkdtemp(prefix="recollect-bench-", dir=parent))
    disk = Path(tempfile.mkdtemp(prefix="disk-", suffix=".tmp", dir=RESULTS))
    try:
        yield memory, disk
    finally:
        shutil.rmtree(memory, ignore_errors=True)
        shutil.rmtree(disk, ignore_errors=True)


def _measure(arguments: argparse.Namespace, setting: Setting) -> list[report.Table]:
    tables = []
    for name, benchmark in BENCHMARKS.items():
        if not arguments.only or name in arguments.only:
            progress(name)
            try:
                tables.append(benchmark(setting))
            except (Failed, AssertionError) as failure:  # the others are worth having all the same
                setting.notes.append(f"FAILED {name}: {failure}")
    return tables


def _chosen_peers(notes: list[str]) -> tuple[str, ...]:
    for name, peer in peers.PEERS.items():
        if peers.installed(name):
            notes.append(f"{name}: {peer.settings}")
        else:
            notes.append(f"{name}: not installed ({peer.package})")
    return tuple(name for name in peers.PEERS if peers.installed(name))


def main() -> None:
    arguments = _arguments()
    notes: list[str] = []
    chosen = _chosen_peers(notes) if arguments.peers else ()
    with _places() as (memory, disk):
        if memory.parent != Path("/dev/shm"):
            notes.append("no /dev/shm here: 'tmpfs' figures were measured on a disk")
        packages = tuple(peers.PEERS[name].package for name in chosen)
        described = machine.describe(memory, disk, packages)
        described["pragmas"] = once("raw", "settings", memory)
        scale = QUICK if arguments.quick else Scale()
        tables = _measure(
            arguments, Setting(scale, memory, disk, chosen, notes, with_peers=arguments.peers)
        )
        described["load_after"] = machine.load()
    notes = list(dict.fromkeys(notes))
    command = " ".join(["python -m bench", *sys.argv[1:]])
    markdown = report.as_markdown(tables, described, notes, command)
    text = report.as_text(tables) + "".join(f"\n- {note}" for note in notes)
    print(markdown if arguments.markdown else text)
    out = arguments.out
    if out is None and not (arguments.quick or arguments.only):
        out = RESULTS / "latest.json"
    if out is not None:
        every = [table.as_json() for table in tables]
        found = {"command": command, "machine": described, "notes": notes, "tables": every}
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        out.with_suffix(".md").write_text(markdown)
        progress(f"written to {out} and {out.with_suffix('.md')}")
    if any(note.startswith("FAILED") for note in notes):
        sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
