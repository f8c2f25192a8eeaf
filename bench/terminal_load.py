"""`python -m bench.terminal_load`: the terminal program while a reply streams into a long session.

The real program runs in a pseudo-terminal of 120 x 40 and continues a session of 10,000 entries. A
`ProviderServer` streams Markdown at about 200 pieces a second; meanwhile keys are typed into the
prompt, each a character that is nowhere else, and measured is the time from the key to the first
byte of output that has it. A bare Textual app with a text area does the same, with nothing else to
do: what it takes is the machine's part, which is large on a busy one.

  key_p50, key_p99   milliseconds from key to paint while the reply streams; `idle`: before
  stream_cpu         percent of one core while the reply streams
  memory             USS of the program at the end; `beyond_bare` is what the bare app has not
  idle_cpu           percent of one core in the seconds after the reply
  open               seconds from the start until the newest entry is on the screen
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench import conversation
from recollect.entries import Entry
from recollect.store.ids import new_id, now

SESSION = "5" * 32
COLUMNS, ROWS = 120, 40
PIECES_PER_SECOND, PIECE = 200, 12
KEYS_PER_SECOND = 8.0
LAST_WORDS = "the-end-of-the-session"
END = "stream-ends-here"
FIRST_KEY = 0x4E00  # the characters that are typed: of a script that the reply does not use
_PARAGRAPH = (
    "The `{word}` was **slow** because of *{word}*, see [the notes](https://example.org/{number})."
    "\n\n"
    "- first {word}\n- second {word} with some more words that fill a line of the screen\n\n"
    "```python\ndef {word}(value: int) -> int:\n    return value + {number}  # {word}\n```\n\n"
    "| name | value |\n|---|---|\n| {word} | {number} |\n\n"
)


def reply_text(pieces: int) -> str:
    words = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "theta", "iota", "kappa")
    text, number = "", 0
    while len(text) < pieces * PIECE:
        text += _PARAGRAPH.format(word=words[number % len(words)], number=number)
        number += 1
    return text[: pieces * PIECE]


def stream_events(pieces: int) -> tuple[str, ...]:
    """As OpenAI sends them."""
    text = reply_text(pieces)
    parts = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    choices = [{"index": 0, "delta": {"content": part}} for part in (*parts, f"\n\n{END}\n")]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    usage = {"choices": [], "usage": {"prompt_tokens": 9_000, "completion_tokens": 20}}
    return (*(json.dumps({"choices": [one]}) for one in choices), json.dumps(usage))


# --- what is measured ----------------------------------------------------------------------------


async def fill_store(folder: Path, entries: int) -> None:
    from recollect.runtime.runtime import open_runtime

    async with open_runtime(folder) as runtime:
        store = runtime.store
        await store.create(id=SESSION)
        parent = None
        messages = list(conversation.messages(entries - 1, 0))
        for at in range(0, len(messages), 500):
            made = []
            for message in messages[at : at + 500]:
                made.append(Entry(new_id(), parent, now(), message))
                parent = made[-1].id
            await store.append(SESSION, made, parent=made[0].parent)
        from recollect.testing import model

        await store.append(SESSION, [model(LAST_WORDS)], parent=parent)


def run_bare() -> None:
    from textual.app import App, ComposeResult
    from textual.widgets import Log, TextArea

    class BareApp(App[None]):
        def compose(self) -> ComposeResult:
            yield Log()
            yield TextArea()

        def on_mount(self) -> None:
            self.query_one(TextArea).focus()
            self.query_one(Log).write_line(LAST_WORDS)

    BareApp().run()


def run_profiled(file: str) -> None:
    """The program under pyinstrument, if that is installed."""
    from pyinstrument import Profiler

    from recollect.cli.main import run

    profiler = Profiler(async_mode="disabled")

    def begin(*_: object) -> None:
        profiler.start()

    def write(*_: object) -> None:
        profiler.stop()
        Path(file).write_text(profiler.output_text(show_all=True), encoding="utf-8")

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, write)
    run(["-r", SESSION])


class _Terminal:
    """A program in a pseudo-terminal, and what it wrote, with the times."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment | {"TERM": "xterm-256color"},
            stdin=child, stdout=child, stderr=child, start_new_session=True,
        )  # fmt: skip
        os.close(child)
        self._file, self._closing = parent, False
        self._lock = threading.Condition()
        self._tail, self.written = "", 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        self.usage = psutil.Process(self.process.pid)

    def _read(self) -> None:
        rest = b""
        while not self._closing:
            if not select.select([self._file], [], [], 0.2)[0]:
                continue
            try:
                data = rest + os.read(self._file, 1 << 16)
            except OSError:
                return
            text = data.decode("utf-8", "ignore")
            rest = data[-3:] if data[-1:] > b"\x7f" else b""
            with self._lock:
                self._tail = (self._tail + text)[-400_000:]
                self.written += len(data)
                self._lock.notify_all()

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def wait(self, text: str, seconds: float = 60.0) -> float:
        """When a text has been written; the time of the reading."""
        with self._lock:
            if not self._lock.wait_for(lambda: text in self._tail, seconds):
                raise TimeoutError(f"{text!r} was not shown; the end is {self._tail[-2_000:]!r}")
            return time.perf_counter()

    def close(self) -> None:
        self._closing = True
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self._thread.join(2)
        os.close(self._file)


@contextlib.contextmanager
def _terminal(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[_Terminal]:
    terminal = _Terminal(command, folder, environment)
    try:
        yield terminal
    finally:
        terminal.close()


def type_keys(terminal: _Terminal, seconds: float, first: int) -> list[float]:
    """Milliseconds from each key to its paint."""
    found = []
    end = time.perf_counter() + seconds
    key = first
    while time.perf_counter() < end:
        began = time.perf_counter()
        terminal.type(chr(key))
        found.append(1_000 * (terminal.wait(chr(key), 20) - began))
        key += 1
        # not in step with the paints of the program
        time.sleep(max(0.0, began + 1 / KEYS_PER_SECOND + 0.007 * (key % 5) - time.perf_counter()))
    return found


def measure_idle_cpu(terminal: _Terminal, seconds: float) -> float:
    before = terminal.usage.cpu_times()
    time.sleep(seconds)
    after = terminal.usage.cpu_times()
    return 100 * (after.user + after.system - before.user - before.system) / seconds


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _figures(terminal: _Terminal, streaming: list[float], idle: list[float]) -> dict[str, float]:
    return {
        "keys": len(streaming),
        "key_p50_ms": _percentile(streaming, 0.5),
        "key_p99_ms": _percentile(streaming, 0.99),
        "key_p95_ms": _percentile(streaming, 0.95),
        "key_max_ms": max(streaming),
        "keys_over_50_ms": sum(each > 50 for each in streaming),
        "key_idle_p50_ms": _percentile(idle, 0.5),
        "key_idle_p99_ms": _percentile(idle, 0.99),
        "memory_mb": terminal.usage.memory_full_info().uss / 1e6,
    }


def measure_bare(folder: Path, environment: dict[str, str], seconds: float) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.terminal_load", "--role", "bare"]
    with _terminal(command, folder, environment) as terminal:
        opened = terminal.wait(LAST_WORDS) - terminal.began
        time.sleep(1)
        keys = type_keys(terminal, seconds, FIRST_KEY)
        cpu = measure_idle_cpu(terminal, seconds / 2)
        return _figures(terminal, keys, keys) | {"open_s": opened, "idle_cpu": cpu}


def measure_ours(
    folder: Path, environment: dict[str, str], seconds: float, profile: str
) -> dict[str, float]:
    command = [sys.executable, "-m", "recollect", "-r", SESSION]
    if profile:
        command = [
            sys.executable,
            "-m",
            "bench.terminal_load",
            "--role",
            "ours",
            "--profile",
            profile,
        ]
    with _terminal(command, folder, environment) as terminal:
        opened = terminal.wait(LAST_WORDS) - terminal.began
        time.sleep(6)  # older pages
        loaded = terminal.usage.memory_full_info().uss / 1e6
        idle = type_keys(terminal, seconds / 4, FIRST_KEY)
        terminal.type("\r")
        terminal.wait("alpha")
        if profile:
            terminal.process.send_signal(signal.SIGUSR1)
        before, began = terminal.usage.cpu_times(), time.perf_counter()
        streaming = type_keys(terminal, seconds, FIRST_KEY + 1_000)
        after, took = terminal.usage.cpu_times(), time.perf_counter() - began
        stream_cpu = 100 * (after.user + after.system - before.user - before.system) / took
        terminal.wait(END, 120)
        time.sleep(2)
        cpu = measure_idle_cpu(terminal, max(5.0, seconds / 2))
        found = _figures(terminal, streaming, idle)
        if profile:
            terminal.process.send_signal(signal.SIGUSR2)
            time.sleep(5)
        return found | {
            "open_s": opened, "loaded_mb": loaded, "idle_cpu": cpu, "stream_cpu": stream_cpu
        }  # fmt: skip


def measure(seconds: float, entries: int, profile: str) -> dict[str, dict[str, float]]:
    from recollect.testing import ProviderServer, faulty

    events = stream_events(int((seconds + 5) * PIECES_PER_SECOND))
    reply = faulty("", events=events, pause=1 / PIECES_PER_SECOND)
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd()) as place,
        ProviderServer("openai", [reply], repeat=True) as server,
    ):
        folder = Path(place)
        (folder / "home").mkdir()
        (folder / "project").mkdir()
        (folder / "home" / "settings.toml").write_text(
            'model = "scripted"\n[models.scripted]\nwire = "openai"\nkey = "BENCH_KEY"\n'
            f'url = "{server.url}"\nwindow = 20000000\n'
        )
        mine = {"RECOLLECT_HOME": str(folder / "home"), "BENCH_KEY": "sk-none"}
        environment = {
            **os.environ,
            **mine,
            "PYTHONPATH": os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")]),
        }
        os.environ.update(mine)
        asyncio.run(fill_store(folder / "project", entries))
        bare = measure_bare(folder / "project", environment, seconds / 2)
        ours = measure_ours(folder / "project", environment, seconds, profile)
    ours["memory_beyond_bare_mb"] = ours["memory_mb"] - bare["memory_mb"]
    return {"bare": bare, "ours": ours}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--profile", default="", help="a file for pyinstrument's report")
    parser.add_argument("--role", default="")
    given = parser.parse_args()
    if given.role == "bare":
        run_bare()
    elif given.role == "ours":
        run_profiled(given.profile)
    else:
        found = measure(given.seconds, given.entries, given.profile)
        rounded = {who: {k: round(v, 2) for k, v in of.items()} for who, of in found.items()}
        print(json.dumps(rounded, indent=2))


if __name__ == "__main__":
    main()
