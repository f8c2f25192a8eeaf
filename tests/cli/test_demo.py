"""`recollect demo`, `./start`, and the recording: what is shown really happened."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.cli.next_steps import SUGGESTED_KEYS
from recollect.cli.replay_server import Recording, load_recording
from recollect.entries import Elide, Entry, Message, Text, ToolCall, ToolResult
from recollect.profiles import ENDPOINTS
from recollect.store.open_store import open_store
from tests.cli.runner import PATIENCE, Cli, Result
from tests.transcripts.file_builders import SAMPLES

ROOT = Path(__file__).parents[2]
FOLDER = re.compile(r"happens now, in (\S+):")
HEADINGS = ("1. The agent", "2. What fills", "3. A compaction", "4. A search", "What you can do")


class Kept:
    """A demo whose folder was kept, and what it left there."""

    def __init__(self, folder: Path) -> None:
        self.cli = Cli(folder)
        self.out = self.cli.ok("demo", "--keep", "tour").out
        self.project = self.cli.project / "tour" / "limiter"
        self.home = self.cli.project / "tour" / "recollect-home"

    @property
    def file(self) -> str:
        return (self.project / "limiter.py").read_text()

    def run(self, *arguments: str) -> Result:
        env = {"RECOLLECT_HOME": str(self.home)}
        return self.cli.ok(*arguments, env=env, cwd=self.project)

    def entries(self) -> tuple[Entry, ...]:
        """Of all branches, oldest first."""

        async def read() -> tuple[Entry, ...]:
            async with open_store(self.home / "recollect.db") as store:
                (session,) = await store.sessions()
                return await store.tree(session.id)

        return asyncio.run(read())

    def parts(self, kind: type) -> list[object]:
        bodies = [entry.body for entry in self.entries() if isinstance(entry.body, Message)]
        return [part for body in bodies for part in body.parts if isinstance(part, kind)]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def recording() -> Recording:
    return load_recording()


# --- what happened -----------------------------------------------------------------------------


def test_the_demo_says_that_it_is_a_recording_and_shows_every_step_in_order(kept: Kept) -> None:
    assert "This is a RECORDING" in kept.out.split("$ ")[0]
    places = [kept.out.index(heading) for heading in HEADINGS]
    assert places == sorted(places)
    assert len(kept.out.splitlines()) < 160


def test_every_recorded_reply_is_used_word_for_word(kept: Kept, recording: Recording) -> None:
    bodies = [entry.body for entry in kept.entries()]
    said = [
        "".join(part.text for part in body.parts if isinstance(part, Text))
        for body in bodies
        if isinstance(body, Message) and body.role == "model"
    ]
    assert said == [reply.text for prompt in recording.prompts for reply in prompt.replies]


def test_every_call_of_the_recording_succeeded_or_failed_as_recorded(
    kept: Kept, recording: Recording
) -> None:
    replies = [reply for prompt in recording.prompts for reply in prompt.replies]
    expected = [(call.tool, call.fails) for reply in replies for call in reply.calls]
    calls, results = kept.parts(ToolCall), kept.parts(ToolResult)
    assert [call.name for call in calls if isinstance(call, ToolCall)] == [t for t, _ in expected]
    assert [
        (result.name, result.is_error) for result in results if isinstance(result, ToolResult)
    ] == expected


def test_the_file_really_came_back_and_the_printed_command_brings_the_change_again(
    kept: Kept,
) -> None:
    assert "self.updated = now" in kept.file  # of the first prompt, to whose end it rewound
    assert "self.lock" not in kept.file
    assert re.search(r"grep -c self\.lock limiter\.py\n4\n.*restored +limiter\.py", kept.out, re.S)
    assert re.search(r"restored.*grep -c self\.lock limiter\.py\n0\n", kept.out, re.S)
    (back,) = re.findall(r"`recollect (rewind \S+ \S+ --files)` goes back", kept.out)
    again = kept.run(*back.split())
    assert kept.file.count("self.lock") == 4
    (there,) = re.findall(r"`recollect (rewind \S+ \S+ --files)` goes back", again.out)
    kept.run(*there.split())
    assert "self.lock" not in kept.file


def test_the_tests_of_the_project_really_pass_afterwards(kept: Kept) -> None:
    done = subprocess.run([sys.executable, "-m", "unittest"], cwd=kept.project, timeout=PATIENCE)
    assert done.returncode == 0


def test_the_rules_left_out_two_reads_and_one_came_back(kept: Kept) -> None:
    (elide,) = (entry.body for entry in kept.entries() if isinstance(entry.body, Elide))
    assert (elide.rule, len(elide.items)) == ("superseded-read", 2)
    assert re.search(r"superseded-read +[\d,]+ .*limiter\.py", kept.out)
    less, more = re.findall(
        r"--restore.*\nrestored.*\nthe model now sees ([\d,]+) .*previously ([\d,]+)", kept.out
    )[0]
    assert int(less.replace(",", "")) > int(more.replace(",", ""))


def test_the_compaction_and_its_undoing_show_before_and_after(kept: Kept) -> None:
    ((before, after),) = re.findall(r"compacted session \S+: ([\d,]+) → ([\d,]+) tokens", kept.out)
    assert int(after.replace(",", "")) < int(before.replace(",", "")) / 2
    assert f"the model sees {before} tokens in messages again, previously {after}" in kept.out


def test_a_folder_that_exists_is_not_written_into(kept: Kept) -> None:
    again = kept.cli("demo", "--keep", "tour")
    assert (again.code, again.out) == (1, "")
    assert "there is already a folder" in again.err


# --- what it leaves alone ----------------------------------------------------------------------


def test_nothing_of_the_user_is_touched_and_nothing_is_left_behind(cli: Cli) -> None:
    cli.session(title="mine")
    before = {path: path.read_bytes() for path in cli.home.rglob("*") if path.is_file()}
    env = {"GIT_DIR": "/nowhere", "HTTP_PROXY": "http://127.0.0.1:9", "OPENAI_API_KEY": "sk-12345"}
    out = cli.ok("demo", env=env, stdin="not for the recording").out
    assert "not for" not in out
    assert {path: path.read_bytes() for path in cli.home.rglob("*") if path.is_file()} == before
    assert list(cli.project.iterdir()) == []
    (folder,) = FOLDER.findall(out)
    assert not Path(folder).exists()
    assert "OPENAI_API_KEY" in out.split("What you can do")[1]
    assert "sk-12345" not in out


def test_where_the_machine_differs_from_the_recording_the_demo_says_so(
    cli: Cli, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to("/bin/false")
    stopped = cli("demo", env={"PATH": str(programs)})
    assert stopped.code == 1
    assert "the demo stops here: run_shell_command gave" in stopped.out
    assert "the recording has “FAILED (failures=2)”" in stopped.out
    assert "All 4 tests pass" not in stopped.out
    assert "What you can do" in stopped.out
    assert not Path(FOLDER.findall(stopped.out)[0]).exists()


@pytest.mark.parametrize("words", ["read_file", "2. What fills", "4. A search"])
def test_an_interrupt_ends_it_quietly_and_removes_the_folder(cli: Cli, words: str) -> None:
    # on a terminal, where it pauses for the reader and Ctrl-C comes before its end
    stopped = cli.terminal("demo", "--print", keys=[(words, "\x03")])
    assert stopped.code == 130
    assert "Traceback" not in stopped.out
    assert "What you can do" not in stopped.out
    assert not Path(FOLDER.findall(stopped.out)[0]).exists()


def test_an_interrupt_that_python_drops_ends_it_too(cli: Cli) -> None:
    # an object that is interrupted while it is freed, between two steps
    program = """
import signal, sys
from recollect.__main__ import main

class Freed:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

kept = Freed()
def freed_at_the_first_step(event, arguments):
    if event == "subprocess.Popen":
        globals().pop("kept", None)
sys.addaudithook(freed_at_the_first_step)
main(["demo", "--fast"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=cli.project, env=cli.env(), capture_output=True
    )
    assert done.returncode == 130
    assert done.stderr == b""
    assert b"What you can do" not in done.stdout


def test_on_a_terminal_it_fits_and_is_plain_where_colours_are_not_wanted(cli: Cli) -> None:
    shown = cli.screen("demo", "--fast", env={"NO_COLOR": "1"})
    assert shown.code == 0
    assert not re.search(r"\x1b\[\d*m", shown.out)
    calls = [line for line in shown.out.split("\r\n") if line.rpartition("\x1b[K")[2][:1] == "→"]
    assert calls
    assert all(len(line.rpartition("\x1b[K")[2]) <= 80 for line in calls)
    assert "\x1b[1m" in cli.screen("demo", "--fast").out


# --- what comes next ---------------------------------------------------------------------------


def _next_steps(out: str) -> list[str]:
    return [
        line[2:] for line in out.split("What you can do now")[1].splitlines() if line[:2] == "  "
    ]


def test_the_next_steps_work_as_they_are_printed(cli: Cli) -> None:
    user_home = cli.home.parent
    places = {
        "claude-code": user_home / "claude config" / "projects" / "-p" / "one.jsonl",
        "gemini": user_home / ".gemini" / "tmp" / "slug" / "chats" / "session-2026.json",
    }
    for name, place in places.items():
        place.parent.mkdir(parents=True)
        place.write_bytes(SAMPLES[name][0])
    env = cli.env({"CLAUDE_CONFIG_DIR": str(user_home / "claude config")})
    out = cli.ok("demo", env=env).out
    imports = [line for line in _next_steps(out) if " import " in line]
    assert [line.partition("# ")[2] for line in imports] == ["Claude Code: 1", "Gemini CLI: 1"]
    for line in [*imports, *(line for line in _next_steps(out) if " sessions" in line)]:
        done = subprocess.run(
            ["sh", "-c", line], cwd=cli.project, env=env, capture_output=True, timeout=PATIENCE
        )
        assert done.returncode == 0, (line, done.stderr)
    assert len(cli.ok("sessions", "--json").json) >= 2


def test_without_sessions_and_keys_it_tells_how_to_get_both(cli: Cli) -> None:
    out = cli.ok("demo").out
    assert any(line.endswith("import FILE") for line in _next_steps(out))
    for endpoint in ENDPOINTS[:SUGGESTED_KEYS]:
        assert endpoint.keys[0] in out
    program, _, _ = next(line for line in _next_steps(out) if " -p " in line).partition(" -p ")
    done = subprocess.run(
        [*shlex.split(program), "--version"], cwd=cli.project, env=cli.env(), timeout=PATIENCE
    )
    assert done.returncode == 0


@pytest.mark.parametrize("script", ["start", "test"])
def test_the_scripts_are_executable_and_plain_shell(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    for part in (path, ROOT / "scripts" / "uv.sh"):
        assert subprocess.run(["sh", "-n", str(part)], timeout=30).returncode == 0
