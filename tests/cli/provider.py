"""A `ProviderServer` that a `Cli`'s settings name, and runs against it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from recollect.profiles import WireName
from recollect.testing import ProviderLine, ProviderServer
from tests.cli.runner import Cli

NAME = "mine"
ENV = {"MY_KEY": "sk-fake-0123456789abcdef"}
FORMATS: tuple[WireName, ...] = ("gemini", "openai", "anthropic")


class StreamJson(NamedTuple):
    """What a run printed."""

    code: int
    lines: list[dict[str, Any]]
    err: str

    @property
    def result(self) -> dict[str, Any]:
        return self.lines[-1]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["type"] == kind]


@contextmanager
def provider(
    cli: Cli,
    wire: WireName,
    script: Sequence[ProviderLine],
    more: str = "",
    transport: str = "longest_wait = 0.01\n",
    **options: Any,
) -> Iterator[ProviderServer]:
    """`more` and `transport` are further settings; `options` are the server's own."""
    with ProviderServer(wire, script, **options) as server:
        cli.home.mkdir(exist_ok=True)
        (cli.home / "settings.toml").write_text(
            f'model = "{NAME}"\n[transport]\nretries = 1\n{transport}'
            f'[models.{NAME}]\nurl = "{server.url}"\nwire = "{wire}"\nkey = "MY_KEY"\n'
            f"window = 30000\n{more}"
        )
        yield server


def run(cli: Cli, *arguments: str) -> StreamJson:
    line = arguments or ("-p", "Hi.")
    done = cli(*line, "--output-format", "stream-json", env=ENV)
    return StreamJson(done.code, [json.loads(each) for each in done.out.splitlines()], done.err)
