"""A server whose disk is full or whose database is away says so to every client in its own form,
keeps their connections, and goes on by itself."""

from __future__ import annotations

import asyncio
import resource

import httpx2
import pytest

from recollect.entries import Message
from recollect.server.nplt import Client, ServerRefused
from recollect.store.sqlite import SqliteStore
from tests.cli.provider import provider
from tests.cli.runner import Cli
from tests.cli.served import RunningServe, served
from tests.postgres_server import running_postgres
from tests.reliability.chat_clients import TOKEN, text_of
from tests.server.nplt.seed_client import SeedClient

PROBLEM = "application/problem+json"


def limit_files(server: RunningServe, size: int) -> None:
    """No file of the server may grow beyond this size: as if the disk were full."""
    limits = (size, resource.RLIM_INFINITY)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)


def ask_responses(http: httpx2.Client, text: str) -> httpx2.Response:
    return http.post("/v1/responses", json={"model": "mine", "input": text})


def _refused_by_http(http: httpx2.Client) -> None:
    refused = http.post("/api/sessions", json={})
    assert (refused.status_code, refused.headers["content-type"]) == (507, PROBLEM)
    assert refused.json()["code"] == "cannot-write"
    assert "everything acknowledged before is safe" in refused.json()["detail"]
    answered = ask_responses(http, "full 3")
    assert answered.status_code == 507
    assert answered.json()["error"]["code"] == "cannot_write"


async def _chat_through_a_full_disk(server: RunningServe, http: httpx2.Client) -> str:
    with SeedClient(server.nplt) as seed:
        async with await Client.connect("127.0.0.1", server.nplt, token=TOKEN) as client:
            assert await client.ask("before 1") == "Yes."
            assert await asyncio.to_thread(seed.chat, "before 2") == "Yes."
            limit_files(server, 4_096)
            for _ in range(3):  # it goes on saying so, on the same connection
                with pytest.raises(ServerRefused, match=r"cannot be written.*acknowledged before"):
                    await client.ask("full 1")
                assert "cannot be written" in await asyncio.to_thread(seed.chat, "full 2")
            await asyncio.to_thread(_refused_by_http, http)
            limit_files(server, resource.RLIM_INFINITY)
            assert await client.ask("after 1") == "Yes."
            assert await asyncio.to_thread(seed.chat, "after 2") == "Yes."
            answered = await asyncio.to_thread(ask_responses, http, "after 3")
            assert answered.status_code == 200
            return client.session_id


def test_a_full_disk_is_told_in_every_protocol_and_chats_go_on_with_more_space(cli: Cli) -> None:
    async def prompts(store: SqliteStore) -> list[str]:
        bodies = [entry.body for entry in await store.path(session)]
        said = [one for one in bodies if isinstance(one, Message) and not one.context]
        return [text_of(one) for one in said if one.role == "user"]

    with (
        provider(cli, "openai", ["Yes."], repeat=True),
        served(cli, "--token", TOKEN) as server,
        server.client(TOKEN) as http,
    ):
        session = asyncio.run(_chat_through_a_full_disk(server, http))
        assert server.stop() == 0
    assert cli("doctor").code == 0
    assert cli.write(prompts) == ["before 1", "after 1"]


def test_a_database_that_is_not_there_at_the_start_is_one_sentence_without_its_password(
    cli: Cli,
) -> None:
    for hosts in ("127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2"):
        url = f"postgresql://me:geheim@{hosts}/db"
        done = cli.process("serve", "--store", url, "--nplt", ":0", "--http", ":0")
        assert done.code == 1
        assert f"cannot open postgresql://me@{hosts}/db" in done.err
        assert "start it, or correct the URL" in done.err
        assert "geheim" not in done.err + done.out
        assert "Traceback" not in done.err


def test_a_server_whose_database_is_away_welcomes_clients_and_is_not_ready(cli: Cli) -> None:
    async def connect(server: RunningServe) -> None:
        async with await Client.connect("127.0.0.1", server.nplt, token=TOKEN) as client:
            assert client.session_id

    with running_postgres() as database, provider(cli, "openai", ["Yes."], repeat=True):
        url = database.new_url().replace("postgres@", "postgres:geheim@")
        with served(cli, "--store", url, "--token", TOKEN) as server, server.client(TOKEN) as http:
            assert http.get("/health/ready").status_code == 200
            database.stop("immediate")
            away = http.get("/health/ready")
            assert (away.status_code, away.headers["content-type"]) == (503, PROBLEM)
            assert away.headers["retry-after"]
            assert http.get("/health/live").status_code == 200
            asyncio.run(connect(server))
            database.start()
            while http.get("/health/ready").status_code != 200:
                pass
            with SeedClient(server.nplt) as seed:
                assert seed.chat("Are you back?") == "Yes."
            assert server.stop() == 0
        assert "geheim" not in away.text + server.greeting + "".join(server.log)


def _refused_while_away(server: RunningServe, http: httpx2.Client) -> str:
    """What clients of each protocol are told; they wait as long as the settings say."""
    listed = http.get("/api/sessions", timeout=25)  # less than the usual wait
    assert (listed.status_code, listed.headers["content-type"]) == (503, PROBLEM)
    assert listed.headers["retry-after"]
    answered = ask_responses(http, "away 1")
    assert answered.status_code == 503
    assert "the store cannot be used now" in answered.json()["error"]["message"]
    with SeedClient(server.nplt) as seed:
        said = seed.chat("away 2")
        assert "the store cannot be used now" in said
        return listed.text + answered.text + said


def test_how_long_clients_wait_for_a_database_that_is_away_is_a_setting(cli: Cli) -> None:
    script = provider(cli, "openai", ["Yes."], repeat=True)
    with running_postgres() as database, script:
        settings = cli.home / "settings.toml"
        settings.write_text(f"store_wait = 0.5\n{settings.read_text()}")
        url = database.new_url()
        with served(cli, "--store", url, "--token", TOKEN) as server, server.client(TOKEN) as http:
            database.stop("immediate")
            told = _refused_while_away(server, http)
            database.start()
            while http.get("/health/ready").status_code != 200:
                pass
            assert ask_responses(http, "back").status_code == 200
        assert "postgres" not in told
        assert any("postgresql://" in line for line in server.log)
