"""A model behind a real server, named in a `Cli`'s settings, and what a run left in the log."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect.codecs.openai import OpenAIWire
from recollect.entries import Entry, Message, Note, Text, Usage
from recollect.store.sqlite import SqliteStore
from tests.cli.runner import PATIENCE, Cli, Result
from tests.models.server import HELLO, KEY, STREAM_HEAD, Answer, Server, http, serving

NAME = "mine"
ENV = {"MY_KEY": KEY}
WIRE = OpenAIWire(model="m")


@contextmanager
def server(
    cli: Cli, *answers: Answer, url: str = "", more: str = "", window: int = 9000
) -> Iterator[Server]:
    """A server in a thread of its own, and settings that name it."""
    ready: list[tuple[Server, asyncio.AbstractEventLoop, asyncio.Event]] = []
    started = threading.Event()

    async def serve() -> None:
        async with serving(*answers) as found:
            over = asyncio.Event()
            ready.append((found, asyncio.get_running_loop(), over))
            started.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(PATIENCE)
    ((found, loop, over),) = ready
    try:
        cli.home.mkdir(exist_ok=True)
        (cli.home / "settings.toml").write_text(
            f'model = "{NAME}"\n[transport]\nretries = 1\nlongest_wait = 0.01\n'
            f'[models.{NAME}]\nurl = "{url or found.url}"\nkey = "MY_KEY"\n'
            f"window = {window}\n{more}"
        )
        yield found
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()


def reply(*parts: object, usage: Usage | None = None) -> bytes:
    made = Message(role="model", parts=parts, finish="stop", usage=usage)  # type: ignore[arg-type]
    return http(b"".join(WIRE.encode_stream(made)))


async def stall(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends the beginning of a reply and then nothing."""
    first = HELLO.split(b"\n\n")[0] + b"\n\n"
    writer.write(STREAM_HEAD + f"{len(first):x}\r\n".encode() + first + b"\r\n")
    await writer.drain()
    await asyncio.Event().wait()


# --- what was sent, and what is in the log -----------------------------------------------------


def messages(on: Server, number: int = -1) -> list[dict[str, Any]]:
    """The messages of a request."""
    found: list[dict[str, Any]] = json.loads(on.asked[number].body)["messages"]
    return found


def texts(on: Server, number: int = -1) -> list[str]:
    return [str(message["content"]) for message in messages(on, number)]


def outputs(on: Server, number: int = -1) -> list[str]:
    return [str(each["content"]) for each in messages(on, number) if each["role"] == "tool"]


def log(cli: Cli) -> list[tuple[str, str, str]]:
    """Role, text and finish of the only session's messages; level and text of its notes."""
    found: list[tuple[str, str, str]] = []
    for entry in path(cli):
        body = entry.body
        if isinstance(body, Message):
            text = "".join(part.text for part in body.parts if isinstance(part, Text))
            found.append((body.role, text, body.finish))
        elif isinstance(body, Note):
            found.append((body.level, body.text, ""))
    return found


def path(cli: Cli) -> tuple[Entry, ...]:
    async def work(store: SqliteStore) -> tuple[Entry, ...]:
        (session,) = await store.sessions()
        return await store.path(session.id)

    return cli.write(work)


def parts_of(cli: Cli, kind: type) -> list[Any]:
    """All parts of this kind in the only session's path."""
    bodies = [entry.body for entry in path(cli) if isinstance(entry.body, Message)]
    return [part for body in bodies for part in body.parts if isinstance(part, kind)]


def readable(done: Result) -> None:
    """stderr is for users: short lines without Python's own words."""
    for word in ("Traceback", "Error(", "<class", "CancelledError", "NoneType"):
        assert word not in done.err, done.err
    assert all(len(line) < 500 for line in done.err.splitlines()), done.err


# --- hooks -------------------------------------------------------------------------------------


def hook(event: str, script: Path) -> str:
    return f'[[hooks]]\nevent = "{event}"\ncommand = "sh {script}"\n'


def script(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


def recording_hook(folder: Path) -> tuple[Path, Path]:
    """A script that appends what it receives to a file, and that file."""
    record = folder / "record"
    return script(folder, "record.sh", f'(cat; echo) >> "{record}"\n'), record


def recorded(file: Path) -> list[tuple[str, dict[str, Any]]]:
    lines = [json.loads(line) for line in file.read_text().splitlines() if line]
    return [(line["hook_event_name"], line["data"]) for line in lines]
