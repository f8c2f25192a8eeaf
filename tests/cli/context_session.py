"""A session to look at and to edit with `recollect context`."""

from __future__ import annotations

import re

from recollect.entries import (
    Body,
    Elide,
    Elided,
    Entry,
    Message,
    Text,
    Thought,
    Usage,
)
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, result, user
from tests.cli.runner import Cli

GREP = call("grep", pattern="x")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x08\r\ud800"
STYLE = re.compile("\x1b\\[[0-9;]*m")


def spoken(text: str, name: str = "claude-opus-4", usage: Usage | None = None) -> Message:
    return Message(role="model", parts=(Text(text=text),), model=name, usage=usage)


def elide(entry: Entry, rule: str = "stale-search", text: str = "[left out]") -> Elide:
    return Elide(rule=rule, items=(Elided(entry=entry.id, placeholder=text),))


def session_with_calls(cli: Cli) -> tuple[SessionInfo, tuple[Entry, ...]]:
    return cli.session(
        [
            Message(role="user", parts=(Text(text="setup " * 10),), context="initial"),
            user("find x"),
            Message(role="model", parts=(Thought(text="hm"), GREP), model="claude-opus-4"),
            result(GREP, "found it " * 100),
            spoken("done", usage=Usage(input=5_000, cached=4_000, output=7)),
        ],
        title="Finding x",
    )


def tokens_shown(cli: Cli, session: str, *options: str) -> int:
    """Of the messages alone, without tools and without what is not stored yet."""
    items = cli.ok("context", session, *options, "--json").json["items"]
    return sum(item["tokens"] for item in items)


def append(cli: Cli, session: SessionInfo, *bodies: Body) -> tuple[Entry, ...]:
    async def work(store: SqliteStore) -> tuple[Entry, ...]:
        head = (await store.session(session.id)).head
        return await store.append(session.id, bodies, parent=head)

    return cli.write(work)


def kinds(cli: Cli, session: SessionInfo) -> list[str]:
    entries = cli.ok("show", session.id, "--json").json["entries"]
    return [entry["body"]["kind"] for entry in entries]
