"""`recollect serve` in a process of its own, as a user starts it."""

from __future__ import annotations

import re
import signal
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import httpx2

from tests.cli.provider import ENV
from tests.cli.runner import PATIENCE, Cli


class RunningServe(NamedTuple):
    """A server that says where it listens."""

    process: subprocess.Popen[bytes]
    greeting: str
    log: list[str]  # lines on stderr so far

    @property
    def nplt(self) -> int:
        return self._port(r"NPLT +\S+:(\d+)")

    @property
    def http(self) -> int:
        return self._port(r"HTTP +https?://\S+:(\d+)")

    def _port(self, pattern: str) -> int:
        found = re.search(pattern, self.greeting)
        assert found is not None, self.greeting
        return int(found[1])

    def client(
        self, token: str, scheme: str = "http", verify: ssl.SSLContext | bool = True
    ) -> httpx2.Client:
        return httpx2.Client(
            base_url=f"{scheme}://127.0.0.1:{self.http}",
            headers={"authorization": f"Bearer {token}"},
            timeout=PATIENCE,
            trust_env=False,
            verify=verify,
        )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def served(
    cli: Cli, *arguments: str, env: Mapping[str, str] | None = None
) -> Iterator[RunningServe]:
    """The command with free ports; killed at the end if it still runs."""
    ports = ("--nplt", ":0", "--http", ":0")
    process = cli.start("serve", *ports, *arguments, env={**ENV, **(env or {})})
    assert process.stdout is not None
    assert process.stderr is not None
    log: list[str] = []
    stderr = process.stderr
    reader = threading.Thread(target=lambda: log.extend(map(bytes.decode, stderr)), daemon=True)
    reader.start()
    try:
        greeting = ""
        while "token" not in greeting:
            line = process.stdout.readline().decode()
            assert line, (greeting, log)
            greeting += line
        yield RunningServe(process, greeting, log)
    finally:
        process.kill()
        process.wait(PATIENCE)
        reader.join(PATIENCE)
        process.stdout.close()
        stderr.close()
