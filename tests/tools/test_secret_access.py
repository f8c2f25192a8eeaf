"""What tools do with the secrets of the workspace."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from recollect.tools.builtin import glob, list_directory, read_file, replace, search_file_content
from recollect.tools.builtin import write_file as write
from recollect.tools.tool import Tool, ToolContext, ToolOutput
from recollect.workspace.workspace_secrets import ShownSecrets
from tests.tools.calls import text

SECRET = "planted-secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (".env", "app/.env.local", ".ssh/config", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"KEY={SECRET}\n")
    return tmp_path


def use(root: Path, tool: Tool, *, approved: bool = False, **arguments: object) -> ToolOutput:
    names = arguments.pop("shown", ())
    assert isinstance(names, tuple)
    shown = arguments.pop("session", ShownSecrets(names))
    assert isinstance(shown, ShownSecrets)
    context = ToolContext(roots=(root,), approved=approved, shown=shown)
    return asyncio.run(tool(json.dumps(arguments), context))


@pytest.mark.parametrize(
    "path", [".env", "./app/../.env", "app/.env.local", ".ssh/config", "link", "@.env"]
)
def test_a_secret_is_read_only_if_the_user_approved_or_shows_it(root: Path, path: str) -> None:
    (root / "link").symlink_to(".env")
    (root / "linked").symlink_to(".ssh")
    refused = use(root, read_file, absolute_path=path)
    assert refused.is_error
    assert "is a secret of the workspace" in text(refused)
    assert SECRET not in text(refused)
    assert SECRET in text(use(root, read_file, absolute_path=path, approved=True))
    assert SECRET in text(use(root, read_file, absolute_path=path, shown=(".",)))
    assert SECRET not in text(use(root, read_file, absolute_path="linked/config"))


def test_of_several_files_the_secrets_alone_are_refused(root: Path) -> None:
    output = use(root, read_file, absolute_path=[".env", "notes.txt"])
    assert "is a secret of the workspace" in text(output)
    assert not output.is_error
    assert SECRET in str(output.content[1])


def test_a_search_leaves_secrets_out_and_says_so(root: Path) -> None:
    found = text(use(root, search_file_content, pattern="KEY"))
    assert found.count(SECRET) == 1
    assert "left out, as secrets of the workspace:" in found
    assert ".env.local" in found
    assert SECRET not in text(use(root, search_file_content, pattern="KEY", path=".env"))
    assert SECRET not in text(use(root, search_file_content, pattern="KEY", path=".ssh"))
    assert text(use(root, search_file_content, pattern="KEY", shown=(".",))).count(SECRET) == 4


def test_names_are_listed(root: Path) -> None:
    assert ".env" in text(use(root, list_directory))
    assert ".env" in text(use(root, glob, pattern="**/.env*"))


def test_a_secret_is_not_changed_and_not_shown_by_a_change(root: Path) -> None:
    for output in (
        use(root, replace, file_path=".env", old_string="KEY", new_string="X"),
        use(root, replace, file_path=".env", old_string="nothing like it", new_string="X"),
        use(root, write, file_path=".env", content="X=1"),
    ):
        assert output.is_error
        assert SECRET not in text(output)
    assert SECRET in (root / ".env").read_text()
    assert not use(root, write, file_path=".env.new", content="X=1").is_error
    assert not use(root, write, file_path=".env", content="X=1", approved=True).is_error


def test_an_empty_secret_is_a_file_like_others(root: Path) -> None:
    (root / ".env.test").touch()
    assert "is empty" in text(use(root, read_file, absolute_path=".env.test"))


def edit(root: Path, path: str, old: str, new: str, **more: Any) -> ToolOutput:
    return use(root, replace, file_path=path, old_string=old, new_string=new, **more)


def test_what_a_tool_wrote_is_no_secret_from_the_model(root: Path) -> None:
    shown = ShownSecrets()
    use(root, write, file_path=".env.test", content="A=1\n", session=shown)
    assert "A=1" in text(use(root, read_file, absolute_path=".env.test", session=shown))
    assert not edit(root, ".env.test", "A=1", "A=2", session=shown).is_error
    assert "A=2" in text(use(root, read_file, absolute_path=".env.test", session=shown))
    assert use(root, read_file, absolute_path=".env.test").is_error  # another session


def test_a_secret_that_was_changed_with_approval_stays_one(root: Path) -> None:
    shown = ShownSecrets()
    assert not edit(root, ".env", "KEY", "NEW", session=shown, approved=True).is_error
    assert use(root, read_file, absolute_path=".env", session=shown).is_error
