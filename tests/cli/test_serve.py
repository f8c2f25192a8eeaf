"""`recollect serve`: one command, two protocols, the sessions of the command line."""

from __future__ import annotations

import json
import re
import signal
import ssl
import subprocess
from pathlib import Path

import pytest

from recollect.testing import ProviderLine, faulty
from tests.cli.provider import ENV, provider
from tests.cli.runner import Cli
from tests.cli.served import served
from tests.server.nplt.seed_client import SeedClient

CHAT, STREAMED = 0x01, 0x0A


def test_both_protocols_serve_the_sessions_of_the_command_line(cli: Cli) -> None:
    with provider(cli, "openai", ["from the shell", "over NPLT", "over HTTP"]):
        assert cli("-p", "first", env=ENV).code == 0
        with served(cli) as server:
            token = re.findall(r"token +(\S{43})", server.greeting)[0]
            with SeedClient(server.nplt) as seed:
                assert "first" in seed.request(0x14)
                assert seed.chat("second") == "over NPLT"
            with server.client(token) as client:
                listed = client.get("/api/sessions").json()
                assert {one["title"] for one in listed["sessions"]} == {"first", "second"}
                assert client.get("/health/ready").status_code == 200
                assert "recollect_prompts_total 1.0" in client.get("/metrics").text
                with SeedClient(server.nplt):
                    assert "recollect_nplt_connections 1.0" in client.get("/metrics").text
            assert server.stop() == 0
        shown = cli.ok("sessions", "--json").json
        assert {one["title"] for one in shown} == {"first", "second"}


def test_the_token_is_printed_once_and_kept_for_the_user_alone(cli: Cli) -> None:
    with provider(cli, "openai", []):
        with served(cli) as server:
            token = re.findall(r"token +(\S{43})", server.greeting)[0]
            assert token not in "".join(server.log)
            with server.client(token) as client:
                assert client.get("/api/sessions").status_code == 200
            with server.client(token[:-1]) as client:
                assert client.get("/api/sessions").status_code == 401
            assert server.stop() == 0
        file = cli.home / "server-token"
        assert file.stat().st_mode & 0o777 == 0o600
        with served(cli) as server:
            assert token not in server.greeting
            assert str(file) in server.greeting


def test_a_token_made_while_it_runs_sees_only_its_own_sessions(cli: Cli) -> None:
    with provider(cli, "openai", ["hello"]):
        assert cli("-p", "mine", env=ENV).code == 0
        with served(cli) as server:
            made = cli.ok("token", "add", "alice", "--json").json["token"]
            with server.client(made) as client:
                assert client.get("/api/sessions").json()["sessions"] == []
                assert client.post("/api/sessions", json={"title": "hers"}).status_code == 201
                assert len(client.get("/api/sessions").json()["sessions"]) == 1
                cli.ok("token", "remove", "alice")
                assert client.get("/api/sessions").status_code == 401


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_stopping_keeps_an_answer_in_progress(cli: Cli, number: signal.Signals) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("the tests were started with nohup, which a server respects")
    script: list[ProviderLine] = [
        faulty("half of an answer", close="silence"),
        "and the rest",
    ]
    with provider(cli, "openai", script), served(cli) as server:
        with SeedClient(server.nplt) as seed:
            seed.send(CHAT, "tell me")
            shown = ""
            while "answer" not in shown:
                got = seed.receive()
                shown += got.text if got.type == CHAT else ""
            assert server.stop(number) == 0
        entries = cli.ok("show", "last", "--json").json["entries"]
        last = [one["body"] for one in entries if one["body"].get("role") == "model"][-1]
        assert last["finish"] == "interrupted"
        assert last["parts"][0]["text"] == "half of an answer"
        done = cli("-c", "-p", "go on", env=ENV)
        assert (done.code, done.out.strip()) == (0, "and the rest")


def test_the_log_is_json_on_request_and_names_no_secret(cli: Cli) -> None:
    secret = "sk-" + "a1" * 24
    with provider(cli, "openai", [faulty(status=401, body=f'{{"error":"{secret}"}}'.encode())]):
        with served(cli, "--log-json", "-v") as server:
            with SeedClient(server.nplt) as seed:
                seed.chat("hi")
            assert server.stop() == 0
        lines = [json.loads(line) for line in server.log]
        assert {"time", "level", "logger", "message"} <= lines[0].keys()
        assert lines[-1]["message"] == "stopped"
        assert secret not in "".join(server.log)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--http", "0.0.0.0:0"), "there is no TLS"),
        (("--http", "nowhere"), "is not an address"),
        (("--http", "off", "--nplt", "off"), "nothing to serve"),
        (("--tls-cert", "c.pem"), "belong together"),
        (("--tls-cert", "c.pem", "--tls-key", "k.pem"), "no TLS certificate"),
        (("--token", "short"), "at least 32"),
    ],
)
def test_a_server_that_cannot_start_says_why(
    cli: Cli, arguments: tuple[str, ...], sentence: str
) -> None:
    done = cli.process("serve", "--nplt", ":0", "--http", ":0", *arguments)
    assert done.code != 0
    assert sentence in done.err
    assert "Traceback" not in done.err


def test_a_port_that_is_taken_is_one_sentence(cli: Cli) -> None:
    with provider(cli, "openai", []), served(cli) as server:
        for option, port in (("--nplt", server.nplt), ("--http", server.http)):
            other = "--http" if option == "--nplt" else "--nplt"
            done = cli.process("serve", option, f":{port}", other, ":0", env=ENV)
            assert done.code == 1
            assert f"cannot listen on 127.0.0.1:{port}" in done.err


def make_certificate(folder: Path) -> tuple[str, str]:
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", "key.pem", "-out", "cert.pem", "-nodes", "-days", "2"]
    done = subprocess.run([*made, *names, *files], cwd=folder, capture_output=True)
    if done.returncode:
        pytest.skip("openssl cannot make a certificate")
    return str(folder / "cert.pem"), str(folder / "key.pem")


def test_with_a_certificate_everything_is_encrypted(cli: Cli, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    token = "t" * 40
    arguments = ("--tls-cert", certificate, "--tls-key", key, "--token", token)
    with provider(cli, "openai", []), served(cli, *arguments) as server:
        trusting = ssl.create_default_context(cafile=certificate)
        client = server.client(token, scheme="https", verify=trusting)
        with client:
            assert client.get("/api/sessions").json()["sessions"] == []
        with SeedClient(server.nplt, welcome=False) as seed:
            seed.send(CHAT, "in the clear")
            assert seed.is_closed()


def test_what_would_fail_later_is_said_at_the_start(cli: Cli) -> None:
    with provider(cli, "openai", []):
        ports = ("--nplt", ":0", "--http", ":0")
        refused = cli("serve", *ports, "-m", "nosuch", env=ENV)
        assert (refused.code, "unknown model 'nosuch'" in refused.err) == (1, True)
        refused = cli("serve", *ports, "--allow", ";;", env=ENV)
        assert (refused.code, "the rule ';;' cannot be read" in refused.err) == (1, True)
        refused = cli("serve", *ports, env=ENV, cwd=cli.home)
        assert (refused.code, "recollect's own data" in refused.err) == (1, True)
        for seconds in ("0", "nan", "inf", "86401"):
            assert cli("serve", *ports, "--approval-seconds", seconds).code == 2
        with served(cli, env={"MY_KEY": ""}) as server:
            server.stop()
            assert any("no API key for mine" in line for line in server.log)


def test_the_log_says_who_did_what_and_nothing_of_what_was_said(cli: Cli) -> None:
    secret = "xylophone"
    script: list[ProviderLine] = [f"the {secret} is blue"]  # and no second reply: it fails
    with provider(cli, "openai", script), served(cli) as server:
        token = cli.ok("token", "add", "alice", "--json").json["token"]
        with server.client(token) as client:
            session = client.post("/api/sessions", json={"title": secret}).json()["id"]
            for _ in range(2):
                body = {"prompt": f"@{secret}.txt", "kind": "ask", "stream": True}
                client.post(f"/api/sessions/{session}/prompts", json=body)
        with server.client("wrong") as client:
            assert client.get("/api/sessions?token=" + token).status_code == 401
        with SeedClient(server.nplt) as seed:
            seed.send(0x1A, {"token": token, "version": 1, "features": []})
            assert b"alice" in seed.socket.recv(5_000)
        server.stop()
        log = "".join(server.log)
        assert f"prompt of alice in session {session}: answered by mine" in log
        assert f"prompt of alice in session {session}: failed" in log
        assert "127.0.0.1: connected as alice (chat)" in log
        assert "127.0.0.1: request refused: unauthorized" in log
        assert token not in log
        assert f"@{secret}" not in log
        assert f"the {secret}" not in log
