"""What starts something or speaks for the user cannot be written by tools, in any mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.testing import call
from recollect.workspace.protected_names import PROTECTED_NAMES
from tests.cli.model_server import ENV, outputs, reply, server
from tests.cli.runner import Cli
from tests.models.server import HELLO, http

FREE = '[permissions]\nmode = "free"\n'
WINDOW = 200_000  # for hundreds of calls


def write(cli: Cli, *paths: str, tool: str = "write_file") -> list[str]:
    """What a model is told that tries to write these files."""
    rest = {"content": "evil"} if tool == "write_file" else {"old_string": "", "new_string": "evil"}
    calls = [call(tool, id=f"w{at}", file_path=path, **rest) for at, path in enumerate(paths)]
    with server(cli, reply(*calls), http(HELLO), more=FREE, window=WINDOW) as on:
        cli.ok("-p", "Write them.", env=ENV)
        return outputs(on)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("tool", ["write_file", "replace"])
def test_no_protected_name_is_written_in_any_folder_and_case(cli: Cli, tool: str) -> None:
    names = [name.path.replace("*", "x") for name in PROTECTED_NAMES]
    paths = [f"packages/web/{name}" if at % 2 else name.upper() for at, name in enumerate(names)]
    told = write(cli, *paths, *(f"{name}/below" for name in names), "fine.txt", tool=tool)
    assert [text for text in told[:-1] if "only the user changes it" not in text] == []
    assert files(cli.project) == ["fine.txt"]


def test_other_spellings_and_bare_repositories_are_refused_as_well(cli: Cli) -> None:
    (cli.project / "a").mkdir()
    paths = (
        "./.github//workflows/./ci.yml",
        "a/../.mcp.json",
        f"{cli.project}/.envrc",
        "AGENTS.md.",
        ".g\u200cit/config",
        "GIT~1/config",
        "a/HEAD",
    )
    told = write(cli, *paths)
    assert [text for text in told if "only the user changes it" not in text] == []
    assert files(cli.project) == []


def test_a_file_that_a_protected_link_leads_to_is_refused(cli: Cli) -> None:
    for folder in ("docs", "ci", "scripts", ".github", ".husky", ".git/hooks", "packages/web"):
        (cli.project / folder).mkdir(parents=True)
    links = {
        "AGENTS.md": "docs/agents.md",
        ".github/workflows": "../ci",
        ".husky/pre-commit": "../scripts/check.sh",
        ".git/hooks/pre-push": "../../scripts/push.sh",
        "packages/web/CLAUDE.md": "notes.md",
        "README": "docs/readme.md",
    }
    for name, target in links.items():
        (cli.project / name).symlink_to(target)
    guarded = (
        "docs/agents.md",
        "ci/build.yml",
        "scripts/check.sh",
        "scripts/push.sh",
        "packages/web/notes.md",
    )
    told = write(cli, *guarded, "docs/readme.md", "scripts/other.sh")
    assert ["only the user changes it" in text for text in told] == [True] * 5 + [False] * 2
    assert files(cli.project / "scripts") == ["other.sh"]
    assert files(cli.project / "docs") == ["readme.md"]
