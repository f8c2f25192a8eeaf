"""The agent on a real model, end to end, each prompt in a process of its own.

The model is the small embedded one, which is refused as an agent; the settings allow it here.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
from contextlib import suppress
from typing import Any

import pytest

from recollect.entries import Compaction, Message, Note, Request, Text, ToolResult
from recollect.models.embedded_model import server_address
from recollect.profiles import EMBEDDED_MODEL, find_profile
from recollect.store.recovery import store_doctor
from recollect.store.sqlite import SqliteStore
from recollect.testing import model, user
from tests.cli.model_server import path
from tests.cli.runner import Cli

WINDOW = find_profile(EMBEDDED_MODEL).window
PATIENCE = 250  # seconds, on a machine that may be busy
SHORT = "[generation]\nmax_output = 20\nseed = 1\ntemperature = 0.2\n"
SMALL = SHORT + "[context]\nthreshold = 2000\ntarget = 1600\n"  # the model reads slowly
NAME = "tiny"
EXCHANGES = 6


def key() -> dict[str, str]:
    return {"TINY_KEY": asyncio.run(server_address()).key}


def configure(cli: Cli, more: str) -> None:
    """The model as a server of the user's own, in the settings."""
    url = asyncio.run(server_address()).url
    table = f'url = "{url}"\nmodel = "{EMBEDDED_MODEL}"\nkey = "TINY_KEY"\nagentic = true\n'
    headers = '[models.tiny.headers]\nconnection = "close"\n'  # it closes them anyway
    text = f'model = "{NAME}"\n{more}[models.{NAME}]\n{table}{headers}'
    (cli.home / "settings.toml").write_text(text)


def run(cli: Cli, *arguments: str) -> list[dict[str, Any]]:
    """The events of one run, in a process of its own."""
    process = cli.start(*arguments, "--output-format", "stream-json", env=key())
    out, err = process.communicate(timeout=PATIENCE)
    lines = [json.loads(line) for line in out.splitlines()]
    # a model this small often writes until it is cut off
    assert lines[-1]["subtype"] in ("success", "error_cut_off"), (out[-2_000:], err)
    assert process.returncode == (1 if lines[-1]["is_error"] else 0)
    return lines


def be_refused_and_send_less(cli: Cli, prompt: str) -> None:
    """The engine would then read some 7,000 tokens, which takes minutes: the run is interrupted."""
    process = cli.start("-c", "-p", prompt, "--output-format", "stream-json", env=key())
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        assert event["type"] in ("init", "context_reduced", "window_learned"), event
        if event["type"] == "window_learned":
            assert event["window"] == WINDOW
            break
    assert json.loads(process.stdout.readline())["type"] == "context_reduced"
    with suppress(subprocess.TimeoutExpired):
        process.wait(2)  # a second refusal would come at once
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130


def said(cli: Cli, role: str) -> list[str]:
    messages = [entry.body for entry in path(cli) if isinstance(entry.body, Message)]
    return [
        "".join(part.text for part in message.parts if isinstance(part, Text))
        for message in messages
        if message.role == role and not message.context
    ]


def append(cli: Cli, *messages: Message) -> None:
    """Another program appends to the session."""

    async def work(store: SqliteStore) -> None:
        (session,) = await store.sessions()
        await store.append(session.id, messages, parent=session.head)

    cli.write(work)


@pytest.mark.timeout(900)  # the model computes, and may have a small part of the machine
def test_a_session_with_the_embedded_model_from_its_beginning_to_an_overflow(cli: Cli) -> None:
    cli.home.mkdir()
    configure(cli, SHORT)

    # a prompt, and a reply that streams
    first = run(cli, "-p", "What is the capital of France?")
    kinds = [event["type"] for event in first]
    assert kinds[0] == "init"
    assert kinds.count("delta") > 1
    assert first[-1]["model"] == NAME
    streamed = "".join(str(event["text"]) for event in first if event["type"] == "delta")
    assert streamed == first[-1]["result"] == said(cli, "model")[-1]

    # another process continues it
    second = run(cli, "-c", "-p", "And of Italy?")
    assert second[-1]["session_id"] == first[-1]["session_id"]
    assert said(cli, "user") == ["What is the capital of France?", "And of Italy?"]

    # a session that is over its threshold is compacted before it is sent
    configure(cli, SMALL)
    for number in range(EXCHANGES):
        question = f"Question {number}: what is in file_{number}.py?"
        append(cli, user(question), model(f"It defines function_{number}. " + "So it is. " * 200))
    before = len(path(cli))
    third = run(cli, "-c", "-p", "What did we talk about?")
    assert "context_reduced" in [event["type"] for event in third]
    made = [entry.body for entry in path(cli) if isinstance(entry.body, Compaction)]
    assert [body.status for body in made] == ["COMPRESSED"]
    assert "file_3.py" in made[0].snapshot
    asked = [entry.body for entry in path(cli) if isinstance(entry.body, Request)]
    assert asked[-1].tokens < made[0].tokens_before
    assert len(path(cli)) > before

    # a text of which we count far too few tokens: the engine refuses, and is sent less
    configure(cli, SHORT)
    digits = "".join(random.Random(7).choices("0123456789abcdef", k=20_000))
    be_refused_and_send_less(cli, f"What is this? {digits}")
    notes = [entry.body.text for entry in path(cli) if isinstance(entry.body, Note)]
    assert any("exceeds the available context size" in text for text in notes), notes
    *_, whole, less = [entry.body for entry in path(cli) if isinstance(entry.body, Request)]
    assert less.tokens < whole.tokens

    # everything is in the log, word for word
    assert said(cli, "user")[-1] == f"What is this? {digits}"
    assert sum("So it is. " * 200 in text for text in said(cli, "model")) == EXCHANGES
    assert not [e for e in path(cli) if isinstance(e.body, Message) and _orphan(e.body)]
    assert store_doctor.examine_store(cli.store).findings == ()


def _orphan(message: Message) -> bool:
    return any(isinstance(part, ToolResult) for part in message.parts)
