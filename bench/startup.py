"""How long `recollect --version` takes, and from a command to the first byte of its request.

Everything runs in turn in one run, beside a bare interpreter and, where it is installed, beside
`llm`, whose command does the least of what ours does: it sends one prompt and logs it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bench import conversation
from bench.measure import Failed, Setting, fresh, progress
from bench.report import Row, Table, seconds

_BARE = "python -c pass"
_NEW = "recollect -p, a new session, to the first byte"
_LLM = "llm, to the first byte"
_TARGETS = {"recollect --version": 2.5}
_SHARE_OF_LLM = 0.45
_ANSWER = (
    b'{"id":"1","object":"chat.completion","created":0,"model":"bench","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
)
_SETTINGS = """model = "bench"

[models.bench]
url = "http://127.0.0.1:{port}/v1"
window = 100_000_000
"""
_LLM_MODELS = """- model_id: bench
  model_name: bench
  api_base: "http://127.0.0.1:{port}/v1"
  api_key_name: bench
"""
# the least that a program pays which sends two bytes with the library that carries our requests
_LEAST = {
    "httpx2 alone, to the first byte": """
import asyncio, httpx2, sys
async def ask():
    async with httpx2.AsyncClient() as client:
        await client.post(f"http://127.0.0.1:{sys.argv[1]}/", content=b"{}")
asyncio.run(ask())
print("Hello.")
""",
}
_FILES = 12
_BATCH = 1_000
_TIMEOUT = 120
_PIPES: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}


class Took(NamedTuple):
    wall: float
    cpu: float


def startup(setting: Setting) -> Table:
    commands: dict[str, Callable[[], Took]] = {
        _BARE: _until_its_end([sys.executable, "-c", "pass"]),
        'python -c "import recollect"': _until_its_end([sys.executable, "-c", "import recollect"]),
    }
    for name in ("recollect", "hermes") if setting.peers else ("recollect",):
        beside = Path(sys.executable).parent / name
        if beside.exists():
            commands[f"{name} --version"] = _until_its_end([str(beside), "--version"])
    with fresh(setting.disk) as place:
        if "recollect --version" not in commands:
            setting.notes.append("recollect: no console script beside this interpreter")
            sending = {}
        else:
            sending = _sending(place, setting.scale.views[1])
        took = _interleaved(commands | sending, setting.scale.starts)
    rows = _rows(took)
    note = (
        f"1 is `{_BARE}`; median of {setting.scale.starts} interleaved runs each. To the first "
        "byte: from starting the command to the first byte of the request that a server of the "
        "bench, on this machine, receives, over plain HTTP; CPU is what the command's own threads "
        "had used by then. A new session looks at its folder and tells what it sees; with -c the "
        "whole session is read, and where it is over the budget the first request is the one for "
        "its summary. Each run finds the session as it was. `llm` is the package of that name with "
        "a model on the same server (RECOLLECT_LLM names its command); httpx2 alone is the least "
        "that a program pays which sends two bytes with it."
    )
    return Table("startup", "Start-up", note, tuple(rows))


def _rows(took: dict[str, list[Took]]) -> list[Row]:
    base = {clock: _median(took[_BARE], clock) for clock in Took._fields}
    rows: list[Row] = []
    for name, runs in list(took.items())[1:]:
        ratio = {clock: _median(runs, clock) / base[clock] for clock in Took._fields}
        if name == "hermes --version":
            rows[-1].peers[name] = ratio["wall"]
            continue
        rows.append(Row(f"{name}, CPU", ratio["cpu"], None, seconds(base["cpu"])))
        beside, target = seconds(base["wall"]), _TARGETS.get(name)
        rows.append(Row(f"{name}, wall", ratio["wall"], target, beside, rounds=runs))
    if _LLM in took and _NEW in took:
        llm, ours = (_median(took[name], "wall") for name in (_LLM, _NEW))
        rows.append(Row(f"{_NEW}, wall : llm", ours / llm, _SHARE_OF_LLM, seconds(llm)))
    return rows


def _median(runs: list[Took], clock: str) -> float:
    return float(statistics.median(getattr(one, clock) for one in runs))


def _interleaved(commands: dict[str, Callable[[], Took]], runs: int) -> dict[str, list[Took]]:
    took: dict[str, list[Took]] = {name: [] for name in commands}
    for number in range(runs + 1):
        if number % 5 == 0:
            progress(f"start-up {number}/{runs}")
        for name, command in commands.items():
            one = command()
            if number:  # the first fills the page cache
                took[name].append(one)
    return took


def _until_its_end(command: list[str]) -> Callable[[], Took]:
    def run() -> Took:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=False, capture_output=True, cwd="/")
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        return Took(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    return run


# --- to the first byte ---------------------------------------------------------------------------


def _sending(place: Path, n: int) -> dict[str, Callable[[], Took]]:
    server, folder = _Server(), place / "folder"
    folder.mkdir()
    for number in range(_FILES):
        (folder / f"file_{number}.py").write_text(f"number = {number}\n")
    found = {}
    for name, code in _LEAST.items():
        if importlib.util.find_spec("httpx2") is None:
            continue
        command = [sys.executable, "-c", code, str(server.port)]
        found[name] = _until_first_byte(command, place, folder, server)
    if llm := _find_llm():
        (place / "extra-openai-models.yaml").write_text(_LLM_MODELS.format(port=server.port))
        (place / "keys.json").write_text('{"bench": "none"}')
        found[_LLM] = _until_first_byte(
            [llm, "-m", "bench", "--no-stream", "hi"], place, folder, server
        )
    program = str(Path(sys.executable).parent / "recollect")
    for name, options, filled in (
        (_NEW, ["-p", "hi"], 0),
        ("recollect -c -p, 100 messages, to the first byte", ["-c", "-p", "hi"], 100),
        (f"recollect -c -p, {n:,} messages, to the first byte", ["-c", "-p", "hi"], n),
    ):
        home = place / f"home-{filled}"
        home.mkdir()
        (home / "settings.toml").write_text(_SETTINGS.format(port=server.port))
        if filled:
            progress(f"start-up: a session of {filled:,} messages")
            asyncio.run(_filled(home, folder, filled))
        found[name] = _until_first_byte([program, *options], home, folder, server, again=filled > 0)
    return found


def _find_llm() -> str | None:
    beside = Path(sys.executable).parent / "llm"
    return os.environ.get("RECOLLECT_LLM") or (str(beside) if beside.exists() else None)


async def _filled(home: Path, folder: Path, n: int) -> None:
    from recollect.engine import open_store
    from recollect.workspace.project_identity import identify_project

    async with open_store(home / "recollect.db") as store:
        session = await store.create(project=identify_project(folder))
        parent = None
        for first in range(0, n, _BATCH):
            more = conversation.messages(min(_BATCH, n - first), first)
            parent = (await store.append(session.id, more, parent=parent))[-1].id
        await store.index_now()


def _until_first_byte(
    command: list[str], home: Path, folder: Path, server: _Server, *, again: bool = False
) -> Callable[[], Took]:
    """`again`: each run finds the home as it is now, whatever the one before made of it."""
    # an installed program has its bytecode; a variable that keeps Python from writing it lies
    given = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment = {**given, "RECOLLECT_HOME": str(home), "LLM_USER_PATH": str(home)}
    kept = home.with_name(f"{home.name}-kept")
    if again:
        shutil.copytree(home, kept)

    def run() -> Took:
        if again:
            shutil.rmtree(home)
            shutil.copytree(kept, home)
        server.first = None
        began = time.perf_counter()
        started = subprocess.Popen(command, cwd=folder, env=environment, text=True, **_PIPES)
        server.caller = started.pid
        said, complaint = started.communicate(timeout=_TIMEOUT)
        if started.returncode or server.first is None or said.strip() != "Hello.":
            raise Failed(f"{command}: {said[-200:]} {complaint[-600:]}")
        return Took(server.first - began, server.cpu)

    return run


class _Server:
    """Answers every request with one sentence, and knows when the first byte came."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.first: float | None = None
        self.caller, self.cpu = 0, 0.0  # whose request it is, and what it had spent by then
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            with self._listening.accept()[0] as client:
                self._answer(client)

    def _answer(self, client: socket.socket) -> None:
        data = client.recv(65_536)
        if self.first is None:
            self.first, self.cpu = time.perf_counter(), _spent(self.caller)
        while b"\r\n\r\n" not in data:
            data += client.recv(65_536)
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        missing = length - len(body)
        while missing:
            missing -= len(client.recv(min(missing, 1_048_576)))
        client.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(_ANSWER), _ANSWER)
        )


def _spent(process: int) -> float:
    """Seconds on a processor, of all its threads, to a hundredth; what it started is not counted.

    Those of threads that have ended count as well: `schedstat` knows only of those that live.
    """
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
