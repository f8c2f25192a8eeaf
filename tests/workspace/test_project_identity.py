from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

from recollect.engine import open_store
from recollect.testing import user
from recollect.workspace.project_identity import identify_project


def git(folder: Path, *arguments: str) -> None:
    names = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    subprocess.run(["git", *names, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder: Path, first: str = "first") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "a").write_text(first, encoding="utf-8")
    git(folder, "add", "a")
    git(folder, "commit", "--quiet", "-m", first)
    return folder


def plain(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("one", "two", "three"):
        (folder / name).write_text(name, encoding="utf-8")
    return folder


def sessions_at(store: Path, folder: Path, *, make: bool = False) -> int:
    async def story() -> int:
        async with open_store(store) as opened:
            project = identify_project(folder)
            if make:
                session = await opened.create(project=project)
                await opened.append(session.id, [user("hi")], parent=None)
            return len(await opened.sessions(project=project))

    return asyncio.run(story())


def test_a_moved_repository_finds_its_sessions_again(tmp_path: Path) -> None:
    store, folder = tmp_path / "s.db", repository(tmp_path / "old")
    assert sessions_at(store, folder, make=True) == 1
    (folder / "sub").mkdir()
    assert sessions_at(store, folder / "sub") == 1
    moved = folder.rename(tmp_path / "new")
    assert sessions_at(store, moved) == 1
    git(tmp_path, "clone", "--quiet", str(moved), "clone")
    assert sessions_at(store, tmp_path / "clone") == 1


def test_another_repository_at_the_same_path_is_another_project(tmp_path: Path) -> None:
    store, folder = tmp_path / "s.db", repository(tmp_path / "here")
    sessions_at(store, folder, make=True)
    shutil.rmtree(folder)
    repository(folder, first="something else")
    assert sessions_at(store, folder) == 0


def test_a_folder_keeps_its_sessions_when_it_becomes_a_repository(tmp_path: Path) -> None:
    store, folder = tmp_path / "s.db", plain(tmp_path / "here")
    sessions_at(store, folder, make=True)
    git(folder, "init", "--quiet")
    assert sessions_at(store, folder) == 1
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    assert sessions_at(store, folder, make=True) == 2
    assert sessions_at(store, folder.rename(tmp_path / "there")) == 2


def test_a_renamed_folder_without_git_finds_its_sessions_again(tmp_path: Path) -> None:
    store, folder = tmp_path / "s.db", plain(tmp_path / "old")
    sessions_at(store, folder, make=True)
    assert sessions_at(store, folder.rename(tmp_path / "new"), make=True) == 2
    assert sessions_at(store, tmp_path / "new") == 2


def test_another_folder_is_never_mistaken_for_a_renamed_one(tmp_path: Path) -> None:
    store, folder = tmp_path / "s.db", plain(tmp_path / "old")
    sessions_at(store, folder, make=True)
    shutil.copytree(folder, tmp_path / "copy")
    assert sessions_at(store, tmp_path / "copy") == 0
    shutil.rmtree(folder)
    reborn = tmp_path / "reborn"  # often gets the inode that has just become free
    reborn.mkdir()
    (reborn / "unrelated").write_text("", encoding="utf-8")
    assert sessions_at(store, reborn) == 0


def test_a_shallow_clone_is_known_by_its_path(tmp_path: Path) -> None:
    folder = repository(tmp_path / "origin")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{folder}", "shallow")
    assert identify_project(folder).git is not None
    assert identify_project(tmp_path / "shallow").git is None


def test_a_hostile_repository_runs_nothing(tmp_path: Path) -> None:
    folder, trace = repository(tmp_path / "here"), tmp_path / "was-run"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {trace}\n", encoding="utf-8")
    trap.chmod(0o755)
    for setting in ("core.fsmonitor", "core.pager", "core.hooksPath", "core.sshCommand"):
        git(folder, "config", setting, str(trap))
    assert identify_project(folder).git is not None
    assert not trace.exists()


def test_the_first_commit_is_what_git_says_also_in_a_worktree_and_a_submodule(
    tmp_path: Path,
) -> None:
    folder = repository(tmp_path / "here")
    (folder / "a").write_text("second", encoding="utf-8")
    git(folder, "commit", "--quiet", "-a", "-m", "second")
    asked = ("git", "rev-list", "--max-parents=0", "HEAD")
    first = subprocess.run(asked, cwd=folder, check=True, capture_output=True, text=True).stdout
    git(folder, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    outer, local = repository(tmp_path / "outer", first="outer"), "protocol.file.allow=always"
    git(outer, "-c", local, "submodule", "--quiet", "add", str(folder), "inner")
    for place in (folder, tmp_path / "tree", outer / "inner"):
        assert identify_project(place).git == first.strip()
    assert identify_project(outer).git not in (None, first.strip())


def test_a_repository_without_commits_and_one_that_is_none_have_no_first_commit(
    tmp_path: Path,
) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")
    (tmp_path / "broken" / ".git").mkdir(parents=True)
    for name in ("empty", "broken"):
        assert identify_project(tmp_path / name).git is None
        assert identify_project(tmp_path / name).path == str(tmp_path / name)
