"""`recollect connect` in a real terminal, and in a pipe, against a real server."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from recollect.server.access import AccessToken, AccessTokens, Identity, hash_token
from recollect.server.token_files import ServerTokens, own_token
from recollect.testing import ProviderLine, call, faulty, key_refused, says
from tests.cli.runner import COMMAND, PATIENCE, Cli, Result
from tests.models.tls import make_certificate
from tests.server.hubs import scripted_provider
from tests.server.nplt.nplt_servers import running_server

TOKEN = "a-token-of-more-than-thirty-two-characters"


def pipe(cli: Cli, port: int, text: str, *options: str, token: str = "") -> Result:
    """The command with this input, and no terminal."""
    done = subprocess.run(
        [*COMMAND, "connect", f"localhost:{port}", *options],
        cwd=cli.project,
        env=cli.env({"RECOLLECT_TOKEN": token} if token else {}),
        input=text.encode(),
        capture_output=True,
        timeout=PATIENCE,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_conversation_in_a_terminal(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cli.project / "notes.txt").write_text("remember the milk\n" * 3_000)
    script: list[ProviderLine] = ["Hello \x1b[31mthere.", "Read it.", "In plans."]
    with (
        scripted_provider(tmp_path / "home", monkeypatch, script) as provider,
        running_server(tmp_path) as server,
    ):
        shown = cli.terminal(
            "connect",
            f"127.0.0.1:{server.port}",
            keys=[
                ("> ", "/help\n"),
                ("> ", "Hi.\n"),
                ("there.", "/history\n"),
                ("assistant: Hello", "/upload notes.txt\n"),
                ("next message", "What is in it?\n"),
                ("Read it.", "/new plans\n"),
                ("new session", "Begin.\n"),
                ("In plans.", "/sessions\n"),
                ("plans  (", "/rename better plans\n"),
                ("renamed session", "/model nothing\n"),
                ("unknown model", "/nonsense\n"),
                ("no command /nonsense", "/switch\n"),
                ("the command is /switch ID", "/clear\n"),
                ("new session", "/quit\n"),
            ],
        )
        assert shown.code == 0, shown.out
        assert "\x1b[31m" not in shown.out
        assert "␛[31mthere." in shown.out
        assert "/history [N]" in shown.out
        assert "52.0 kB" in shown.out or "54.0 kB" in shown.out
        assert b"remember the milk" in provider.requests[1].body


def test_ctrl_c_cancels_an_answer_and_the_next_one_leaves(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: list[ProviderLine] = [
        faulty("half an answer", end="none", close="silence"),
        "Back again.",
    ]
    with (
        scripted_provider(tmp_path / "home", monkeypatch, script),
        running_server(tmp_path) as server,
    ):
        shown = cli.terminal(
            "connect",
            f"127.0.0.1:{server.port}",
            keys=[
                ("> ", "Tell me everything.\n"),
                ("half an", "\x03"),
                ("interrupted", "And now?\n"),
                ("Back again.", ""),
                ("> ", "\x03"),
            ],
        )
        assert shown.code == 130, shown.out
        assert server.hub.counts.cancelled == 1


def test_a_second_ctrl_c_leaves_in_the_middle_of_an_answer(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: list[ProviderLine] = [faulty("half an answer", end="none", close="silence")]
    with (
        scripted_provider(tmp_path / "home", monkeypatch, script),
        running_server(tmp_path) as server,
    ):
        shown = cli.terminal(
            "connect",
            f"127.0.0.1:{server.port}",
            keys=[("> ", "Tell me everything.\n"), ("half an", "\x03\x03")],
        )
        assert shown.code == 130, shown.out


def test_an_approval_is_asked_on_the_terminal(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = call("write_file", path="a.txt", content="words")
    script: list[ProviderLine] = [says(write), "Not done.", says(write), "Done."]
    with (
        scripted_provider(tmp_path / "home", monkeypatch, script),
        running_server(tmp_path, tokens=ServerTokens(own_token().token)) as server,
    ):
        shown = cli.terminal(
            "connect",
            f"127.0.0.1:{server.port}",
            keys=[
                ("> ", "Write it.\n"),
                ("[y/N]", "\n"),
                ("Not done.", "Write it now.\n"),
                ("[y/N]", "y\n"),
                ("Done.", "/quit\n"),
            ],
        )
        assert shown.code == 0, shown.out
        assert (cli.project / "a.txt").read_text() == "words"


def test_lines_of_a_pipe_are_messages_and_stdout_has_only_the_answers(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["One.", "Two."]),
        running_server(tmp_path) as server,
    ):
        done = pipe(cli, server.port, "first\n\n//second")
        assert (done.code, done.out) == (0, "One.\nTwo.\n")
        listed = server.call(server.hub.store.sessions)
        assert [info.title for info in listed] == ["first"]


@pytest.mark.parametrize("failing", ["/model nothing", "/nonsense"])
def test_a_pipe_says_with_its_exit_code_that_a_command_failed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["One."]),
        running_server(tmp_path) as server,
    ):
        done = pipe(cli, server.port, f"{failing}\nfirst\n")
        assert (done.code, done.out) == (1, "One.\n")


@pytest.mark.parametrize("reply", [key_refused("openai"), says("half an", finish="length")])
def test_a_pipe_says_with_its_exit_code_that_an_answer_failed_or_was_cut_short(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: ProviderLine
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, [reply, "Two."]),
        running_server(tmp_path) as server,
    ):
        done = pipe(cli, server.port, "first\nsecond\n")
        assert done.code == 1
        assert done.out.endswith("Two.\n")


def test_a_store_that_failed_is_told_without_saying_where_it_is(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["One."]),
        running_server(tmp_path) as server,
    ):
        assert pipe(cli, server.port, "first\n").code == 0
        cli.store.rename(cli.store.with_name("away.db"))
        done = pipe(cli, server.port, "second\n")
        assert done.code == 1
        assert "store" in done.err
        assert str(tmp_path) not in done.err


def test_a_token_is_taken_from_the_environment_and_a_wrong_one_is_one_sentence(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = AccessTokens([AccessToken(Identity("me", "chat"), hash_token(TOKEN))])
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["One."]),
        running_server(tmp_path, tokens=tokens, require_token=True) as server,
    ):
        assert pipe(cli, server.port, "hi", token=TOKEN).out == "One.\n"
        for token in ("", "wrong" * 10):
            done = pipe(cli, server.port, "hi", token=token)
            assert done.code == 1
            assert "token" in done.err
            assert done.err.count("\n") == 1


def test_a_server_with_a_certificate_of_its_own_is_trusted_by_its_file(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path)
    with (
        scripted_provider(tmp_path / "home", monkeypatch, ["One."]),
        running_server(tmp_path, tls=certificate.http1) as server,
    ):
        done = pipe(cli, server.port, "hi", "--ca", str(certificate.file))
        assert (done.out, done.err.count("\n")) == ("One.\n", 1)
        untrusted = pipe(cli, server.port, "hi", "--tls")
        assert untrusted.code == 1
        assert "certificate" in untrusted.err


def test_no_server_is_one_sentence(cli: Cli) -> None:
    done = cli("connect", "127.0.0.1:1")
    assert done.code == 1
    assert "cannot connect to 127.0.0.1:1" in done.err
    assert "not an address" in cli("connect", "somewhere").err
