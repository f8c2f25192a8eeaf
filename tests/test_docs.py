from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("number", [1, 2])  # 0: tests/cli/test_readme.py
def test_the_readmes_programs_print_what_the_readme_says(tmp_path: Path, number: int) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", readme, re.S)
    assert len(found) == 3
    program, printed = found[number]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"RECOLLECT_HOME": str(tmp_path), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (printed, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_every_command_is_documented() -> None:
    from recollect.cli.group import COMMANDS

    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `recollect (\w+)", page, re.M)) == set(COMMANDS)


def test_every_environment_variable_that_the_source_reads_is_documented() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for file in (ROOT / "src").rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        for name in re.findall(r"environ(?:\.get\(|\[)\"([A-Z_]+)\"", source):
            assert name in page, f"{name}, read in {file.name}"
