"""`python -m bench.scaling`: 1, 2 and 4 servers on one PostgreSQL, as a table for docs/scaling.md.

Each server is a process of its own; 100 clients are spread over them and chat as fast as they are
answered, with a model that takes 20 ms. Beside it, one server on SQLite. Everything runs on this
machine, clients, model and database too: with two cores that is the limit, not the store. So the
CPU time of a turn is given apart for the servers and for PostgreSQL; it says what one more machine
adds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import psutil

from bench.nplt_load import _process, measure_bursts
from tests.postgres_server import running_postgres

CLIENTS = 100


def _write_settings(folder: Path, model: int) -> None:
    (folder / "home" / "settings.toml").write_text(
        'model = "scripted"\n[models.scripted]\nwire = "openai"\nkey = "BENCH_KEY"\n'
        f'url = "http://127.0.0.1:{model}"\nwindow = 200000\n'
    )


async def _bursts(ports: list[int], seconds: float) -> tuple[float, int]:
    """Turns per second, and how many there were, the first of each session too."""
    each = CLIENTS // len(ports)
    found = await asyncio.gather(
        *(measure_bursts(port, seconds, welcome=True, clients=each) for port in ports)
    )
    return sum(one.rate for one in found), sum(one.turns + each for one in found)


def _cpu(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        try:
            total += sum(process.cpu_times()[:2])
        except psutil.NoSuchProcess:
            continue
    return total


def _postgres_processes() -> list[psutil.Process]:
    return [one for one in psutil.process_iter(["name"]) if "postgres" in (one.info["name"] or "")]


def measure(servers: int, url: str, seconds: float) -> tuple[float, float, float]:
    """Turns per second; milliseconds of CPU a turn: of the servers, of PostgreSQL."""
    os.environ["RECOLLECT_STORE"] = url
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place, ExitStack() as stack:
        folder = Path(place)
        (folder / "home").mkdir()
        model, _ = stack.enter_context(_process("model", folder))
        _write_settings(folder, model)
        running = [stack.enter_context(_process("nplt", folder)) for _ in range(servers)]
        processes = [process for _, process in running]
        asyncio.run(_bursts([port for port, _ in running], 1))  # connections, prepared statements
        before, database = _cpu(processes), _cpu(_postgres_processes())
        rate, turns = asyncio.run(_bursts([port for port, _ in running], seconds))
        spent = _cpu(processes) - before
        return rate, 1_000 * spent / turns, 1_000 * (_cpu(_postgres_processes()) - database) / turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    print("| store | servers | turns a second | server CPU a turn | PostgreSQL CPU a turn |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as place, running_postgres() as postgres:
        rows = [("SQLite", 1), *(("PostgreSQL", count) for count in (1, 2, 4))]
        for store, count in rows:
            url = f"{place}/own.db" if store == "SQLite" else postgres.new_url()
            rate, own, theirs = measure(count, url, seconds)
            database = f"{theirs:.2f} ms" if store != "SQLite" else ""
            print(f"| {store} | {count} | {rate:.0f} | {own:.2f} ms | {database} |", flush=True)


if __name__ == "__main__":
    main()
