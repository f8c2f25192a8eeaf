from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


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
