"""What bubblewrap hides of a workspace from a command that nobody allowed word for word."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from pathlib import Path

import msgspec
import pytest

from recollect.execution.sandbox import Isolation
from recollect.workspace.workspace_secrets import ShownSecrets
from tests.execution.workbench import BARE, Bench, isolation_of, on_bench, words

SECRET = "planted-secret"
CODE = "python3 -c 'print(open(chr(46) + \"env\").read())'"


@pytest.fixture
def isolation() -> Isolation:
    return isolation_of("bubblewrap")


def plant(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"KEY={SECRET}\n")


def git(root: Path, *arguments: str) -> None:
    line = ("git", "-c", "user.name=n", "-c", "user.email=n@e.org", *arguments)
    subprocess.run(line, cwd=root, check=True, capture_output=True)


def said(
    root: Path, isolation: Isolation, *lines: str, approved: bool = False, **more: object
) -> str:
    """What some commands of one session print in a workspace, one after the other."""
    found: list[str] = []

    async def steps(bench: Bench) -> None:
        bench.context = msgspec.structs.replace(bench.context, approved=approved)
        found.extend([words(await bench.run(line)) for line in lines])

    on_bench(root, isolation, steps, **more)
    return "\n".join(found)


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        "sub/.env.local",
        ".ENV",
        "deep/er/id_rsa",
        ".ssh/config",
        "cert.pem",
        "a\nb.pem",
        "-x.pem",
        os.fsdecode(b"\xff\xfe.pem"),
        "with space/.env",
        ".npmrc",
    ],
)
def test_a_secret_cannot_be_opened_whatever_computes_its_name(
    tmp_path: Path, isolation: Isolation, name: str
) -> None:
    plant(tmp_path / "work", name, "notes.txt")
    line = "find . -type f -exec cat {} + ; echo done"
    assert said(tmp_path, isolation, line, approved=True).count(SECRET) == 2
    shown = said(tmp_path, isolation, line)
    assert shown.count(SECRET) == 1
    assert "Permission denied" in shown
    assert "hidden from this command" in shown


def test_a_hidden_secret_cannot_be_changed_moved_or_removed(
    tmp_path: Path, isolation: Isolation
) -> None:
    work = tmp_path / "work"
    plant(work, ".env", "app/.env", ".aws/key")
    lines = (
        "rm -f .env; mv .env x; ln .env y; echo > .env; chmod 777 .env; truncate -s0 .env",
        "mv app other; mv app node_modules; rm -rf app .aws; mv .aws visible; cat */key",
        'python3 -c \'import os; os.replace("x", ".env")\'; mv -T app/.env z; cat z y x',
    )
    shown = said(tmp_path, isolation, *lines)
    assert SECRET not in shown
    for name in (".env", "app/.env", ".aws/key"):
        assert SECRET in (work / name).read_text()
    assert not (work / "node_modules").exists()


def test_what_git_has_is_published_and_stays_visible(tmp_path: Path, isolation: Isolation) -> None:
    work = tmp_path / "work"
    plant(work, "tests/server.pem", ".npmrc")
    git(work, "init", "-q")
    git(work, "add", "-A")
    plant(work, ".env.example")
    line = "cat tests/server.pem .npmrc .env.example"
    assert said(tmp_path, isolation, line).count(SECRET) == 3
    (work / ".npmrc").write_text("//host/:_authToken=mine\n")
    shown = said(tmp_path, isolation, line)
    assert shown.count(SECRET) == 2
    assert "mine" not in shown


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_index_of_any_version_says_what_is_published(
    tmp_path: Path, isolation: Isolation, version: int
) -> None:
    work = tmp_path / "work"
    plant(work, "a/server.pem", "b.txt")
    git(work, "init", "-q")
    git(work, "config", "index.version", str(version))
    git(work, "add", "-A")
    if version == 3:
        git(work, "add", "-N", "b.txt")
    (work / ".env").write_text("TOKEN=mine")
    shown = said(tmp_path, isolation, "cat a/server.pem .env")
    assert SECRET in shown
    assert "mine" not in shown


def test_a_name_that_a_command_puts_into_the_index_shows_nothing(
    tmp_path: Path, isolation: Isolation
) -> None:
    work = tmp_path / "work"
    plant(work, ".env")
    git(work, "init", "-q")
    forge = "h=$(echo x | git hash-object -w --stdin); "
    forge += "git update-index --add --cacheinfo 100644,$h,.env"
    shown = said(tmp_path, isolation, f"{forge}; git ls-files", CODE)
    assert ".env\n" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("linked", ["worktree", "submodule"])
def test_a_working_tree_elsewhere_has_its_own_index(
    tmp_path: Path, isolation: Isolation, linked: str
) -> None:
    work = tmp_path / "work"
    plant(tmp_path / "other", "server.pem")
    git(tmp_path / "other", "init", "-q", "-b", "main")
    git(tmp_path / "other", "add", "-A")
    git(tmp_path / "other", "commit", "-qm", "x")
    if linked == "worktree":
        git(tmp_path / "other", "worktree", "add", "-q", "-b", "two", str(work))
        where = work
    else:
        work.mkdir()
        git(work, "init", "-q")
        add = ("submodule", "add", "-q", str(tmp_path / "other"), "lib")
        git(work, "-c", "protocol.file.allow=always", *add)
        where = work / "lib"
    (where / ".env").write_text("TOKEN=mine")
    shown = said(tmp_path, isolation, f"cat {where}/server.pem {where}/.env")
    assert SECRET in shown
    assert "mine" not in shown


def test_a_link_is_hidden_where_it_leads(
    tmp_path: Path, elsewhere: Path, isolation: Isolation
) -> None:
    work = tmp_path / "work"
    plant(work, "config/dev")
    plant(elsewhere, "far", "keys/one")
    (work / ".env").symlink_to("config/dev")
    (work / ".env.far").symlink_to(elsewhere / "far")
    (work / "plain").symlink_to(elsewhere / ".env")
    (elsewhere / ".env").write_text(SECRET)
    (work / ".env.gone").symlink_to("nowhere")
    (work / ".env.self").symlink_to(".")
    line = f"cat .env config/dev .env.far {elsewhere}/far plain; ls config; echo done"
    assert said(tmp_path, isolation, line, approved=True).count(SECRET) == 5
    shown = said(tmp_path, isolation, line)
    assert SECRET not in shown
    assert "dev\ndone" in shown


def test_what_the_user_shows_is_visible(tmp_path: Path, isolation: Isolation) -> None:
    plant(tmp_path / "work", ".env", "app/.env", "certs/a.pem", "certs/b.pem")
    line = "cat .env app/.env certs/a.pem certs/b.pem"
    for shown, count in (((".env",), 2), (("./.env",), 1), (("certs",), 2), ((".",), 4)):
        assert said(tmp_path, isolation, line, shown=ShownSecrets(shown)).count(SECRET) == count, (
            shown
        )
    whole = str(tmp_path / "work" / "app/.env")
    assert said(tmp_path, isolation, line, shown=ShownSecrets((whole,))).count(SECRET) == 1
    for nothing in ("", "..x", "env", "app"):
        found = said(tmp_path, isolation, "cat .env", shown=ShownSecrets((nothing,)))
        assert SECRET not in found, nothing


def test_pipes_and_sockets_are_hidden_and_nobody_waits_for_them(
    tmp_path: Path, isolation: Isolation
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    os.mkfifo(work / ".env")
    os.mkfifo(work / ".git")
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(work)
        try:
            made.bind("x.pem")
        finally:
            os.chdir(here)
        shown = said(tmp_path, isolation, "cat .env x.pem; echo done")
    assert shown.count("Permission denied") >= 2
    assert "done" in shown


def test_an_empty_file_a_virtual_environment_and_packages_are_no_secrets(
    tmp_path: Path, isolation: Isolation
) -> None:
    work = tmp_path / "work"
    plant(work, ".env/pyvenv.cfg", ".env/bin/tool", "node_modules/x/cert.pem", "sub/x")
    (work / ".env.empty").touch()
    shown = said(tmp_path, isolation, "cat .env/bin/tool .env.empty node_modules/x/cert.pem")
    assert shown.count(SECRET) == 2
    assert "hidden" not in shown.replace("secrets are hidden", "")


def test_a_command_can_use_what_it_has_made_and_the_next_cannot(
    tmp_path: Path, isolation: Isolation
) -> None:
    (tmp_path / "work").mkdir()
    shown = said(tmp_path, isolation, "echo made > .env; cat .env", "cat .env")
    assert shown.startswith("made\n")
    assert "cat: .env: Permission denied" in shown


def test_too_many_secrets_to_hide_are_an_error_that_names_the_remedy(
    tmp_path: Path, isolation: Isolation
) -> None:
    plant(tmp_path / "work", *(f"{number}.pem" for number in range(1_000)))
    shown = said(tmp_path, isolation, "cat 1.pem")
    assert SECRET not in shown
    assert "more than 300 secrets" in shown
    assert 'show_secrets = ["."]' in shown
    assert SECRET in said(tmp_path, isolation, "cat 1.pem", shown=ShownSecrets((".",)))
    assert SECRET in said(tmp_path, isolation, "cat 1.pem", approved=True)


def test_nothing_is_hidden_without_a_sandbox(tmp_path: Path) -> None:
    plant(tmp_path / "work", ".env")
    assert SECRET in said(tmp_path, BARE, "cat .env")


def test_jobs_see_no_secrets_and_commands_at_the_same_time_neither(
    tmp_path: Path, isolation: Isolation
) -> None:
    plant(tmp_path / "work", ".env", "app/.env")
    moving = (
        "while :; do mv app b; mv b app; mv app node_modules; mv node_modules app; done 2>/dev/null"
    )

    async def steps(bench: Bench) -> None:
        await bench.run(f"cat .env; {moving}", background=True)
        lines = ["cat .env app/.env b/.env node_modules/.env"] * 8
        results = await asyncio.gather(*map(bench.run, lines))
        shown = "".join(map(words, results)) + await bench.read("job-1")
        assert SECRET not in shown
        assert "Permission denied" in shown

    on_bench(tmp_path, isolation, steps)


SWAP = """
import ctypes
swap = ctypes.CDLL(None).renameat2
while True:
    swap(-100, b"new/folder", -100, b"new/link", 2)
"""


@pytest.mark.parametrize("approved", [False, True])
def test_a_job_cannot_put_a_link_where_the_next_command_holds_a_folder(
    tmp_path: Path, elsewhere: Path, isolation: Isolation, approved: bool
) -> None:
    """What is mounted for a new secret would be mounted writable wherever the link leads."""
    (elsewhere / "file").write_text("as it was")
    plant(tmp_path / "work", "old/.env")
    job = (
        f"mkdir -p new/folder; echo KEY={SECRET} > new/folder/.env; ln -s {elsewhere} new/link; "
        f"mv old moved; echo ready; python3 -c '{SWAP}'"
    )

    async def steps(bench: Bench) -> None:
        bench.context = msgspec.structs.replace(bench.context, approved=approved)
        await bench.run(job, background=True)
        await bench.read_until("job-1", "ready")
        bench.context = msgspec.structs.replace(bench.context, approved=False)
        for _ in range(15):
            await bench.run("echo evil > new/folder/evil; echo evil > new/link/evil")
        await bench.end("job-1")
        held = words(await bench.run("cut -d' ' -f5,6 /proc/self/mountinfo; ls -d old"))
        assert f"{bench.root}/old rw" in held  # also from the job that may read what is in it

    on_bench(tmp_path, isolation, steps)
    assert [item.name for item in elsewhere.iterdir()] == ["file"]


def test_a_line_that_the_user_allowed_moves_a_folder_with_a_secret(
    tmp_path: Path, isolation: Isolation
) -> None:
    plant(tmp_path / "work", "old/.env")
    assert "[exit code 1" in said(tmp_path, isolation, "mv old new")
    assert "[exit code 0" in said(tmp_path, isolation, "mv old new", approved=True)


def test_several_folders_are_looked_through(tmp_path: Path, isolation: Isolation) -> None:
    plant(tmp_path / "work", ".env", ".aws/x")
    plant(tmp_path / "two", ".env")

    async def steps(bench: Bench) -> None:
        roots = (bench.root, tmp_path / "two", bench.root / ".aws")
        bench.context = msgspec.structs.replace(bench.context, roots=roots)
        shown = words(await bench.run(f"cat .env {tmp_path}/two/.env; cat .aws/x"))
        # a folder that the user works in is no secret by its name
        assert shown.count(SECRET) == 1

    on_bench(tmp_path, isolation, steps)


def test_in_a_home_the_secrets_of_the_home_stay_hidden(
    tmp_path: Path, isolation: Isolation
) -> None:
    work = tmp_path / "work"
    plant(work, ".ssh/id_rsa", ".docker/a/config.json", ".npmrc", "project/.env", "notes.txt")
    line = "cat .ssh/id_rsa .docker/a/config.json .npmrc project/.env notes.txt"
    assert said(tmp_path, isolation, line, home=work).count(SECRET) == 1


def test_it_is_said_once_and_again_when_a_command_fails_by_it(
    tmp_path: Path, isolation: Isolation
) -> None:
    plant(tmp_path / "work", ".env")
    lines = ("echo one", "echo two", "false", "cat .env")
    first, second, third, fourth = (
        part for part in said(tmp_path, isolation, *lines).split("\n[exit code")[1:]
    )
    assert "hidden from this command: .env" in first
    assert "permissions.show_secrets" in first
    assert "hidden from" not in second + third
    assert "hidden from this command: .env" in fourth


def test_nothing_is_left_in_the_workspace(tmp_path: Path, isolation: Isolation) -> None:
    work = tmp_path / "work"
    plant(work, ".env", "app/.env", ".ssh/x")
    before = sorted(work.rglob("*"))
    said(tmp_path, isolation, "true")
    assert [path for path in sorted(work.rglob("*")) if path != work / "sub"] == before


def test_programs_and_plain_folders_are_no_secrets(tmp_path: Path, isolation: Isolation) -> None:
    work = tmp_path / "work"
    plant(work, "shadow/dom.js", "lib_rsa/x.c")
    (work / "test_rsa").write_bytes(Path("/bin/true").read_bytes())
    (work / "test_rsa").chmod(0o755)
    shown = said(tmp_path, isolation, "cat shadow/dom.js lib_rsa/x.c; ./test_rsa && echo runs")
    assert shown.count(SECRET) == 2
    assert "runs" in shown


def test_folders_too_deep_to_be_named_stop_no_command(tmp_path: Path, isolation: Isolation) -> None:
    plant(tmp_path / "work", ".env")
    deep = "for i in $(seq 30); do mkdir -p $(printf '%0200d' 1) && cd $(printf '%0200d' 1); done"
    shown = said(tmp_path, isolation, deep, "cat .env", "rm -r 0*")
    assert SECRET not in shown
    assert "cat: .env: Permission denied" in shown
