"""`recollect demo`: a recorded coding session, replayed with the real agent on a real project.

The model's replies are recorded; everything else happens while the user watches: the tools change
real files, the tests run, the store is filled. On a terminal it opens the terminal program, whose
prompt offers the recorded prompts; otherwise, and with `--print`, each step is a real command with
its real output. All of it is in a temporary folder with settings and a store of its own; the user's
own are neither read nor written. Where the machine behaves differently from the recording, the demo
says so and stops. However it ends, the folder is removed, unless the user keeps it.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TextIO

import click

from recollect.cli.console import paint
from recollect.cli.group import run_command
from recollect.cli.main import FAILED, INTERRUPTED
from recollect.cli.next_steps import next_step_lines
from recollect.cli.options import command
from recollect.cli.replay_server import (
    MODEL_NAME,
    RECORDING,
    Recording,
    ReplayServer,
    load_recording,
    serve_recording,
)
from recollect.entries import json_text
from recollect.errors import AlreadyExists, RecollectError
from recollect.settings import SETTINGS_FILE, make_private_folder
from recollect.workspace.safe_files import replace_file

PROJECT = "limiter"
HOME = "recollect-home"
READING_PAUSE, REPLY_PAUSE = 0.15, 0.03  # seconds, on a terminal
SETTINGS = """\
model = "{model}"

[models.{model}]  # replays the recorded replies
url = "{url}"
wire = "anthropic"
window = 32_768

[context]
payback_requests = 100  # a recording has no prompt cache to lose

[permissions]
mode = "edit"  # the agent may change files in its folder
allow = [{tests}]  # and run this command
"""
INTRODUCTION = """\
recollect keeps every word of an agent's session, shows what the model sees of
it and what not, and takes things back.

This is a RECORDING: the model's replies come from a file, {recording}.
The rest is real and happens now, in {folder}:
the agent, its tools, the files, the tests, the store. Yours are not touched.
"""
WELCOME = (
    "This is a RECORDING: the model's replies come from a file, {recording}. The rest is real and "
    "happens now, in {folder}: the agent, its tools, the files, the tests, the store. Yours are "
    "not touched.\n"
    "Enter sends the prompt below; there are three of them. Ctrl-C clears it: then try /context, "
    "/compact, /tree, /search refill, Esc Esc to go back with the files, and F1 for the keys."
)


class DemoStopped(RecollectError):
    def __init__(self, why: str) -> None:
        super().__init__(f"the demo stops here: {why}; what is above really happened")
        self.why = why


@command(
    ("recollect demo", "a recorded session with real tools, in a temporary folder"),
    ("recollect demo --print", "the same as commands and their output"),
    ("recollect demo --print --fast", "without pauses"),
    ("recollect demo --keep tour", "keep its project and store, and explore them"),
)
@click.option("--print", "prints", is_flag=True, help="Print it, and do not open the program.")
@click.option("--fast", is_flag=True, help="Do not pause for the reader.")
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Work in this new folder and keep it.",
)
def demo(*, prints: bool, fast: bool, keep: Path | None) -> int:
    """Replay a recorded coding session, with real tools and files.

    It needs no model and no network, and touches nothing of yours. On a terminal it opens the
    terminal program on it.
    """
    if keep is not None and keep.exists():
        raise AlreadyExists("a folder", str(keep), "Name one that does not exist yet")
    return show_demo(prints=prints, fast=fast, keep=keep)


def show_demo(*, prints: bool = False, fast: bool = False, keep: Path | None = None) -> int:
    """The exit code."""
    opens = sys.stdin.isatty() and sys.stdout.isatty() and not prints and not fast
    slow = sys.stdout.isatty() and not fast
    code = 0
    with _working_folder(keep) as folder:
        try:
            code = _play(
                folder,
                partial(_open_program, kept=keep is not None)
                if opens
                else partial(_print_tour, slow=slow),
            )
        except DemoStopped as stopped:
            click.echo(paint(str(stopped), fg="yellow"))
            code = FAILED
    if keep is not None:
        home, project = (shlex.quote(str(keep.absolute() / name)) for name in (HOME, PROJECT))
        click.echo(f"Explore it: cd {project} && export RECOLLECT_HOME={home}")
        click.echo()
    for line in next_step_lines():
        click.echo(line)
    return code


@contextmanager
def _working_folder(keep: Path | None) -> Iterator[Path]:
    with (
        tempfile.TemporaryDirectory(prefix="recollect-", ignore_cleanup_errors=True)
        if keep is None
        else nullcontext(str(keep))
    ) as folder:
        path = Path(folder).resolve()
        make_private_folder(path)
        (path / PROJECT).mkdir(mode=0o700)
        (path / HOME).mkdir(mode=0o700)
        yield path


def _play(folder: Path, show: Callable[[Path, Recording, ReplayServer], int]) -> int:
    recording = load_recording()
    tests = f"{_python()} -m unittest"
    project, home = folder / PROJECT, folder / HOME
    for name, text in recording.files.items():
        (project / name).write_text(text, encoding="utf-8")
    with serve_recording(recording, {"python": _python()}) as replay:
        settings = SETTINGS.format(model=MODEL_NAME, url=replay.url, tests=json_text(tests))
        replace_file(home / SETTINGS_FILE, settings.encode())
        with _surroundings(project, home):
            _prepare_repository()
            return show(folder, recording, replay)


def _print_tour(folder: Path, recording: Recording, replay: ReplayServer, *, slow: bool) -> int:
    replay.pause = REPLY_PAUSE if slow else 0
    _Tour(recording, replay, slow=slow).play(folder)
    return 0


def _open_program(folder: Path, recording: Recording, replay: ReplayServer, *, kept: bool) -> int:
    # late: Textual is loaded only where the program opens
    from recollect.cli.terminal_command import open_program
    from recollect.terminal.start_options import StartOptions

    replay.pause = REPLY_PAUSE
    prompts = tuple(prompt.text for prompt in recording.prompts)
    welcome = WELCOME.format(recording=RECORDING, folder=folder)
    return open_program(StartOptions(store_persists=kept, suggestions=prompts, welcome=welcome))


def _prepare_repository() -> None:
    """Without git the project is a folder like any other."""
    if shutil.which("git") is not None:
        _run_program("git", "init", "-q")
        _run_program("git", "add", ".")
        identity = ("-c", "user.name=demo", "-c", "user.email=demo@localhost")
        _run_program("git", *identity, "commit", "-qm", "all")


def _python() -> str:
    """As the tests are called: by the usual name, or by the path of this interpreter."""
    return "python3" if shutil.which("python3") else shlex.quote(sys.executable)


@contextmanager
def _surroundings(project: Path, home: Path) -> Iterator[None]:
    """Settings and a store for the demo alone, no pager, and git as it is without configuration."""
    before = dict(os.environ)
    for name in [name for name in before if name.startswith("GIT_")]:
        del os.environ[name]
    os.environ.update(
        RECOLLECT_HOME=str(home),
        PAGER="cat",
        GIT_PAGER="cat",
        GIT_CONFIG_GLOBAL=os.devnull,
        GIT_CONFIG_NOSYSTEM="1",
    )
    try:
        with chdir(project):
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Echo(io.TextIOBase):
    """A stream that passes everything on to another and remembers it."""

    def __init__(self, to: TextIO) -> None:
        self._to, self._seen = to, list[str]()

    def write(self, text: str) -> int:
        written = self._to.write(text)
        self._seen.append(text)
        return written

    def flush(self) -> None:
        self._to.flush()

    def isatty(self) -> bool:
        return self._to.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._to.encoding

    def text(self) -> str:
        return click.unstyle("".join(self._seen))


@contextmanager
def _no_input() -> Iterator[None]:
    """Piped input belongs to the demo and not to the prompts in it."""
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    try:
        yield
    finally:
        sys.stdin = before


class _Tour:
    """The steps, in the order in which a user would take them."""

    def __init__(self, recording: Recording, replay: ReplayServer, *, slow: bool) -> None:
        self._replay, self._slow = replay, slow
        self._prompts = [prompt.text for prompt in recording.prompts]

    def play(self, folder: Path) -> None:
        click.echo(INTRODUCTION.format(recording=RECORDING, folder=folder))
        session = self._agent()
        self._context(session)
        self._compaction(session)
        self._rewind(session)

    def _agent(self) -> str:
        """The session's id, as the program prints it."""
        self._heading("1. The agent reads, edits and runs the tests")
        first, second, third = self._prompts
        done = self._recollect("-p", first)
        session = _find(r"recollect -r (\S+)", done)
        self._shell("git", "diff", "--stat")
        self._recollect("-c", "-p", second)
        self._recollect("-c", "-p", third)
        return session

    def _context(self, session: str) -> None:
        self._heading("2. What fills its context, what was left out, and why")
        shown = self._recollect("context", session, "--last", "3")
        self._say("It read one file seven times; the newest five are enough. None is lost:")
        restore = _find(r"`recollect (context \S+ --restore \S+)`", shown)
        self._recollect(*restore.split())

    def _compaction(self, session: str) -> None:
        self._heading("3. A compaction, and back")
        self._recollect("compact", session, "--no-model", "--budget", "6000")
        self._recollect("compact", "--undo", session)

    def _rewind(self, session: str) -> None:
        self._heading("4. A search, and a rewind that takes the files along")
        found = self._recollect("search", "refill", "twice", "--role", "model", "--limit", "1")
        entry = _find(r"`recollect show (\S+)`", found)
        self._say("That was before the lock came. Back to there, with the file:")
        self._shell("grep", "-c", "self.lock", "limiter.py")
        self._recollect("rewind", session, entry, "--files")
        self._shell("grep", "-c", "self.lock", "limiter.py")

    # --- one step -------------------------------------------------------------------------------

    def _heading(self, title: str) -> None:
        self._pause()
        click.echo(paint(title, fg="green", bold=True))
        click.echo()

    def _say(self, sentence: str) -> None:
        click.echo(sentence)
        click.echo()

    def _recollect(self, *arguments: str) -> str:
        """Run a command of ours in this process; its output."""
        self._prompt("recollect", *arguments)
        echo = _Echo(sys.stdout)
        with _no_input(), redirect_stdout(echo), redirect_stderr(echo):
            code = run_command(list(arguments))
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        if self._replay.difference:
            raise DemoStopped(self._replay.difference)
        if code:
            raise DemoStopped(f"`recollect {arguments[0]}` failed with exit code {code}")
        click.echo()
        self._pause()
        return echo.text()

    def _shell(self, *words: str) -> None:
        """Run a program that the machine may have."""
        if shutil.which(words[0]) is not None:
            self._prompt(*words)
            click.echo(_run_program(*words))
            self._pause()

    def _prompt(self, *words: str) -> None:
        click.echo(paint.bold("$ " + " ".join(map(_quote, words))))
        sys.stdout.flush()

    def _pause(self) -> None:
        if self._slow:
            time.sleep(READING_PAUSE)


def _run_program(*words: str) -> str:
    """What it printed; `grep` that finds nothing and a `git` that refuses are no reason to stop."""
    done = subprocess.run(  # noqa: S603 - our own words
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.stdout.decode(errors="replace")


def _quote(word: str) -> str:
    """As a person would type it."""
    return word if re.fullmatch(r"[\w./=:-]+", word) else f'"{word}"'


def _find(pattern: str, output: str) -> str:
    found = re.search(pattern, output)
    if found is None:
        raise DemoStopped("a command did not print what the next step needs")
    return found[1]
