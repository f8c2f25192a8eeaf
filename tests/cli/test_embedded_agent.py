"""The agent on the embedded model, end to end, each prompt in a process of its own."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from contextlib import suppress

from recollect.entries import Compaction, Entry, Message, Note, Request, Text, ToolResult
from recollect.profiles import EMBEDDED_MODEL, find_profile
from recollect.store.recovery import store_doctor
from recollect.store.sqlite import SqliteStore
from recollect.testing import model, user
from tests.cli.runner import COMMAND, Cli

WINDOW = find_profile(EMBEDDED_MODEL).window
PATIENCE = 250  # seconds, on a machine that may be busy
SHORT = "[generation]\nmax_output = 40\nseed = 1\n"


def played(cli: Cli, *arguments: str) -> list[dict[str, object]]:
    done = subprocess.run(
        [*COMMAND, *arguments, "--output-format", "stream-json"],
        cwd=cli.project,
        env=cli.env(),
        capture_output=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, (done.stdout[-2_000:], done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def refused_and_asked_for_less(cli: Cli, prompt: str) -> None:
    """The engine reads some 7,000 tokens then, which takes minutes: it is stopped meanwhile."""
    command = [*COMMAND, "-c", "-p", prompt, "--output-format", "stream-json"]
    with subprocess.Popen(
        command, cwd=cli.project, env=cli.env(), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            assert event["type"] in ("init", "made_room", "learnt"), event
            if event["type"] == "learnt":
                assert event["window"] == WINDOW
                break
        assert json.loads(process.stdout.readline())["type"] == "made_room"
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)  # it would be refused at once
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130


def path(cli: Cli) -> tuple[Entry, ...]:
    async def work(store: SqliteStore) -> tuple[Entry, ...]:
        (session,) = await store.sessions()
        return await store.path(session.id)

    return cli.write(work)


def said(cli: Cli, role: str) -> list[str]:
    messages = [entry.body for entry in path(cli) if isinstance(entry.body, Message)]
    return [
        "".join(part.text for part in message.parts if isinstance(part, Text))
        for message in messages
        if message.role == role and not message.context
    ]


def talk_on(cli: Cli, *messages: Message) -> None:
    """Somebody goes on in the session meanwhile."""

    async def work(store: SqliteStore) -> None:
        (session,) = await store.sessions()
        await store.append(session.id, messages, parent=session.head)

    cli.write(work)


def test_a_session_with_the_embedded_model_from_its_beginning_to_an_overflow(cli: Cli) -> None:
    cli.home.mkdir()
    (cli.home / "settings.toml").write_text(SHORT)

    # a prompt, and a reply that comes piece by piece
    first = played(cli, "-p", "What is the capital of France?")
    kinds = [event["type"] for event in first]
    assert kinds[0] == "init"
    assert kinds.count("delta") > 1
    assert (first[-1]["subtype"], first[-1]["model"]) == ("success", EMBEDDED_MODEL)
    streamed = "".join(str(event["text"]) for event in first if event["type"] == "delta")
    assert streamed == first[-1]["result"] == said(cli, "model")[-1]

    # another process goes on in it
    second = played(cli, "-c", "-p", "And of Italy?")
    assert second[-1]["session_id"] == first[-1]["session_id"]
    assert said(cli, "user") == ["What is the capital of France?", "And of Italy?"]

    # a conversation that is too long for its window is compacted before it is sent
    for number in range(12):
        question = f"Question {number}: what is in file_{number}.py?"
        talk_on(cli, user(question), model(f"It defines function_{number}. " + "So it is. " * 200))
    before = len(path(cli))
    third = played(cli, "-c", "-p", "What did we talk about?")
    assert third[-1]["subtype"] == "success"
    assert "made_room" in [event["type"] for event in third]
    made = [entry.body for entry in path(cli) if isinstance(entry.body, Compaction)]
    assert [body.status for body in made] == ["COMPRESSED"]
    assert "file_3.py" in made[0].snapshot
    asked = [entry.body for entry in path(cli) if isinstance(entry.body, Request)]
    assert asked[-1].tokens < made[0].tokens_before
    assert len(path(cli)) > before

    # a text of which we count far too few tokens: the engine refuses, and it is asked for less
    digits = "".join(random.Random(7).choices("0123456789abcdef", k=20_000))
    refused_and_asked_for_less(cli, f"What is this? {digits}")
    notes = [entry.body.text for entry in path(cli) if isinstance(entry.body, Note)]
    assert any("exceeds the available context size" in text for text in notes), notes
    *_, whole, less = [entry.body for entry in path(cli) if isinstance(entry.body, Request)]
    assert less.tokens < whole.tokens

    # everything that was said is in the log, word for word
    assert said(cli, "user")[-1] == f"What is this? {digits}"
    assert sum("So it is." in text for text in said(cli, "model")) == 12
    assert not [e for e in path(cli) if isinstance(e.body, Message) and _orphan(e.body)]
    assert store_doctor.examine_store(cli.store).findings == ()


def _orphan(message: Message) -> bool:
    return any(isinstance(part, ToolResult) for part in message.parts)
