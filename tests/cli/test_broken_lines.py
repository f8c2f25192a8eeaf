"""A secure connection that breaks while it is made is made again; a wrong address is not."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.cli.model_server import ENV, NAME, readable
from tests.cli.runner import PATIENCE, Cli, Result
from tests.models.server import HELLO, http
from tests.models.tls import Certificate, make_certificate

Break = Callable[[socket.socket], None]


def reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def leave(client: socket.socket) -> None:
    """Closes without a word."""


def alert(number: int) -> Break:
    return lambda client: client.sendall(bytes([21, 3, 3, 0, 2, 2, number]))


BAD_RECORD_MAC, HANDSHAKE_FAILURE = alert(20), alert(40)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@contextmanager
def serving(context: ssl.SSLContext, broken: Break) -> Iterator[tuple[int, list[str]]]:
    """Breaks off the first connection after the client's first words and answers on the others;
    the port, and what came of each connection."""
    seen: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)

        def serve() -> None:
            with contextlib.suppress(OSError):  # the listener is closed, the client went away
                while True:
                    client, _ = listener.accept()
                    with client:
                        client.settimeout(PATIENCE)
                        _answer(client, context, broken, seen)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1], seen
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)


def _answer(client: socket.socket, context: ssl.SSLContext, broken: Break, seen: list[str]) -> None:
    if not seen:
        seen.append("broken")
        client.recv(65_536)
        broken(client)
        return
    with context.wrap_socket(client, server_side=True) as secure:
        request = b""
        while b"\r\n\r\n" not in request or not request.endswith(b"}"):
            request += secure.recv(65_536)
        seen.append("answered")
        secure.sendall(http(HELLO))


def ask(cli: Cli, certificate: Certificate, port: int) -> Result:
    cli.home.mkdir(exist_ok=True)
    (cli.home / "settings.toml").write_text(
        f'model = "{NAME}"\n[transport]\nretries = 1\nlongest_wait = 0.01\n'
        f'[models.{NAME}]\nurl = "https://localhost:{port}"\nkey = "MY_KEY"\n'
    )
    trusted = {"SSL_CERT_FILE": str(certificate.file)}
    done = cli("-p", "hi", env={**ENV, **trusted})
    readable(done)
    return done


@pytest.mark.parametrize("broken", [reset, leave, BAD_RECORD_MAC])
def test_a_secure_connection_that_breaks_while_it_is_made_is_made_again(
    cli: Cli, certificate: Certificate, broken: Break
) -> None:
    with serving(certificate.http1, broken) as (port, seen):
        done = ask(cli, certificate, port)
    assert (done.code, done.out) == (0, "hello\n")
    assert seen == ["broken", "answered"]


def test_a_server_that_agrees_on_no_secure_connection_is_not_asked_twice(
    cli: Cli, certificate: Certificate
) -> None:
    with serving(certificate.http1, HANDSHAKE_FAILURE) as (port, seen):
        done = ask(cli, certificate, port)
    assert (done.code, seen) == (1, ["broken"])
    assert "no secure connection could be agreed on (TLS)" in done.err


def test_a_port_where_nothing_answers_is_not_asked_twice(
    cli: Cli, certificate: Certificate
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    done = ask(cli, certificate, port)
    assert done.code == 1
    assert "the connection was refused" in done.err
    assert "retrying" not in done.err
