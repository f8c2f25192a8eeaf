"""Several runs on one session at once: all end well, one goes on in a fork, and nothing is lost."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from recollect.entries import Message, Request
from recollect.store.sqlite import SqliteStore
from tests.cli.model_server import ENV, server, texts
from tests.cli.road_sessions import says
from tests.cli.runner import PATIENCE, Cli
from tests.models.server import Answer, Server


class HeldAnswer:
    """An answer that comes when the test says so."""

    def __init__(self, data: bytes) -> None:
        self.data, self.released = data, threading.Event()

    async def __call__(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.to_thread(self.released.wait, PATIENCE)
        writer.write(self.data)
        await writer.drain()


def wait_for(on: Server, requests: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(on.asked) < requests:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def sessions(cli: Cli) -> list[list[str]]:
    """The texts of every session, the request's place marked by its model."""

    async def work(store: SqliteStore) -> list[list[str]]:
        paths = [await store.path(one.id) for one in await store.sessions()]
        return [[text for entry in path for text in _texts(entry.body)] for path in paths]

    return cli.write(work)


def replies(cli: Cli) -> list[str]:
    """The replies in all sessions; what forks share counts once."""

    async def work(store: SqliteStore) -> list[str]:
        paths = [await store.path(one.id) for one in await store.sessions()]
        bodies = {entry.id: entry.body for path in paths for entry in path}.values()
        found = (body for body in bodies if isinstance(body, Message) and body.role == "model")
        return [text for body in found for text in _texts(body)]

    return cli.write(work)


def _texts(body: Any) -> list[str]:
    if isinstance(body, Request):
        return ["→"]
    if isinstance(body, Message) and not body.context:
        return [part.text for part in body.parts]  # type: ignore[union-attr]
    return []


def test_a_run_that_was_overtaken_goes_on_in_a_fork_and_says_so(cli: Cli) -> None:
    held = HeldAnswer(says("Answer to one."))
    answers: tuple[Answer, ...] = (says("Hello."), held, says("Answer to two."))
    with server(cli, *answers) as on:
        cli.ok("-p", "Hi?", env=ENV)
        slow = cli.start("-c", "-p", "One?", env=ENV)
        wait_for(on, 2)
        quick = cli.ok("-c", "-p", "Two?", env=ENV)
        held.released.set()
        out, err = slow.communicate(timeout=PATIENCE)
    assert slow.returncode == 0, err
    assert quick.out == "Answer to two.\n"
    assert out == b"Answer to one.\n"
    assert b"was continued elsewhere meanwhile; this goes on in session" in err
    begin = ["Hi?", "→", "Hello.", "One?", "→"]
    assert sorted(sessions(cli)) == [
        [*begin, "Answer to one."],
        [*begin, "Two?", "→", "Answer to two."],
    ]


def test_the_fork_is_what_continues(cli: Cli) -> None:
    held = HeldAnswer(says("Answer to one."))
    with server(cli, says("Hello."), held, says("Fine.")) as on:
        cli.ok("-p", "Hi?", env=ENV)
        slow = cli.start("-c", "-p", "One?", env=ENV)
        wait_for(on, 2)
        cli.ok("-c", "-p", "Two?", env=ENV)
        held.released.set()
        _, err = slow.communicate(timeout=PATIENCE)
        (resume,) = [line for line in err.decode().splitlines() if "recollect -r" in line]
        words = resume.split("recollect -r ")[1].split()[0].strip("`")
        cli.ok("-r", words, "-p", "Go on.", env=ENV)
    sent = texts(on)
    assert "Answer to one." in sent
    assert "Two?" not in sent


def test_many_runs_at_once_lose_no_prompt_and_no_reply(cli: Cli) -> None:
    with server(cli, says("Hello.")):
        cli.ok("-p", "Hi?", env=ENV)
        running = [cli.start("-c", "-p", f"Prompt {n}?", env=ENV) for n in range(3)]
        for process in running:
            out, err = process.communicate(timeout=PATIENCE)
            assert (process.returncode, out) == (0, b"Hello.\n"), err
    found = sessions(cli)
    for number in range(3):
        assert any(f"Prompt {number}?" in one for one in found)
    assert sorted(replies(cli)) == ["Hello."] * 4
