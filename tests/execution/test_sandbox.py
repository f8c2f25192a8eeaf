"""What a command in the sandbox cannot do; each is first shown to work without it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import json_text
from recollect.execution import landlock, supervisor
from recollect.execution.sandbox import (
    ALLOWED_VARIABLES,
    CACHE_FOLDERS,
    FIXED_VARIABLES,
    Isolation,
    SandboxPolicy,
    clean_environment,
    find_isolation,
    landlock_isolation,
    no_isolation,
)
from recollect.workspace.private_paths import SECRET_PATHS
from tests.execution.workbench import BARE, PATIENCE, Bench, isolation_of, on_bench, said, words


@pytest.fixture(params=["bubblewrap", "landlock"])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return isolation_of(request.param)


# --- reading -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [".ssh/id_ed25519", ".netrc", ".config/gh/hosts.yml"])
def test_a_secret_in_the_home_cannot_be_read(
    tmp_path: Path, elsewhere: Path, isolation: Isolation, name: str
) -> None:
    secret = elsewhere / name
    secret.parent.mkdir(parents=True, exist_ok=True)
    secret.write_text("planted-secret")
    (elsewhere / "harmless.txt").write_text("harmless-words")
    command = f"cat ~/harmless.txt ~/{name}; cp ~/{name} sub/copy; cat sub/copy"
    bare = said(tmp_path / "bare", BARE, command, home=elsewhere)
    assert bare.startswith("harmless-wordsplanted-secret")
    shown = said(tmp_path / "boxed", isolation, command, home=elsewhere)
    assert "harmless-words" in shown
    assert "planted-secret" not in shown


def test_a_secret_behind_a_link_cannot_be_read(
    tmp_path: Path, elsewhere: Path, isolation: Isolation
) -> None:
    (elsewhere / "vault").mkdir()
    (elsewhere / "vault" / "key").write_text("planted-secret")
    (elsewhere / "home").mkdir()
    (elsewhere / "home" / ".ssh").symlink_to("../vault")
    command = f"cat ~/.ssh/key {elsewhere}/vault/key"
    assert "planted-secret" in said(tmp_path / "bare", BARE, command, home=elsewhere / "home")
    shown = said(tmp_path / "boxed", isolation, command, home=elsewhere / "home")
    assert "planted-secret" not in shown


def test_secrets_stay_hidden_when_the_home_itself_is_the_workspace(
    tmp_path: Path, isolation: Isolation
) -> None:
    home = tmp_path / "work"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "credentials").write_text("planted-secret")
    (home / "notes.txt").write_text("harmless-words")
    command = "cat notes.txt .aws/credentials"
    assert "planted-secret" in said(tmp_path, BARE, command, home=home)
    shown = said(tmp_path, isolation, command, home=home)
    assert "harmless-words" in shown
    assert "planted-secret" not in shown
    assert (home / ".aws" / "credentials").read_text() == "planted-secret"


def test_our_own_data_cannot_be_read(
    tmp_path: Path, elsewhere: Path, isolation: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_HOME", str(elsewhere / "data"))
    (elsewhere / "data").mkdir()
    (elsewhere / "data" / "recollect.db").write_text("every-session")
    command = f"cat {elsewhere}/data/recollect.db"
    assert "every-session" in said(tmp_path / "bare", BARE, command)
    assert "every-session" not in said(tmp_path / "boxed", isolation, command)


def test_other_programs_temporary_files_cannot_be_read(
    tmp_path: Path, isolation: Isolation
) -> None:
    (tmp_path / "other").write_text("of-another-program")
    command = f"cat {tmp_path}/other"
    assert "of-another-program" in said(tmp_path / "bare", BARE, command)
    assert "of-another-program" not in said(tmp_path / "boxed", isolation, command)


def test_the_environment_of_other_processes_cannot_be_read(
    tmp_path: Path, isolation: Isolation
) -> None:
    with subprocess.Popen(["sleep", "3600"], env={"KEY": "planted-secret"}) as other:
        try:
            command = f"cat /proc/{other.pid}/environ | tr '\\0' ' '"
            assert "planted-secret" in said(tmp_path / "bare", BARE, command)
            assert "planted-secret" not in said(tmp_path / "boxed", isolation, command)
        finally:
            other.kill()


# --- writing -----------------------------------------------------------------------------------


def test_nothing_outside_the_workspace_can_be_written(
    tmp_path: Path, elsewhere: Path, isolation: Isolation
) -> None:
    (elsewhere / "old").write_text("as it was")
    command = f"cd {elsewhere}; echo new > new; echo changed > old; rm -f gone; mkdir folder"
    said(tmp_path / "bare", BARE, command)
    assert (elsewhere / "old").read_text() == "changed\n"
    assert {item.name for item in elsewhere.iterdir()} == {"new", "old", "folder"}
    (elsewhere / "old").write_text("as it was")
    (elsewhere / "new").unlink()
    (elsewhere / "folder").rmdir()
    said(tmp_path / "boxed", isolation, command)
    assert (elsewhere / "old").read_text() == "as it was"
    assert {item.name for item in elsewhere.iterdir()} == {"old"}


def test_a_link_in_the_workspace_is_no_way_out(
    tmp_path: Path, elsewhere: Path, isolation: Isolation
) -> None:
    command = f"ln -s {elsewhere} sub/out && echo x > sub/out/made; mv sub sub2; ls"
    said(tmp_path / "bare", BARE, command)
    assert (elsewhere / "made").exists()
    (elsewhere / "made").unlink()
    said(tmp_path / "boxed", isolation, command)
    assert not (elsewhere / "made").exists()


def test_folders_of_the_workspace_and_the_temporary_one_can_be_written(
    tmp_path: Path, isolation: Isolation
) -> None:
    command = (
        'echo one > sub/file && mkdir sub/more && echo two > "$(mktemp)" && mv sub/file sub/more'
    )
    assert "[exit code 0" in said(tmp_path, isolation, command)
    assert (tmp_path / "work" / "sub" / "more" / "file").read_text() == "one\n"


MOVES = """
import os
for old, new in (("sub/file", "other/file"), ("sub/folder", "other/folder")):
    os.rename(old, new)
os.link("other/file", "other/folder/second")
os.rename(os.environ["TMPDIR"] + "/a/x", os.environ["TMPDIR"] + "/b/x")
for act, old, new in (
    (os.link, "{0}/old", "taken"), (os.rename, "{0}/old", "taken"),
    (os.rename, "other/file", "{0}/new"),
):
    try:
        act(old, new)
        print("POSSIBLE", old, new)
    except OSError:
        pass
"""


def test_files_are_moved_and_linked_from_folder_to_folder_but_not_in_or_out(
    tmp_path: Path, elsewhere: Path, isolation: Isolation
) -> None:
    (elsewhere / "old").write_text("as it was")
    command = (
        "mkdir -p sub/folder other $TMPDIR/a $TMPDIR/b && touch sub/file $TMPDIR/a/x && "
        f"python3 - <<'END'\n{MOVES.replace('{0}', str(elsewhere))}\nEND"
    )
    shown = said(tmp_path, isolation, command)
    assert "[exit code 0" in shown
    assert "POSSIBLE" not in shown
    moved = tmp_path / "work" / "other"
    assert (moved / "file").samefile(moved / "folder" / "second")
    assert [item.name for item in elsewhere.iterdir()] == ["old"]


def test_caches_that_a_program_cannot_do_without_are_the_sessions_own(
    tmp_path: Path, isolation: Isolation
) -> None:
    async def steps(bench: Bench) -> None:
        names = " ".join(CACHE_FOLDERS)
        first = 'for name in {0}; do mkdir -p "${!name}" && echo kept > "${!name}/item"; done'
        assert "[exit code 0" in words(await bench.run(first.replace("{0}", names)))
        second = f'for name in {names}; do cat "${{!name}}/item"; done'
        assert words(await bench.run(second)).startswith("kept\n" * len(CACHE_FOLDERS))

    on_bench(tmp_path, isolation, steps)


def test_temporary_files_last_from_one_command_to_the_next(
    tmp_path: Path, isolation: Isolation
) -> None:
    async def steps(bench: Bench) -> None:
        await bench.run('echo kept > "$TMPDIR/between"')
        assert words(await bench.run('cat "$TMPDIR/between"')).startswith("kept\n")

    on_bench(tmp_path, isolation, steps)


def test_not_even_root_has_privileges(tmp_path: Path, isolation: Isolation) -> None:
    shown = said(tmp_path, isolation, "grep -E '^(CapEff|CapPrm|NoNewPrivs)' /proc/self/status")
    assert shown.split()[:6] == ["CapPrm:", "0" * 16, "CapEff:", "0" * 16, "NoNewPrivs:", "1"]


# --- the network and other processes -----------------------------------------------------------


@contextmanager
def listening(family: int, address: object, kind: int = socket.SOCK_STREAM) -> Iterator[object]:
    with socket.socket(family, kind) as server:
        server.bind(address)  # type: ignore[arg-type]
        if kind == socket.SOCK_STREAM:
            server.listen()
            threading.Thread(target=answer, args=(server,), daemon=True).start()
        yield server.getsockname()


def answer(server: socket.socket) -> None:
    try:
        while True:
            connection, _ = server.accept()
            connection.sendall(b"reached-the-server\n")
            connection.close()
    except OSError:
        return


def test_a_local_server_cannot_be_reached_unless_the_network_is_granted(
    tmp_path: Path, isolation: Isolation
) -> None:
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as address:
        assert isinstance(address, tuple)
        command = f"cat < /dev/tcp/127.0.0.1/{address[1]}"
        assert "reached-the-server" in said(tmp_path / "bare", BARE, command)
        assert "reached-the-server" not in said(tmp_path / "boxed", isolation, command)
        granted = said(tmp_path / "granted", isolation, command, network=True)
        assert "reached-the-server" in granted


def test_nothing_can_be_sent_by_udp(tmp_path: Path, isolation: Isolation) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(PATIENCE)
        command = f"echo out > /dev/udp/127.0.0.1/{server.getsockname()[1]}"
        said(tmp_path / "bare", BARE, command)
        assert server.recv(100) == b"out\n"
        said(tmp_path / "boxed", isolation, command)
        server.sendto(b"ours", server.getsockname())
        assert server.recv(100) == b"ours"  # nothing came before it


CONNECT = "import socket,sys;s=socket.socket(1);s.connect({0!r});print(s.recv(99).decode())"


@pytest.mark.parametrize("network", [False, True])
def test_the_sockets_of_other_programs_cannot_be_reached(
    tmp_path: Path, isolation: Isolation, network: bool
) -> None:
    if not os.access("/run", os.W_OK):
        pytest.skip("no socket can be made in /run here")
    path = f"/run/recollect-test-{os.getpid()}.sock"
    try:
        with listening(socket.AF_UNIX, path):
            command = f'{sys.executable} -c "{CONNECT.format(path)}"'
            assert "reached-the-server" in said(tmp_path / "bare", BARE, command)
            boxed = said(tmp_path / "boxed", isolation, command, network=network)
            assert "reached-the-server" not in boxed
            assert "[exit code 1" in boxed
    finally:
        Path(path).unlink()


def test_other_processes_cannot_be_signaled(tmp_path: Path, isolation: Isolation) -> None:
    if isolation.kind == "landlock" and landlock.abi_version() < 6:
        pytest.skip("this Landlock does not know signals")
    with subprocess.Popen(["sleep", "3600"]) as other:
        said(tmp_path / "boxed", isolation, f"kill {other.pid}; kill -0 {other.pid}")
        assert other.poll() is None
        said(tmp_path / "bare", BARE, f"kill {other.pid}")
        assert other.wait(PATIENCE) == -15


# --- saying what is in force, and the pure parts -----------------------------------------------


def test_an_isolation_describes_what_is_in_force() -> None:
    found = find_isolation()
    assert found.kind in found.description.lower() or found.kind == "none"
    assert "unsandboxed (because): commands can do whatever" in no_isolation("because").description
    closed_in = landlock_isolation("bubblewrap is not installed")
    if closed_in.kind == "landlock":
        assert "bubblewrap is not installed" in closed_in.description
        assert "install bubblewrap" in closed_in.remedy


def test_no_command_runs_where_the_chosen_sandbox_cannot_be_had(tmp_path: Path) -> None:
    missing = msgspec.structs.replace(BARE, refusal='permissions.sandbox is "bubblewrap", but no')
    assert said(tmp_path, missing, "touch ran").endswith('is "bubblewrap", but no')
    assert not (tmp_path / "work" / "ran").exists()
    for kind in ("bubblewrap", "landlock", "none"):
        found = find_isolation(kind)
        assert found.kind == kind or f'permissions.sandbox is "{kind}"' in found.refusal


def test_a_sandbox_that_cannot_be_set_up_runs_nothing(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    plan = {"words": ["/bin/sh", "-c", f"echo ran > {ran}"], "directory": "/", "protected": None}
    rules: list[object] = [{}, [], 1, {"closed": 1, "open": [], "writable": [], "network": False}]
    texts = [json_text({**plan, "environment": {}, "rules": item}) for item in rules]
    start = "from recollect.execution.supervisor import serve; serve()"
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, subprocess.Popen([sys.executable, "-c", start], stdin=theirs.fileno()) as server:
        theirs.close()
        for text in (*texts, "no json"):
            with tempfile.TemporaryFile() as file:
                file.write(text.encode())
                file.seek(0)
                said, reported = ask_supervisor(ours, file.fileno())
            assert f'"code": {supervisor.SETUP_FAILED}' in reported
            assert "the sandbox could not be set up" in said
            assert not ran.exists()
        ours.close()
        assert server.wait() == 0


def ask_supervisor(channel: socket.socket, plan: int) -> tuple[str, str]:
    """What the supervisor of one command prints and reports."""
    life, output, report = os.pipe(), os.pipe(), os.pipe()
    socket.send_fds(channel, [b"x"], [life[0], output[1], plan, report[1]])
    for descriptor in (life[0], output[1], report[1]):
        os.close(descriptor)
    with os.fdopen(output[0]) as said, os.fdopen(report[0]) as reported:
        texts = said.read(), reported.read()
    os.close(life[1])
    return texts


NAMES = st.sampled_from(["a", "b", "ab", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@given(st.lists(PATHS, max_size=12), st.lists(PATHS, max_size=5))
def test_paths_without_cover_everything_except_what_is_avoided(
    folders: list[str], avoided: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as top:
        for folder in folders:
            Path(top, folder).mkdir(parents=True, exist_ok=True)
        closed = [f"{top}/{item}" for item in avoided]
        given_out = list(landlock.paths_without(top, closed))
        for path in (str(item) for item in Path(top).rglob("*")):
            covered = any(landlock.is_below(path, item) for item in given_out)
            shut = any(landlock.is_below(path, item) for item in closed)
            leads_there = any(landlock.is_below(item, path) for item in closed)
            assert not (covered and shut)
            assert covered or shut or leads_there
        assert not any(landlock.is_below(item, out) for item in closed for out in given_out)


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20)), st.text(":/.ab", max_size=20))
def test_only_known_variables_reach_a_command(given_ones: dict[str, str], path: str) -> None:
    policy = SandboxPolicy(roots=("/w",), home="/h", temporary="/t")
    made = clean_environment({**given_ones, "PATH": path, "AWS_SECRET_ACCESS_KEY": "s"}, policy)
    assert set(made) <= ALLOWED_VARIABLES | set(FIXED_VARIABLES)
    assert all(item.startswith("/") for item in made["PATH"].split(":"))
    assert made["HOME"] == "/h"


def test_the_lists_name_no_path_twice() -> None:
    assert len(set(SECRET_PATHS)) == len(SECRET_PATHS)
    assert not any(item.endswith("/") for item in SECRET_PATHS)
