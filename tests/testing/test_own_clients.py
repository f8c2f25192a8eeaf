"""recollect's own clients against the local provider: the model, and the command line."""

from __future__ import annotations

import asyncio

import pytest

from recollect.models.http_model import HttpModel
from recollect.profiles import WireName
from recollect.testing import FAULT_CASES, FAULTS, ProviderServer, call, says
from recollect.testing.transport_faults import SPLIT_FAULTS
from tests.cli.runner import Cli
from tests.models.server import KEY, QUICK, chosen, events_of, final, text_of

MODELS: dict[WireName, str] = {
    "gemini": "gemini-2.5-flash",
    "openai": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
}
SPLITS = {fault.name for fault in SPLIT_FAULTS} - {"streamed", "large-event"}


@pytest.fixture
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    return Cli(tmp_path_factory.mktemp("cli"))


@pytest.mark.parametrize(("name", "format_"), [case for case in FAULT_CASES if case[0] in SPLITS])
def test_the_model_reads_a_reply_however_it_travels(name: str, format_: WireName) -> None:
    async def main() -> None:
        async with HttpModel(chosen(server.url, format_, MODELS[format_]), QUICK) as called:
            reply = final(events := await events_of(called))
        assert reply.finish in ("stop", "calls")
        assert text_of(events) in (
            "Der Hafen öffnet um sechs — 港は六時に開きます。",
            "I look.",
            "",
        )

    with ProviderServer(format_, [FAULTS[name]], validate=True) as server:
        asyncio.run(main())


@pytest.mark.parametrize("format_", MODELS)
def test_the_command_line_runs_a_call_and_follows_the_provider_s_rules(
    cli: Cli, format_: WireName
) -> None:
    (cli.project / "limiter.py").write_text("def refill():\n    return 7\n")
    look = says("I look.", call("read_file", absolute_path="limiter.py"))
    with ProviderServer(format_, [look, "It returns 7."], validate=True) as server:
        cli.home.mkdir(exist_ok=True)
        (cli.home / "settings.toml").write_text(
            f'model = "mine"\n[models.mine]\nurl = "{server.url}"\nwire = "{format_}"\n'
            'key = "MY_KEY"\nwindow = 20000\n'
        )
        done = cli.ok("-p", "What does refill return?", env={"MY_KEY": KEY})
    assert done.out == "It returns 7.\n"
    assert b"return 7" in server.requests[1].body
    assert (len(server.requests), server.left, server.exhausted) == (2, 0, False)
