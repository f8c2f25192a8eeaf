"""A command in the sandbox cannot change the files that decide what runs later."""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
import subprocess
from pathlib import Path

import pytest

from recollect.entries import json_text
from recollect.execution.guarded_names import GUARDED_NAMES
from recollect.execution.sandbox import Isolation
from recollect.tools.tool import ToolContext
from tests.execution.workbench import PATIENCE, Bench, isolation_of, on_bench, said, words


@pytest.fixture(params=["bubblewrap", "landlock"])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return isolation_of(request.param)


def make_workspace(root: Path, kind: str) -> Path:
    work = root / "work"
    (work / "sub" / "evil").mkdir(parents=True)
    (work / "sub" / "evil" / "hooks").mkdir()
    (work / "sub" / "evil.sh").write_text("evil")
    if kind != "empty":
        subprocess.run(["git", "init", "-q", "--template=", str(work)], check=True)
    if kind == "full":
        (work / ".git" / "hooks").mkdir()
        (work / ".git" / "hooks" / "pre-commit").write_text("mine")
        (work / ".recollect").mkdir()
        (work / ".recollect" / "settings.toml").write_text("mine")
        for name in ("AGENTS.md", "CLAUDE.md", "GEMINI.md"):
            (work / name).write_text("mine")
    return work


def guarded_state(work: Path) -> dict[str, str]:
    """All that is at or below a guarded name: what it is and what it says."""
    found: dict[str, str] = {}
    for guard in GUARDED_NAMES:
        top = work / guard.path
        for path in [top, *(top.rglob("*") if top.is_dir() else ())]:
            if path.is_symlink():
                found[str(path)] = f"link to {path.readlink()}"
            elif path.is_file():
                found[str(path)] = path.read_text()
            elif path.exists():
                found[str(path)] = "a folder" if path.is_dir() else "something"
    return {name.removeprefix(str(work)): value for name, value in found.items()}


ATTACKS = [
    "echo x > AGENTS.md",
    "echo x >> CLAUDE.md",
    "mv sub/evil.sh GEMINI.md",
    "cp sub/evil.sh t; mv -f t AGENTS.md; mv -f sub/evil.sh AGENTS.md",
    "rm -f AGENTS.md; ln sub/evil.sh AGENTS.md",
    "rm -f AGENTS.md; ln -s sub/evil.sh AGENTS.md",
    "mkdir -p .recollect; echo x > .recollect/settings.toml",
    "mv .recollect old; mkdir .recollect; echo x > .recollect/settings.toml",
    "rm -rf .recollect; ln -s sub/evil .recollect",
    "mkdir -p .git/hooks; echo x > .git/hooks/post-checkout",
    "mkdir -p .git/hooks; mv sub/evil.sh .git/hooks/pre-commit",
    "rm -rf .git/hooks; mkdir -p .git; ln -s ../sub/evil .git/hooks",
    "mv .git old; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
    "rm -rf .git; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
    "mkdir -p .git; echo '[core]' >> .git/config",
    "git init -q . 2>&1; git config core.fsmonitor sub/evil.sh",
    "mkdir -p .git; rm -f .git/config; echo '[core]' > .git/config",
    "mkdir -p .git; cp sub/evil.sh .git/t; mv -f .git/t .git/config",
    "mkdir -p .git; echo '[core]' > .git/config.worktree",
    "mkdir -p .git; echo ../sub/evil > .git/commondir",
    "mkdir -p .git; echo ../sub/evil > .git/t; mv -f .git/t .git/commondir",
    "mv sub s; rm -rf .git; mv s/evil .git; ls -a .git",
]


@pytest.mark.parametrize("kind", ["empty", "git", "full"])
def test_guarded_names_cannot_be_written_replaced_or_created(
    tmp_path: Path, isolation: Isolation, kind: str
) -> None:
    for number, attack in enumerate(ATTACKS):
        work = make_workspace(tmp_path / f"bare{number}", kind)
        before = guarded_state(work)
        subprocess.run(["bash", "-c", attack], cwd=work, capture_output=True, check=False)
        assert guarded_state(work) != before, f"without a sandbox this does nothing: {attack}"
    # one sandbox for all: each attack has a workspace of its own
    works = [make_workspace(tmp_path / f"boxed{number}", kind) for number in range(len(ATTACKS))]
    states = [guarded_state(work) for work in works]
    line = "; ".join(f"(cd {work}; {attack})" for work, attack in zip(works, ATTACKS, strict=True))

    async def steps(bench: Bench) -> None:
        context = ToolContext(roots=tuple(works))
        await bench.run_tool(json_text({"command": line}), context)

    on_bench(tmp_path, isolation, steps)
    after = [guarded_state(work) for work in works]
    pairs = zip(ATTACKS, map(deciding, states), map(deciding, after), strict=True)
    assert [attack for attack, before, now in pairs if now != before] == []


def deciding(state: dict[str, str]) -> dict[str, str]:
    """A state without what git makes itself in a new repository: under Landlock a command may."""
    harmless = ("a folder", "")
    return {
        name: text
        for name, text in state.items()
        if text not in harmless and not name.endswith(".sample")
        if name != "/.git/config" or "mine" in text or "evil" in text
    }


@pytest.mark.parametrize(
    "attack",
    [
        "umount .git/hooks; echo x > .git/hooks/pre-commit",
        "mount -o remount,rw,bind .git/hooks; echo x > .git/hooks/pre-commit",
        "unshare -Urm sh -c 'umount .git/hooks; echo x > .git/hooks/pre-commit'",
        "unshare -Urm sh -c 'mount -o remount,bind,rw .git/hooks; echo x > .git/hooks/a'",
        "chmod -R 777 .git/hooks; chattr -i .git/hooks; echo x > .git/hooks/pre-commit",
        "echo x > /proc/self/cwd/.git/hooks/pre-commit; echo x > /proc/1/root$PWD/.git/hooks/a",
    ],
)
def test_the_guard_cannot_be_removed(tmp_path: Path, isolation: Isolation, attack: str) -> None:
    work = make_workspace(tmp_path, "full")
    before = guarded_state(work)
    output = said(tmp_path, isolation, attack)
    # one sandbox holds the files, the other puts them back and says so
    assert "[exit code 0" not in output or "PROTECTED" in output
    assert guarded_state(work) == before


def test_git_commits_in_the_sandbox_and_does_not_see_the_placeholders(tmp_path: Path) -> None:
    isolation = isolation_of("bubblewrap")
    work = make_workspace(tmp_path, "git")
    command = (
        "cat *.md; git status --short && git add -A && "
        "GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b "
        "git commit -qm one && git ls-files && git status --short"
    )
    assert said(tmp_path, isolation, command).startswith("?? sub/\nsub/evil.sh\n[exit code 0")
    status = ["git", "-C", str(work), "status", "--short"]
    assert subprocess.run(status, capture_output=True, text=True).stdout == ""
    assert {item.name for item in work.iterdir()} == {".git", "sub"}
    assert not (work / ".git" / "commondir").exists()
    assert not (work / ".git" / "hooks").exists()


def test_a_guard_holds_until_the_last_command_that_needs_it(tmp_path: Path) -> None:
    isolation = isolation_of("bubblewrap")
    work = make_workspace(tmp_path, "git")

    async def steps(bench: Bench) -> None:
        other = Bench(bench.root, isolation)  # another session in the same folder
        wait = "until [ -e sub/now ]; do sleep 0.02; done"
        late = asyncio.create_task(other.run(f"echo begun; {wait}; echo x > AGENTS.md"))
        async with asyncio.timeout(PATIENCE):
            while not other.heard:
                await asyncio.sleep(0.02)
        await bench.run("true")
        assert (work / "AGENTS.md").is_socket()
        (work / "sub" / "now").touch()
        assert "Read-only file system" in words(await late)
        await other.commands.close()
        assert not (work / "AGENTS.md").exists()

    on_bench(tmp_path, isolation, steps)
    assert not (work / ".git" / "hooks").exists()


def test_placeholders_that_a_crash_left_are_removed_by_the_next_command(tmp_path: Path) -> None:
    isolation = isolation_of("bubblewrap")
    work = make_workspace(tmp_path, "git")
    os.mknod(work / "AGENTS.md", stat.S_IFSOCK | 0o600)
    (work / ".recollect").mkdir()
    (work / ".git" / "commondir").write_text(".\n")
    said(tmp_path, isolation, "true")
    assert {item.name for item in work.iterdir()} == {".git", "sub"}
    assert not (work / ".git" / "commondir").exists()


def test_a_guarded_link_is_put_back_and_the_result_says_so(tmp_path: Path) -> None:
    isolation = isolation_of("bubblewrap")
    work = make_workspace(tmp_path, "full")
    (work / "CLAUDE.md").unlink()
    (work / "CLAUDE.md").symlink_to("AGENTS.md")
    output = said(tmp_path, isolation, "rm CLAUDE.md; echo evil > CLAUDE.md; cat CLAUDE.md")
    assert "CLAUDE.md was replaced and is a link to AGENTS.md again" in output
    assert (work / "CLAUDE.md").readlink() == Path("AGENTS.md")
    assert (work / "AGENTS.md").read_text() == "mine"


def test_a_lock_on_the_workspace_makes_nobody_wait_for_ever(tmp_path: Path) -> None:
    isolation = isolation_of("bubblewrap")
    work = make_workspace(tmp_path, "git")
    folder = os.open(work, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        assert "Read-only" in said(tmp_path, isolation, "echo x > AGENTS.md")
    finally:
        os.close(folder)
