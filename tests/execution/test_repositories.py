"""Whatever a command writes into git's folders, git runs none of it when the user runs git."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from recollect.execution.sandbox import Isolation
from recollect.settings import data_directory
from tests.execution.workbench import PATIENCE, Bench, isolation_of, on_bench, said

SAFE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ALLOW_PROTOCOL": "file"}
NAME = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture(params=["bubblewrap", "landlock"])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return isolation_of(request.param)


def git(folder: Path, *words: str) -> str:
    line = ["git", "-c", "protocol.file.allow=always", *words]
    ran = subprocess.run(
        line, cwd=folder, capture_output=True, text=True, env={**os.environ, **SAFE, **NAME}
    )
    return ran.stdout + ran.stderr


def make_repositories(root: Path) -> Path:
    """A repository with a submodule that has a submodule, a linked working tree, a repository in
    a sub-folder, one with settings and hooks elsewhere in the workspace."""
    for name in ("inner", "middle"):
        (root / name).mkdir(parents=True)
        git(root / name, "init", "-q")
        (root / name / "file").write_text(name)
        if name == "middle":
            git(root / name, "submodule", "add", "-q", str(root / "inner"), "deep")
        git(root / name, "add", "-A")
        git(root / name, "commit", "-qm", "one")
    work = root / "work"
    work.mkdir()
    git(work, "init", "-q")
    git(work, "submodule", "add", "-q", str(root / "middle"), "mod")
    git(work, "submodule", "update", "-q", "--init", "--recursive")
    (work / "a.txt").write_text("a")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "one")
    git(work, "worktree", "add", "-q", "tree")
    for folder in (work, work / "mod"):
        git(folder, "config", "extensions.worktreeConfig", "true")
    (work / "sub" / "own").mkdir(parents=True)
    git(work / "sub" / "own", "init", "-q")
    git(work / "sub" / "own", "config", "core.hooksPath", "../hooks")
    git(work / "sub" / "own", "config", "include.path", "../../more.conf")
    (work / "evil.sh").write_text(f"#!/bin/sh\ntouch {root}/fired\n")
    (work / "evil.sh").chmod(0o755)
    return work


SETTING = "printf '[core]\\n\\tfsmonitor = {0}/evil.sh\\n' >> {1}"
HOOK = "mkdir -p {1}; cp {0}/evil.sh {1}/post-index-change; cp {0}/evil.sh {1}/pre-commit"
PLACES = {  # where a command plants something, and where the user then runs git
    SETTING: {
        ".git/config": ".",
        ".git/config.worktree": ".",
        ".git/modules/mod/config": "mod",
        ".git/modules/mod/modules/deep/config": "mod/deep",
        ".git/modules/mod/config.worktree": "mod",
        ".git/worktrees/tree/config.worktree": "tree",
        "sub/own/.git/config": "sub/own",
        "sub/more.conf": "sub/own",
    },
    HOOK: {
        ".git/hooks": ".",
        ".git/modules/mod/hooks": "mod",
        ".git/modules/mod/modules/deep/hooks": "mod/deep",
        "sub/hooks": "sub/own",
    },
}
WHOLE = [  # whole repositories, links to them, and folders exchanged
    "mkdir new && cd new && git init -q && git config core.fsmonitor {0}/evil.sh",
    (
        "git init -q --bare new && cd new && git config core.bare false && "
        "git config core.worktree . && git config core.fsmonitor {0}/evil.sh"
    ),
    (
        "cp -r .git other && printf '[core]\\n\\tfsmonitor = {0}/evil.sh\\n' >> other/config && "
        "mkdir new && echo 'gitdir: ../other' > new/.git"
    ),
    (
        "cp -r .git $TMPDIR/other && git -C $TMPDIR/other config core.fsmonitor {0}/evil.sh; "
        "mkdir new && ln -s $TMPDIR/other new/.git"
    ),
    (
        "mkdir new && cd new && git init -q && mkdir -p .git/hooks && "
        "cp {0}/evil.sh .git/hooks/post-index-change"
    ),
    "mkdir -p new/.git && printf '[core]\\n\\tfsmonitor = {0}/evil.sh\\n' > new/.git/config",
    (
        "mv sub moved; mkdir -p sub/own && cd sub/own && git init -q && "
        "git config core.fsmonitor {0}/evil.sh"
    ),
    "ln .git/config hard; printf '[core]\\n\\tfsmonitor = {0}/evil.sh\\n' >> hard",
    "ln .git/modules/mod/config hard; printf '[core]\\nfsmonitor = {0}/evil.sh\\n' >> hard",
    (
        "mkdir -p moved/own other/o other/r/heads && cd moved/own && "
        "ln -s ../../other/o objects && ln -s ../../other/r refs && "
        "echo 'ref: refs/heads/main' > HEAD && "
        "printf '[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = .\\n' > config; "
        "echo 'fsmonitor = {0}/evil.sh' >> config"
    ),
    "echo ../other > .git/commondir; cp -r .git other; git -C other config core.fsmonitor x",
    "rm mod/.git; cd mod && git init -q && git config core.fsmonitor {0}/evil.sh",
]


def run_git_everywhere(work: Path) -> None:
    for folder in (".", "mod", "mod/deep", "tree", "sub/own", "new", "moved/own"):
        place = work / folder
        if place.is_dir():
            (place / "touched").write_text("x")
            for line in (("init", "-q"), ("status",), ("add", "touched"), ("commit", "-qm", "x")):
                if line[0] != "init" or folder == "new":
                    git(place, *line)


def attack_lines(work: Path) -> list[str]:
    places = [plant.format(work, f"{work}/{at}") for plant, all_ in PLACES.items() for at in all_]
    return [*places, *(line.format(work) for line in WHOLE)]


@pytest.mark.parametrize("number", range(0, sum(map(len, PLACES.values())) + len(WHOLE), 3))
def test_planted_settings_and_hooks_fire_without_a_sandbox(tmp_path: Path, number: int) -> None:
    work = make_repositories(tmp_path)
    line = attack_lines(work)[number]
    environment = {**os.environ, **SAFE, "TMPDIR": str(tmp_path)}
    subprocess.run(["bash", "-c", line], cwd=work, capture_output=True, env=environment)
    run_git_everywhere(work)
    assert (tmp_path / "fired").exists() or "commondir" in line, line


def test_nothing_that_a_command_planted_fires_when_the_user_runs_git(
    tmp_path: Path, isolation: Isolation
) -> None:
    work = make_repositories(tmp_path)
    for line in attack_lines(work):
        said(tmp_path, isolation, line)
        run_git_everywhere(work)
        assert not (tmp_path / "fired").exists(), line
        subprocess.run(["rm", "-rf", "new", "other", "moved", "hard"], cwd=work, check=True)


def test_a_repository_that_a_command_makes_works_and_what_it_planted_is_kept(
    tmp_path: Path, isolation: Isolation
) -> None:
    shown = said(
        tmp_path,
        isolation,
        "git init -q fresh && cd fresh && git config user.name me && git config user.email a@b && "
        "git config alias.x '!evil' && echo a > a && git add a && git commit -qm one && git log",
    )
    fresh = tmp_path / "work" / "fresh"
    assert "PROTECTED" in shown
    assert "git would act on alias.x" in shown
    assert "evil" not in (fresh / ".git" / "config").read_text()
    assert git(fresh, "config", "user.email") == "a@b\n"
    assert git(fresh, "status", "--short") == ""
    (kept,) = (data_directory() / "replaced").glob("*/*config")
    assert "evil" in kept.read_text()
    assert str(kept) in shown


def test_protected_names_that_a_command_makes_are_taken_away(
    tmp_path: Path, isolation: Isolation
) -> None:
    names = (".envrc", ".mcp.json", ".vscode/tasks.json", ".github/workflows/ci.yml", "mise.toml")
    make = "; ".join(f"mkdir -p $(dirname {name}); echo evil > {name}" for name in names)
    shown = said(tmp_path, isolation, f"{make}; echo fine > fine.txt")
    work = tmp_path / "work"
    assert (work / "fine.txt").read_text() == "fine\n"
    assert [name for name in names if (work / name).exists()] == []
    assert shown.count("PROTECTED") == len(names)


def test_existing_protected_files_are_as_before_through_links_too(
    tmp_path: Path, isolation: Isolation
) -> None:
    work = tmp_path / "work"
    (work / "docs").mkdir(parents=True)
    (work / ".github" / "workflows").mkdir(parents=True)
    (work / ".github" / "workflows" / "ci.yml").write_text("mine")
    (work / "docs" / "agents.md").write_text("mine")
    (work / "AGENTS.md").symlink_to("docs/agents.md")
    (work / ".mcp.json").write_text("mine")
    said(
        tmp_path,
        isolation,
        "echo evil > docs/agents.md; echo evil > .github/workflows/ci.yml; echo evil >> .mcp.json; "
        "rm -rf .github; mkdir -p .github/workflows; echo evil > .github/workflows/new.yml; "
        "rm .mcp.json; ln -s /etc/passwd .mcp.json; chmod 777 .mcp.json",
    )
    assert (work / "docs" / "agents.md").read_text() == "mine"
    assert (work / "AGENTS.md").read_text() == "mine"
    assert not (work / ".mcp.json").is_symlink()
    assert (work / ".mcp.json").read_text() == "mine"
    assert [file.name for file in (work / ".github" / "workflows").iterdir()] == ["ci.yml"]


def test_what_a_running_job_wrote_is_not_taken_for_the_users(
    tmp_path: Path, isolation: Isolation
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / ".mcp.json").write_text("mine")

    async def steps(bench: Bench) -> None:
        plant = "echo evil > .envrc; echo evil > .mcp.json"
        wait = "until [ -e sub/over ]; do " + plant + "; echo planted; sleep 0.02; done"
        await bench.run(wait, background=True)
        await bench.read_until("job-1", "planted")
        late = asyncio.create_task(
            bench.run("echo begun; until [ -e sub/end ]; do sleep 0.02; done")
        )
        async with asyncio.timeout(PATIENCE):
            while "begun" not in "".join(bench.heard):
                await asyncio.sleep(0.02)
        (work / "sub" / "over").touch()
        await bench.read_until("job-1", "[exit code 0")
        (work / "sub" / "end").touch()
        await late

    on_bench(tmp_path, isolation, steps)
    assert not (work / ".envrc").exists()
    assert (work / ".mcp.json").read_text() == "mine"


def test_many_folders_do_not_hide_a_repository(tmp_path: Path, isolation: Isolation) -> None:
    said(
        tmp_path,
        isolation,
        "mkdir -p a/{1..3500} z/z && cd z/z && git init -q && git config core.fsmonitor ./evil.sh",
    )
    assert "evil" not in (tmp_path / "work" / "z" / "z" / ".git" / "config").read_text()
