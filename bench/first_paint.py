"""How long until a terminal program shows something, and until its prompt is there.

Each program runs in a pseudo-terminal of 100 × 30 that answers what programs ask of a terminal
(cursor position, colours, attributes); the clock stops at the first visible character. Beside ours,
where they are installed: `codex` and `gemini`, and `posting`, another program made with Textual
(RECOLLECT_PEERS names their folders, separated by colons).
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

from bench.measure import Setting, progress
from bench.report import Row, Table, seconds

_TARGET = 8.0
_LIMIT = 60.0  # seconds
_ESCAPES = re.compile(
    rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # a title, a colour
    rb"|\x1bP[^\x1b]*\x1b\\"
    rb"|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]"
)
_VISIBLE = re.compile(rb"[!-~\x80-\xff]")
# what a terminal says when it is asked: cursor position, attributes, status, colours
_ANSWERS = (
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b[c", b"\x1b[?62;22c"),
    (b"\x1b[0c", b"\x1b[?62;22c"),
    (b"\x1b[5n", b"\x1b[0n"),
    (b"\x1b[?u", b"\x1b[?0u"),
    (b"\x1b]10;?", b"\x1b]10;rgb:ffff/ffff/ffff\x07"),
    (b"\x1b]11;?", b"\x1b]11;rgb:0000/0000/0000\x07"),
)
_PEERS = ("codex", "gemini", "posting")
_PROMPT = b"for commands"  # in our own prompt's placeholder


def first_paint(setting: Setting) -> Table:
    """Ratios to `python -c pass`, everything in turn in one run."""
    bare = "python -c pass"
    with tempfile.TemporaryDirectory() as folder:
        ours = [str(Path(sys.executable).with_name("recollect"))]
        programs: dict[str, tuple[list[str], bytes]] = {
            "recollect, first paint": (ours, b""),
            "recollect, its prompt": (ours, _PROMPT),
        }
        for name in _PEERS if setting.with_peers or "RECOLLECT_PEERS" in os.environ else ():
            if found := _find(name):
                programs[f"{name}, first paint"] = ([found], b"")
        took: dict[str, list[float]] = {bare: [], **{name: [] for name in programs}}
        for number in range(setting.scale.starts + 1):
            progress(f"first paint {number}/{setting.scale.starts}")
            one = {bare: _bare()}
            one |= {name: _until(*given, Path(folder)) for name, given in programs.items()}
            for name, value in one.items():
                if number:  # the first fills the page cache
                    took[name].append(value)
    return Table("first_paint", "First paint", _note(setting, bare), tuple(_rows(took, bare)))


def _note(setting: Setting, bare: str) -> str:
    return (
        f"1 is `{bare}`; median of {setting.scale.starts} interleaved runs each, in a "
        "pseudo-terminal of 100 × 30. First paint is the first visible character: of recollect its "
        "frame, drawn before Textual is loaded. Programs of others show their first screen, "
        "whatever that is without an account."
    )


def _rows(took: dict[str, list[float]], bare: str) -> list[Row]:
    base = statistics.median(took[bare])
    rows = []
    for name, runs in list(took.items())[1:]:
        target = _TARGET if name == "recollect, first paint" else None
        ratio = statistics.median(runs) / base
        rows.append(Row(name, ratio, target, seconds(base), rounds=runs))
    return rows


def _find(name: str) -> str | None:
    folders = os.environ.get("RECOLLECT_PEERS", "").split(":")
    return shutil.which(name, path=":".join((*folders, os.environ.get("PATH", ""))))


def _bare() -> float:
    began = time.perf_counter()
    os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "-c", "pass"], os.environ), 0)
    return time.perf_counter() - began


def _until(command: list[str], wanted: bytes, folder: Path) -> float:
    """Seconds until `wanted` is shown, or anything."""
    began = time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        home = folder / "home"
        os.chdir(folder)
        # an installed program has its bytecode; a variable that keeps Python from writing it lies
        given = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        own = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "HOME": str(home)}
        home.mkdir(exist_ok=True)
        os.execve(command[0], command, {**given, **own, "RECOLLECT_HOME": str(home / "data")})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    try:
        return _watch(terminal, wanted) - began
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


def _watch(terminal: int, wanted: bytes) -> float:
    seen, ends = b"", time.perf_counter() + _LIMIT
    while (left := ends - time.perf_counter()) > 0:
        if not select.select([terminal], [], [], left)[0]:
            break
        try:
            piece = os.read(terminal, 65_536)
        except OSError:
            break
        now, seen = time.perf_counter(), seen + piece
        for question, answer in _ANSWERS:
            if question in piece:
                os.write(terminal, answer)
        shown = _ESCAPES.sub(b"", seen)
        if wanted in shown if wanted else _VISIBLE.search(shown):
            return now
    raise RuntimeError(f"nothing was shown within {_LIMIT:g} s: {seen[-300:]!r}")
