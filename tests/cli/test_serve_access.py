"""`recollect serve` and its tokens, while it runs: removed ones, damaged files, other owners."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from recollect.testing import faulty
from tests.cli.provider import provider
from tests.cli.runner import PATIENCE, Cli
from tests.cli.served import RunningServe, served
from tests.server.nplt.seed_client import SeedClient

HANGS = faulty("half an answer", end="none", close="silence")  # and the connection stays open


@pytest.fixture
def server(cli: Cli) -> Iterator[RunningServe]:
    with provider(cli, "openai", [HANGS], repeat=True), served(cli) as running:
        yield running


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def add_token(cli: Cli, name: str, *options: str) -> str:
    return cli.ok("token", "add", name, *options).out.strip()


@pytest.mark.parametrize("stream", ["run", "entries", "response"])
def test_the_streams_of_a_token_end_when_it_is_removed(
    cli: Cli, server: RunningServe, stream: str
) -> None:
    with server.client(add_token(cli, "alice")) as alice:
        session = alice.post("/api/sessions", json={}).json()["id"]
        sessions, body = f"/api/sessions/{session}", {"prompt": "Hi.", "kind": "ask"}
        request = {
            "run": ("POST", f"{sessions}/prompts", body | {"stream": True}),
            "entries": ("GET", f"{sessions}/entries/stream", None),
            "response": ("POST", "/v1/responses", {"input": "Hi.", "stream": True}),
        }[stream]
        method, path, json = request
        with alice.stream(method, path, json=json) as response:
            assert response.status_code == 200
            seen = response.iter_text()
            next(seen)
            cli.ok("token", "remove", "alice")
            rest = "".join(seen)  # it ends
        assert ("cancelled" if stream == "response" else "the token was removed") in rest
        assert alice.get(sessions).status_code == 401


def test_prompts_of_a_removed_token_stop_and_those_that_wait_never_begin(cli: Cli) -> None:
    with provider(cli, "openai", [HANGS], repeat=True) as model, served(cli) as server:
        own = (cli.home / "server-token").read_text().strip()
        with server.client(add_token(cli, "alice")) as alice, server.client(own) as user:
            session = alice.post("/api/sessions", json={}).json()["id"]
            prompts = f"/api/sessions/{session}/prompts"
            for text in ("first", "second", "third"):
                sent = alice.post(prompts, json={"prompt": text, "kind": "ask"})
                assert sent.status_code == 202
            wait_until(lambda: len(model.requests) == 1)
            cli.ok("token", "remove", "alice")
            runs = f"/api/sessions/{session}/runs"
            wait_until(lambda: user.get(runs).json()["runs"] == [])
            entries = user.get(f"/api/sessions/{session}/entries").json()["entries"]
        said = [e["entry"]["body"] for e in entries if e["entry"]["body"]["kind"] == "message"]
        assert "first" in str(said)
        assert "second" not in str(said)
        assert len(model.requests) == 1


def test_a_client_that_only_listens_is_cut_off_too(cli: Cli, server: RunningServe) -> None:
    with SeedClient(server.nplt) as client:
        client.send(0x1A, {"token": add_token(cli, "alice"), "version": 1, "features": []})
        said = client.socket.recv(5_000)
        assert b"alice" in said
        cli.ok("token", "remove", "alice")
        rest = b"".join(iter(lambda: client.socket.recv(5_000), b""))  # to the end
        assert b"the token was removed" in rest


def test_a_damaged_file_of_tokens_shuts_out_the_named_ones_and_is_logged(
    cli: Cli, server: RunningServe
) -> None:
    with server.client(add_token(cli, "alice")) as alice:
        assert alice.get("/api/sessions").status_code == 200
        (cli.home / "server-tokens.json").write_text("{")
        assert alice.get("/api/sessions").status_code == 401
    own = (cli.home / "server-token").read_text().strip()
    with server.client(own) as user:
        assert user.get("/api/sessions").status_code == 200
    server.stop()
    assert any("no named token is known" in line for line in server.log)
