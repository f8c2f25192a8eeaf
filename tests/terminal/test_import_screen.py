"""Importing other agents' sessions and exporting, in the real program."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from recollect.display.agent_sessions import describe_offer, describe_offers, find_offers
from recollect.store.contract import SessionInfo
from recollect.terminal.import_screen import ImportScreen, progress_line
from recollect.terminal.resume_screen import ResumeScreen
from recollect.terminal.start_options import StartOptions
from tests.terminal.pilot import DrivenTerminal, TerminalPlace
from tests.terminal.stored_sessions import add_session, exchange, run_command

PICKER = StartOptions(initial_screen="resume")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return tmp_path


def claude_lines(session: str, folder: Path, prompts: Iterable[str]) -> list[str]:
    above, lines = None, []
    for number, prompt in enumerate(prompts):
        record = {
            "type": "user",
            "sessionId": session,
            "uuid": f"{session}-{number}",
            "parentUuid": above,
            "timestamp": f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z",
            "cwd": str(folder),
            "message": {"role": "user", "content": prompt},
        }
        above = record["uuid"]
        lines.append(json.dumps(record))
    return lines


def add_claude(home: Path, session: str, folder: Path, prompts: Iterable[str] = ("hi",)) -> Path:
    name = re.sub(r"[^a-zA-Z0-9]", "-", str(folder))
    file = home / ".claude" / "projects" / name / f"{session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(claude_lines(session, folder, prompts)) + "\n")
    return file


async def sessions(driven: DrivenTerminal) -> tuple[SessionInfo, ...]:
    return await driven.app.runner.runtime.store.sessions()


async def run_import(driven: DrivenTerminal, result: str) -> None:
    await driven.wait(lambda: isinstance(driven.app.screen, ImportScreen), "the import screen")
    await driven.press("enter")
    await driven.wait_shown(result)


def test_sessions_of_other_agents_are_offered_imported_and_later_only_what_is_new(
    terminal: TerminalPlace, home: Path
) -> None:
    async def use() -> None:
        add_claude(home, "other", home / "elsewhere")
        own = add_claude(home, "own", terminal.project, ["about this project"])
        broken = add_claude(home, "broken", home / "elsewhere")
        broken.write_text(broken.read_text() + "{ no JSON \x1b[31m\n")
        async with terminal.open(options=PICKER) as driven:
            await driven.wait_shown("3 sessions of Claude Code on this machine: ^O imports")
            offers = await find_offers(driven.app.runner.runtime)
            assert offers[0].files[0].path.stem == "own"
            assert "1 of this project · 3 not imported · ~/.claude" in describe_offer(offers[0])
            await driven.press("ctrl+o")
            await run_import(driven, "3 sessions imported")
            await driven.wait_shown("broken.jsonl, line 2")
            assert "\x1b" not in driven.shown()
            await driven.press("escape")
            await driven.wait(lambda: isinstance(driven.app.screen, ResumeScreen))
            await driven.wait_shown("about this project")
            await driven.wait(lambda: "^O imports" not in driven.shown(), "nothing to be offered")
            own.write_text("\n".join(claude_lines("own", terminal.project, ["about this", "more"])))
            await driven.press("ctrl+o")
            await run_import(driven, "1 session imported")
            await driven.wait_shown("2 had nothing new")
            assert len(await sessions(driven)) == 3
            await driven.press("q")
            await driven.wait(lambda: isinstance(driven.app.screen, ResumeScreen))

    asyncio.run(use())


def test_an_import_is_stopped_with_escape_and_goes_on_from_there(
    terminal: TerminalPlace, home: Path
) -> None:
    async def use() -> None:
        for number in range(3):
            words = (f"{number} {n} " + "word " * 50 for n in range(6_000))
            add_claude(home, f"s{number}", home / "elsewhere", words)
        async with terminal.open(size=(40, 12)) as driven:
            await run_command(driven, "/import")
            await driven.wait(lambda: isinstance(driven.app.screen, ImportScreen))
            screen = driven.app.screen
            assert isinstance(screen, ImportScreen)
            driven.app.simulate_key("enter")  # the pilot would wait until nothing happens
            while not screen.is_importing:
                await asyncio.sleep(0)
            driven.app.simulate_key("escape")
            await driven.wait_shown("stopped; importing again")
            assert len(await sessions(driven)) < 3
            await run_import(driven, "18,003 entries")
            await driven.press("escape")
            assert {one.entries >= 6_000 for one in await sessions(driven)} == {True}

    asyncio.run(use())


def test_import_and_export_in_text(terminal: TerminalPlace, home: Path) -> None:
    async def use() -> None:
        file = add_claude(home, "one", terminal.project, ["look at the parser"])
        mine = await add_session(terminal, "mine", exchange("a", "b"))
        async with terminal.open(options=StartOptions(session=mine.id), size=(120, 40)) as driven:

            async def command(text: str, shown: str) -> None:
                await run_command(driven, text)
                await driven.wait_shown(shown)

            await command(f"/import {file}", "one.jsonl: 2 entries added → session ")
            await command(f"/import {file.parent}", "nothing new, 1 known")
            await command("/import nowhere.json", "nowhere.json")
            await command("/import 'open", "No closing quotation")
            await command("/export out.json --format history-server", "out.json, ")
            await command("/export out.json --format history-server", "already has this content")
            await command("/export out.json --format gemini", "another file (--force replaces it)")
            assert "history" not in (terminal.project / "out.json").read_text()[:20]
            await command("/export --format nonsense", "no export format 'nonsense'")
            await command("/new", "ask · mine")
            await driven.wait(lambda: driven.app.runner.session is None)
            await command("/export", "no session yet to export")

    asyncio.run(use())


def test_no_agents_no_offer(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open() as driven:
            assert describe_offers(await find_offers(driven.app.runner.runtime)) == ""
            await run_command(driven, "/import")
            await driven.wait_shown("no sessions of Claude Code or Gemini CLI")

    asyncio.run(use())


def test_progress_is_in_bytes_and_a_hostile_name_stays_one_line() -> None:
    line = progress_line(500, 1_000, "a\x1b[31m\nb")
    assert line == "██████████░░░░░░░░░░ 500 bytes of 1.0 kB · a␛[31m b"
    assert progress_line(5, 0, "").startswith("█" * 20)
