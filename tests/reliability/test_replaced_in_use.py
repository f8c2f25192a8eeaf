"""The store's file goes away under the command line and a server: both say so, and name the way
back."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path

import httpx2
import pytest

from recollect.codecs.wire_protocol import DecodedRequest
from recollect.entries import Message
from recollect.server.nplt import Client, ServerRefused
from recollect.store.sqlite import SqliteStore
from recollect.testing import WireReply, faulty
from tests.cli.provider import ENV, provider
from tests.cli.runner import Cli
from tests.cli.served import RunningServe, served
from tests.reliability.chat_clients import TOKEN, text_of
from tests.reliability.children import in_store
from tests.reliability.test_replaced import SUFFIXES, other_store, saved_file


def test_the_command_line_says_it_in_the_middle_of_a_turn(cli: Cli) -> None:
    def delete_and_answer(request: DecodedRequest) -> WireReply:
        cli.store.unlink(missing_ok=True)
        return faulty(f"Yes, {len(request.messages)}.")

    with provider(cli, "openai", ["Yes.", delete_and_answer]):
        cli.ok("-p", "before", env=ENV)
        run = cli.process("-p", "in the middle", env=ENV)
    err = run.err
    assert run.code != 0, run.out
    assert "was deleted while it was open" in err
    assert "continues" not in err.partition("was deleted")[2]  # not before it is copied back
    assert {"before", "in the middle"} <= texts_in(saved_file(err))
    assert named_command(cli("doctor").out) == named_command(err)
    assert "copied" in cli.ok(*named_command(err)).out
    assert {"before", "in the middle"} <= texts_in(cli.store)


def named_command(told: str) -> list[str]:
    """The words after `recollect` of the copy that an error or a report names."""
    (command,) = re.findall(r"`recollect (store copy [^`]+)`", told)
    return shlex.split(command)


def test_a_moved_store_is_brought_back_by_the_command_that_the_error_names(cli: Cli) -> None:
    def move_and_answer(_: DecodedRequest) -> WireReply:
        for suffix in SUFFIXES:
            file = cli.store.with_name(cli.store.name + suffix)
            file.rename(cli.store.with_name(f"else where.db{suffix}"))
        return faulty("Yes.")

    with provider(cli, "openai", ["Yes.", move_and_answer]):
        cli.ok("-p", "before", env=ENV)
        run = cli.process("-p", "in the middle", env=ENV)
    assert run.code == 1
    cli.ok(*named_command(run.err))
    assert {"before", "in the middle"} <= texts_in(cli.store)


def test_what_the_journal_of_an_overwritten_store_holds_can_be_copied_back(cli: Cli) -> None:
    def overwrite_and_answer(_: DecodedRequest) -> WireReply:
        with cli.store.open("r+b") as file:  # in place: the same inode
            file.write((cli.home / "other.db").read_bytes())
        return faulty("Yes.")

    other_store(cli.home / "other.db")
    with provider(cli, "openai", ["Yes.", overwrite_and_answer]):
        cli.ok("-p", "before", env=ENV)
        run = cli.process("-p", "in the middle", env=ENV)
    assert "was overwritten in place" in run.err
    repaired = cli.ok("doctor", "--repair").out
    cli.ok(*named_command(repaired))
    assert {"of the other store", "in the middle"} <= texts_in(cli.store)


def test_a_server_says_it_in_every_protocol_and_saves_what_it_has(cli: Cli) -> None:
    with (
        provider(cli, "openai", ["Yes."], repeat=True),
        served(cli, "--token", TOKEN) as server,
        server.client(TOKEN) as http,
    ):
        asyncio.run(_chat_while_it_is_deleted(server, cli, http))
        lost = http.get("/health/ready")
        assert (lost.status_code, lost.json()["code"]) == (507, "store-replaced")
        server.stop()
    log = "".join(server.log)
    assert "`recollect store copy " in log
    assert "Traceback" not in log  # the sentence is enough, however often it is said
    (saved,) = cli.home.glob("recollect.db.saved-*")
    assert "before" in texts_in(saved)


async def _chat_while_it_is_deleted(server: RunningServe, cli: Cli, http: httpx2.Client) -> None:
    async with await Client.connect("127.0.0.1", server.nplt, token=TOKEN) as client:
        assert await client.ask("before") == "Yes."
        cli.store.unlink()
        for _ in range(2):
            with pytest.raises(ServerRefused, match="file was replaced"):
                await client.ask("after")
        refused = await asyncio.to_thread(http.post, "/api/sessions", json={})
        assert (refused.status_code, refused.json()["code"]) == (507, "store-replaced")


def texts_in(path: Path) -> set[str]:
    async def read(store: SqliteStore) -> set[str]:
        sessions = await store.sessions()
        bodies = [entry.body for each in sessions for entry in await store.tree(each.id)]
        return {text_of(body) for body in bodies if isinstance(body, Message)}

    return in_store(path, read)
