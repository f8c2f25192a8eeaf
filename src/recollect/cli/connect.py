"""`recollect connect`: a line client for a recollect server that speaks NPLT.

Lines are messages, and lines that begin with a slash are commands. What the server says is shown
without control characters. Ctrl-C cancels an answer; a second one, or one at the prompt, leaves.
In a pipe the exit code says whether every line was answered.
"""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import click

from recollect.cli.console import print_error, print_note, show_status
from recollect.cli.main import FAILED, INTERRUPTED
from recollect.cli.options import command
from recollect.display.display_text import one_line, pluralize, sanitize, truncate
from recollect.errors import BadInput, CannotOpen, RecollectError
from recollect.server.listen_address import ListenAddress, parse_address
from recollect.server.nplt.nplt_client import (
    END,
    AnswerEvent,
    AnswerPiece,
    ChatEvent,
    Client,
    ConnectionLost,
)
from recollect.server.token_files import read_own_token
from recollect.terminal.typed_lines import TypedLines
from recollect.text import format_size

PROMPT = "> "
ANSWERED = "answered"  # the reason of an answer that came to its end
MAX_UPLOAD = 10_000_000  # bytes; the server's own limit may be lower
HELP = """\
/history [N]     the newest N messages of this session (20)
/sessions        your sessions; * marks the one you are in
/new [NAME]      begin a session
/switch ID       go to another session, by any part of its id
/rename NAME     name this session
/delete ID       move a session to the trash
/clear           begin a fresh session; this one is kept
/model NAME      use another model
/upload FILE     send a file with your next message
/help            this
/quit            leave; so does Ctrl-D
Ctrl-C cancels an answer; a line that begins with // is sent with one slash."""


@command(
    ("recollect connect 127.0.0.1:9999", "a server on this machine"),
    ("recollect connect example.org:9999", "another machine: over TLS, with a token"),
    ("recollect connect host:9999 --ca cert.pem", "trust this certificate"),
    ('echo "what changed?" | recollect connect :9999', "one message, no terminal"),
)
@click.argument("address", metavar="HOST:PORT", default=":9999")
@click.option(
    "--token", metavar="TOKEN", help="The server's token; better in RECOLLECT_TOKEN than here."
)
@click.option(
    "--tls/--no-tls",
    default=None,
    help="Encrypt the connection; the default for other machines. --no-tls: send it in the clear.",
)
@click.option(
    "--ca",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Trust the certificates in this PEM file.",
)
@click.option("--session", metavar="ID", help="Begin in this session.")
def connect(
    address: str, token: str | None, *, tls: bool | None, ca: Path | None, session: str | None
) -> None:
    """Talk to a recollect server.

    Lines are messages; /help lists the commands. A server on this machine wants no token unless it
    was told to; the token that a server made here is found by itself. In a pipe the exit code is 1
    if an answer or a command failed.
    """
    place = parse_address(address)
    context = _tls_context(place, tls=tls, ca=ca)
    sys.exit(asyncio.run(_run(place, _find_token(place, token), context, session or "")))


def _tls_context(
    place: ListenAddress, *, tls: bool | None, ca: Path | None
) -> ssl.SSLContext | None:
    wanted = (ca is not None or not place.is_loopback) if tls is None else tls
    if not wanted:
        return None
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise CannotOpen(str(ca), f"no certificates ({error})") from error


def _find_token(place: ListenAddress, given: str | None) -> str:
    """The token for this server; the user's own never leaves this machine by itself."""
    if token := given or os.environ.get("RECOLLECT_TOKEN", ""):
        return token
    return (read_own_token() or "") if place.is_loopback else ""


async def _run(place: ListenAddress, token: str, tls: ssl.SSLContext | None, session: str) -> int:
    async with await Client.connect(place.host, place.port, token=token, tls=tls) as client:
        talk = _LineClient(client)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, talk.interrupt)
        try:
            if session:
                await client.switch(session)
            talk.greet(place)
            return await talk.run()
        except ConnectionLost as error:
            print_error(str(error))
            return FAILED
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            talk.lines.close()


class _LineClient:
    def __init__(self, client: Client) -> None:
        self.lines = TypedLines()
        self._client = client
        self._answering = self._cancelled = self._failed = False
        self._interrupted = asyncio.Event()
        self._at_line_start, self._status = True, ""
        self._commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "history": self._history,
            "sessions": self._sessions,
            "new": self._new,
            "switch": self._switch,
            "rename": self._rename,
            "delete": self._delete,
            "clear": self._clear,
            "model": self._model,
            "upload": self._upload,
            "help": self._help,
        }

    def greet(self, place: ListenAddress) -> None:
        short = self._client.welcome.get("short_id", "")
        print_note(f"connected to {place}, session {short}; /help lists the commands")

    def interrupt(self) -> None:
        if self._answering and not self._cancelled:
            self._cancelled = True
            self._client.cancel()
            print_note("\ncancelling; Ctrl-C again leaves")
        else:
            self._interrupted.set()
            self.lines.end()

    async def run(self) -> int:
        """Until the user leaves; the exit code."""
        while True:
            if sys.stdin.isatty():
                sys.stdout.write(PROMPT)
                sys.stdout.flush()
            line = await self.lines.next()
            if line is None or line.strip() == "/quit":
                if sys.stdin.isatty():
                    sys.stdout.write("\n")
                return self._exit_code()
            if not line.strip():
                continue
            try:
                await self._obey(line.strip("\r\n"))
            except ConnectionLost:
                raise
            except RecollectError as error:
                self._failed = True
                print_error(str(error))
            if self._interrupted.is_set():
                return INTERRUPTED

    def _exit_code(self) -> int:
        """A script must hear of a line that failed; a user at a terminal has seen it."""
        if self._interrupted.is_set():
            return INTERRUPTED
        return FAILED if self._failed and not sys.stdin.isatty() else 0

    async def _obey(self, line: str) -> None:
        if not line.startswith("/") or line.startswith("//"):
            await self._chat(line[1:] if line.startswith("//") else line)
            return
        name, _, rest = line[1:].partition(" ")
        if name not in self._commands:
            raise BadInput(f"there is no command /{name}; /help lists them")
        await self._commands[name](rest.strip())

    # --- answers ---------------------------------------------------------------------------------

    async def _chat(self, text: str) -> None:
        self._answering, self._cancelled = True, False
        left = asyncio.ensure_future(self._interrupted.wait())
        shown = asyncio.create_task(self._show_answer(text))
        try:
            await asyncio.wait([left, shown], return_when=asyncio.FIRST_COMPLETED)
            if shown.done():
                shown.result()
        finally:
            self._answering = False
            for task in (left, shown):
                task.cancel()
            await asyncio.gather(left, shown, return_exceptions=True)
            self._set_status("")
            if not self._at_line_start:
                self._write("\n")

    async def _show_answer(self, text: str) -> None:
        self._set_status("waiting for a reply")
        async for event in self._client.chat(text):
            self._set_status("")
            await self._show(event)

    def _set_status(self, text: str) -> None:
        """On the line that is empty; a status must not replace what was said there."""
        if text != self._status and self._at_line_start:
            self._status = text
            show_status(text)

    async def _show(self, event: ChatEvent) -> None:
        if isinstance(event, AnswerPiece):
            self._write(sanitize(event.text))
            return
        if event.type == END and event.fields.get("reason") != ANSWERED:
            self._failed = True
        if event.type == "approval":
            await self._ask_approval(event)
        elif event.type == "tool_call":
            self._note(f"→ {truncate(one_line(event.content), 160)}")
        elif event.type in ("void", "notice", END) and event.content:
            self._note(event.content)
        elif event.type == "tool_result" and event.fields.get("is_error"):
            self._note(f"  {truncate(one_line(event.content), 160)}")

    async def _ask_approval(self, event: AnswerEvent) -> None:
        call = f"{event.fields.get('name')} {event.fields.get('arguments')}"
        self._note(f"the agent wants to run: {one_line(call)}")
        if meaning := event.fields.get("normal_form"):
            self._note(f"what it means: {one_line(str(meaning))}")
        self._note(f"why it asks: {one_line(event.content)}")
        self._write("allow it? [y/N] ")
        line = await self.lines.next(fresh=True)
        self._at_line_start = True  # the user's own line end
        allowed = line is not None and line.strip().lower() in ("y", "yes")
        self._client.approve(str(event.fields.get("approval")), allowed=allowed)

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
        self._at_line_start = text.endswith("\n")

    def _note(self, text: str) -> None:
        if not self._at_line_start:
            self._write("\n")
        print_note(text)

    # --- commands --------------------------------------------------------------------------------

    async def _history(self, rest: str) -> None:
        if rest and not rest.isdecimal():
            raise BadInput(f"{rest[:40]!r} is no number of messages; try /history 50")
        page = await self._client.history(limit=int(rest[:6] or "20"))
        for message in page.get("messages", ()):
            self._write(f"{_clean(message.get('role'))}: {sanitize(_words(message))}\n")
        older = int(page.get("message_count", 0)) - len(page.get("messages", ()))
        print_note(f"{pluralize(older, 'older message')}" if older else "that is all")

    async def _sessions(self, _rest: str) -> None:
        page = await self._client.sessions(limit=50)
        for row in page.get("sessions", ()):
            mark, name = "*" if row.get("current") else " ", _clean(row.get("name"))
            entries = f"({row.get('entries', 0)} entries)"
            self._write(
                f"{mark} {_clean(row.get('short_id'))}  {name or '(untitled)'}  {entries}\n"
            )
        if "next_offset" in page:
            print_note("there are more")

    async def _new(self, rest: str) -> None:
        self._say("new session", await self._client.new(rest))

    async def _switch(self, rest: str) -> None:
        self._say("now in session", await self._client.switch(_required(rest, "/switch ID")))

    async def _rename(self, rest: str) -> None:
        self._say("renamed session", await self._client.rename(_required(rest, "/rename NAME")))

    async def _delete(self, rest: str) -> None:
        reply = await self._client.delete(_required(rest, "/delete ID"))
        print_note(f"in the trash: {_clean(reply.get('deleted'))}")
        if "short_id" in reply:
            self._say("new session", reply)

    async def _clear(self, _rest: str) -> None:
        self._say("new session", await self._client.clear())

    async def _model(self, rest: str) -> None:
        reply = await self._client.model(_required(rest, "/model NAME"))
        print_note(f"the model is now {_clean(reply.get('model'))}")

    async def _upload(self, rest: str) -> None:
        file = Path(_required(rest, "/upload FILE")).expanduser()
        data = await asyncio.to_thread(_read_file, file)
        try:
            reply = await self._client.upload(file.name, data, _show_progress)
        finally:
            show_status("")
        size = format_size(len(data))
        print_note(f"{_clean(reply.get('filename'))} ({size}) goes with your next message")

    async def _help(self, _rest: str) -> None:
        self._write(HELP + "\n")

    def _say(self, what: str, reply: dict[str, Any]) -> None:
        name = _clean(reply.get("name"))
        print_note(f"{what} {_clean(reply.get('short_id'))}{f': {name}' if name else ''}")


def _required(given: str, usage: str) -> str:
    if not given:
        raise BadInput(f"something is missing; the command is {usage}")
    return given


def _clean(value: object) -> str:
    return one_line(str(value or ""))


def _words(message: dict[str, Any]) -> str:
    content = message.get("content")
    calls = [str(call.get("tool_name")) for call in message.get("tool_calls") or ()]
    text = content if isinstance(content, str) else str(content)
    return text + "".join(f"\n  → {name}" for name in calls)


def _read_file(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_UPLOAD + 1)
    except OSError as error:
        raise CannotOpen(str(file), error.strerror or str(error)) from None
    if len(data) > MAX_UPLOAD:
        raise BadInput(f"{file} has more than {format_size(MAX_UPLOAD)}; send a part of it")
    return data


def _show_progress(done: int, total: int) -> None:
    show_status(f"sending: {format_size(done)} of {format_size(total)}")
