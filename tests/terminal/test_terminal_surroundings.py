"""The program where its surroundings are odd: locales, terminals, a huge paste, ssh."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect.testing import faulty
from tests.cli.provider import ENV, provider
from tests.cli.runner import Cli
from tests.terminal.tmux import PATIENCE, READY, OpenTerminal, needs_tmux

pytestmark = needs_tmux

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
COMMAND = (sys.executable, "-m", "recollect")


@pytest.mark.parametrize(
    "given",
    [
        ("LANG=C", "LC_ALL=C"),
        ("LC_ALL=xx_YY.nonsense",),
        ("-u", "LC_ALL", "LANG=en_US.ISO-8859-1"),
    ],
    ids=["C", "nonsense", "latin 1"],
)
def test_a_locale_that_does_not_work_does_not_end_the_program(
    cli: Cli, open_terminal: OpenTerminal, given: tuple[str, ...]
) -> None:
    with provider(cli, "openai", ["Größe: 全角 ✓ done."]):
        terminal = open_terminal()
        terminal.start("env", *given, *COMMAND)
        terminal.wait_for(READY)
        terminal.say("how large", "done.")
        terminal.press("C-d")
        assert terminal.wait_for_end() == 0
        assert "Traceback" not in terminal.all_output


@pytest.mark.parametrize(
    "given", [("TERM=dumb",), ("-u", "TERM"), ("TERM=vt100",), ("TERM=nonsense",)]
)
def test_a_terminal_that_can_do_little_is_no_riddle(
    cli: Cli, open_terminal: OpenTerminal, given: tuple[str, ...]
) -> None:
    with provider(cli, "openai", ["It is done."]):
        terminal = open_terminal()
        terminal.start("env", *given, *COMMAND)
        terminal.wait_until(
            lambda: READY in terminal.screen or "you:" in terminal.screen, "a prompt"
        )
        is_plain = READY not in terminal.screen
        assert is_plain == (given[-1] == "TERM=dumb")
        terminal.say("do it", "It is done.")
        terminal.press("C-d")
        assert terminal.wait_for_end() == 0
        assert "Traceback" not in terminal.all_output
        assert ("as with --plain" in terminal.all_output) == is_plain


def test_a_paste_of_a_hundred_megabytes_is_refused_in_one_sentence(
    cli: Cli, open_terminal: OpenTerminal, tmp_path: Path
) -> None:
    huge = tmp_path / "huge"
    with huge.open("w") as file:
        for _ in range(100):
            file.write("a line of a log that nobody reads\n" * 30_000)
    with provider(cli, "openai", ["I am here."]) as server:
        terminal = open_terminal()
        terminal.recollect()
        terminal.wait_for(READY)
        terminal.paste(huge)
        terminal.wait_for(
            "a paste of 102.0 MB is too long; save it as a file and mention that with @"
        )
        terminal.say("are you there", "I am here.")
        terminal.press("C-d")
        assert terminal.wait_for_end() == 0
        assert len(server.requests) == 1


@contextmanager
def ssh_server(folder: Path) -> Iterator[list[str]]:
    """The words that run a command through a real server of this user's own."""
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(make, check=True)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    options = {
        "ListenAddress": f"127.0.0.1:{port}", "HostKey": folder / "host", "UsePAM": "no",
        "AuthorizedKeysFile": folder / "authorized", "StrictModes": "no", "PidFile": "none",
        "PasswordAuthentication": "no", "PermitRootLogin": "prohibit-password",
    }  # fmt: skip
    config = folder / "config"
    config.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where the server wants to be confined
    server = subprocess.Popen([str(SSHD), "-D", "-f", str(config), "-E", str(folder / "log")])
    known = ("-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={folder / 'known'}")
    try:
        _wait_until_listening(server, port, folder / "log")
        yield ["ssh", "-tt", "-F", "none", *known, "-i", str(folder / "user"), "-p", str(port),
               f"{getpass.getuser()}@127.0.0.1"]  # fmt: skip
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _wait_until_listening(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), PATIENCE).close()
            return
        except OSError:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < ends
            time.sleep(0.05)


@pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None, reason="there is no server or client of ssh"
)
def test_it_works_through_ssh_and_keeps_what_has_come_when_the_connection_breaks(
    cli: Cli, open_terminal: OpenTerminal, tmp_path: Path
) -> None:
    slow = faulty(" ".join(f"word{number}" for number in range(3_000)), pause=0.1)
    with ssh_server(tmp_path / "ssh") as ssh, provider(cli, "openai", ["Hello from afar.", slow]):
        env = {name: value for name, value in cli.env(ENV).items() if name != "TERM"}
        words = ["env", *(f"{name}={value}" for name, value in env.items()), *COMMAND]
        terminal = open_terminal()
        terminal.start(*ssh, f"cd {shlex.quote(str(cli.project))} && exec {shlex.join(words)}")
        terminal.wait_for(READY)
        terminal.resize(70, 20)
        terminal.say("hello", "Hello from afar.")
        terminal.say("tell me", "word40 ")
        terminal.close()  # ssh ends, and with it the terminal over there
        stored = ""
        ends = time.monotonic() + PATIENCE
        while "word40 " not in stored:
            assert time.monotonic() < ends, stored
            stored = cli.ok("show", "last").out
