"""Ordinary work runs: in mode `free` with a sandbox, lines of everyday work need no question.

One list is written down here, the other is taken at test time from the real sessions below
`RECOLLECT_TRANSCRIPTS`: the shell commands their agents ran, in an order that depends on nothing
but the commands.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recollect.permissions.command_judge import judge_line
from recollect.permissions.command_rules import CommandRules, parse_rules
from recollect.permissions.folder_contents import FindSecrets
from recollect.runtime.secret_files import secret_finder
from tests.permissions.everyday_commands import EVERYDAY, RULES
from tests.permissions.everyday_searches import BESIDE_A_SECRET, SEARCHES
from tests.permissions.workspaces import no_secrets

_PLACE = os.environ.get("RECOLLECT_TRANSCRIPTS", "")
_REMOTE = ("git push", "bd sync", "git remote")  # they change what others see, so they ask


def _tool_uses(file: Path) -> Iterator[tuple[str, str]]:
    """Shell commands of a session with the folder each ran in."""
    for line in file.read_bytes().splitlines():
        entry: Any = msgspec.json.decode(line)
        content = (entry.get("message") or {}).get("content") if isinstance(entry, dict) else None
        for part in content if isinstance(content, list) else []:
            if part.get("type") == "tool_use" and part.get("name") == "Bash":
                yield part["input"]["command"], entry.get("cwd", "")


def _real_commands(count: int) -> list[tuple[str, str]]:
    distinct: dict[str, str] = {}
    for file in sorted(Path(_PLACE).rglob("*.jsonl")):
        for command, folder in _tool_uses(file):
            if not any(remote in command for remote in _REMOTE):
                distinct.setdefault(command, folder)
    by_digest = sorted(distinct, key=lambda text: hashlib.sha256(text.encode()).digest())
    return [(command, distinct[command]) for command in by_digest[:count]]


def _refused(
    lines: list[tuple[str, str]], rules: CommandRules, find_secrets: FindSecrets = no_secrets
) -> dict[str, str]:
    verdicts = {
        command: judge_line(command, rules, root=root, sandboxed=True, find_secrets=find_secrets)
        for command, root in lines
    }
    return {text: one.reason for text, one in verdicts.items() if one.decision != "allow"}


def test_everyday_lines_run_in_mode_free_with_a_sandbox() -> None:
    lines = [(text, "/home/me/project") for text in (*EVERYDAY, *SEARCHES)]
    assert len(lines) >= 85
    assert len(SEARCHES) >= 25
    refused = _refused(lines, CommandRules(mode="free"))
    assert len(refused) <= 0.03 * len(lines), refused


def test_lines_that_leave_out_the_secret_of_a_project_run_in_mode_free(tmp_path: Path) -> None:
    for name in ("src/app.py", "tests/test_app.py", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("foo\n")
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    (tmp_path / ".env").write_text("KEY=secret\n")
    lines = [(text, str(tmp_path)) for text in BESIDE_A_SECRET]
    assert _refused(lines, CommandRules(mode="free"), secret_finder(tmp_path)) == {}


@pytest.mark.skipif(not _PLACE, reason="RECOLLECT_TRANSCRIPTS is not set")
def test_commands_of_real_sessions_run_in_mode_free_with_a_sandbox() -> None:
    lines = _real_commands(100)
    assert len(lines) == 100
    refused = _refused(lines, CommandRules(mode="free"))
    assert len(refused) <= 3, refused


def test_most_everyday_lines_run_in_mode_ask_under_the_rules_one_would_write() -> None:
    lines = [(text, "/home/me/project") for text in EVERYDAY]
    refused = _refused(lines, parse_rules(allow=RULES))
    assert len(refused) <= 0.3 * len(lines), refused


def test_everyday_lines_ask_where_there_is_no_sandbox() -> None:
    for text in EVERYDAY:
        verdict = judge_line(text, CommandRules(mode="free"), sandboxed=False)
        assert verdict.decision == "ask", text
        assert judge_line(text, parse_rules(allow=RULES), sandboxed=False).decision == "ask"
