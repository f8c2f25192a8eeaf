"""Addresses, connections and TLS of the HTTP client, on real sockets."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.errors import Unreachable
from recollect.models.connecting import (
    BadAddress,
    Broken,
    NoConnection,
    TooSlow,
    in_turn,
    open_first,
    open_pipe,
    place_of,
)
from recollect.models.http_model import HttpModel
from recollect.models.http_request import authorities
from tests.models.asking import client, post, run
from tests.models.proxy import Certificate, certificate, port_of, proxying, secure_greeting
from tests.models.server import KEY, QUICK, chosen, events_of, http, serving, text_of


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("certificate"))


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.transport.abort()


# --- addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "host", "port", "authority", "target"),
    [
        ("http://host.example", "host.example", 80, "host.example", "/"),
        ("HTTPS://Host.Example:443/a", "host.example", 443, "host.example", "/a"),
        ("http://host.example:8080/a?b=c", "host.example", 8080, "host.example:8080", "/a?b=c"),
        ("http://[::1]:8080/v1", "::1", 8080, "[::1]:8080", "/v1"),
        ("https://[2001:DB8::1]/v1", "2001:db8::1", 443, "[2001:db8::1]", "/v1"),
        ("http://bücher.example/", "xn--bcher-kva.example", 80, "xn--bcher-kva.example", "/"),
        ("http://h/ä b%2F?q=ü#part", "h", 80, "h", "/%C3%A4%20b%2F?q=%C3%BC"),
    ],
)
def test_an_address_is_taken_apart(
    url: str, host: str, port: int, authority: str, target: str
) -> None:
    place = place_of(url)
    assert (place.host, place.port, place.authority) == (host, port, authority)
    assert place.target == target


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host.example",
        "ftp://host.example",
        "http://",
        "http://host:notaport",
        "http://host:99999",
        "http://[::1",
        "http://ho st/",
        "http://host/a\r\nX: y",
        "http://host\n/",
        "http://host/\x00",
        "http://.host/",
        "http://ho%0ast/",
        "http://host/\ud800",
        "http://\ud800/",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadAddress):
        place_of(url)


@given(st.one_of(st.text(max_size=60), st.text(max_size=60).map("http://".__add__)))
@example("http://a..b/")
@example("http://" + "a" * 64 + "/")
def test_any_text_is_an_address_that_fits_on_a_line_or_none(url: str) -> None:
    try:
        place = place_of(url)
    except BadAddress:
        return
    assert re.fullmatch(r"[!-~]+", place.target)
    assert re.fullmatch(r"[0-9a-z_.:-]+", place.host)


def test_a_host_name_that_cannot_be_looked_up_is_a_bad_address() -> None:
    async def main(host: str) -> None:
        with pytest.raises(BadAddress):
            await post(client(), f"http://{host}/")

    for host in ("a..b", "a" * 64 + ".example"):
        run(main(host))


def test_a_login_in_an_address_goes_into_a_header_and_shows_nowhere() -> None:
    place = place_of("http://me:pass%2Fword@host.example/")
    assert place.login is not None
    assert place.login.reveal() == "Basic bWU6cGFzcy93b3Jk"
    assert "bWU6" not in repr(place)
    assert "pass" not in repr(place)

    async def main() -> None:
        async with serving(http(b"ok")) as server:
            asked = client()
            await post(asked, server.url.replace("//", "//me:pass%2Fword@") + "/x")
            await asked.aclose()
        assert server.asked[0].line == "POST /x HTTP/1.1"
        assert server.asked[0].headers["authorization"] == "Basic bWU6cGFzcy93b3Jk"
        assert server.asked[0].headers["host"] == f"127.0.0.1:{server.port}"

    run(main())


def test_an_ipv6_address_is_reached_and_named_in_brackets() -> None:
    async def main() -> None:
        heads: list[bytes] = []

        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(http(b"six"))
            writer.close()

        try:
            server = await asyncio.start_server(greet, "::1", 0)
        except OSError:
            pytest.skip("no IPv6 on this machine")
        async with server:
            asked = client()
            url = f"http://[::1]:{port_of(server)}/"
            assert (await post(asked, url)).body == b"six"
            assert b"Host: [::1]:%d\r\n" % port_of(server) in heads[0]
            await asked.aclose()

    run(main())


def test_where_nobody_listens_the_cause_is_told_whichever_addresses_the_host_has() -> None:
    async def main() -> None:
        async with serving(b"") as server:
            port = server.port
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(NoConnection) as caught:
                await post(client(), f"http://{host}:{port}/")
            assert isinstance(caught.value.__cause__, ConnectionRefusedError)

    run(main())


@given(st.lists(st.sampled_from(["1.1.1.1", "1.1.1.2", "::1", "::2", "::3"]), max_size=8))
def test_addresses_are_tried_in_turn_of_their_kinds_and_none_is_lost(hosts: list[str]) -> None:
    turns = in_turn(hosts)
    assert sorted(turns) == sorted(hosts)
    assert turns[:1] == hosts[:1]
    kinds = [":" in host for host in turns]
    both = 2 * min(kinds.count(True), kinds.count(False))
    assert all(one != other for one, other in pairwise(kinds[:both]))


def test_of_a_host_with_several_addresses_the_first_that_answers_is_taken() -> None:
    async def main() -> None:
        second, third = "127.0.0.2", "127.0.0.3"
        try:
            server = await asyncio.start_server(silence, third, 0)
        except OSError:
            pytest.skip("loopback has one address here")
        port = port_of(server)
        with socket.socket() as full:  # accepts nothing: its queue is full
            full.bind((second, port))
            full.listen(0)
            waiting = [socket.socket() for _ in range(4)]
            for one in waiting:
                one.setblocking(False)
                one.connect_ex((second, port))
            started = time.monotonic()
            async with server:
                pipe = await open_first(["127.0.0.1", second, third], port, 5.0)
                assert time.monotonic() - started < 1
                await pipe.write(b"x")
                pipe.abort()
            for one in waiting:
                one.close()
        with pytest.raises(ConnectionRefusedError):
            await open_first(["127.0.0.1", third], port, 5.0)

    run(main())


def test_a_connection_at_rest_ends_by_itself() -> None:
    async def main() -> None:
        gone = asyncio.Event()

        async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            gone.set()
            writer.transport.abort()

        async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
            pipe = await open_pipe(place_of(f"http://127.0.0.1:{port_of(server)}"), 5.0)
            pipe.rest(0.05)
            assert pipe.rise()
            pipe.rest(0.05)
            await asyncio.wait_for(gone.wait(), 2)
            assert not pipe.rise()
            with pytest.raises(Broken):
                await pipe.read()
            with pytest.raises(Broken):
                await pipe.write(b"x")

    run(main())


# --- TLS -----------------------------------------------------------------------------------------


def _ask_securely(paper: Certificate, host: str) -> str:
    async def main() -> str:
        server = await asyncio.start_server(secure_greeting, "127.0.0.1", 0, ssl=paper.serving)
        async with server:
            url = f"https://{host}:{port_of(server)}/v1"
            async with HttpModel(chosen(url), QUICK) as asked:
                return text_of(await events_of(asked))

    return run(main())


def test_a_certificate_that_nobody_vouches_for_is_refused(paper: Certificate) -> None:
    with pytest.raises(
        Unreachable, match=r"its certificate is not trusted \(self.signed"
    ) as caught:
        _ask_securely(paper, "localhost")
    assert KEY not in str(caught.value)


def test_the_authorities_of_the_environment_are_trusted(
    paper: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(paper.file))
    assert _ask_securely(paper, "localhost") == "hello"
    assert _ask_securely(paper, "127.0.0.1") == "hello"


def test_a_certificate_for_another_host_is_refused(paper: Certificate) -> None:
    async def main() -> None:
        server = await asyncio.start_server(secure_greeting, "127.0.0.1", 0, ssl=paper.serving)
        async with server, proxying(port_of(server)) as proxy:
            asked = client(paper.trusting, {"all": f"127.0.0.1:{proxy.port}"})
            with pytest.raises(NoConnection) as caught:
                await post(asked, "https://other.invalid")
            assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)

    run(main())


def test_authorities_that_cannot_be_read_are_told(
    paper: Certificate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nothing.pem"))
    with pytest.raises(Unreachable, match="SSL_CERT_FILE or SSL_CERT_DIR names cannot be read"):
        _ask_securely(paper, "localhost")


def test_http_1_1_is_agreed_on_and_the_connection_is_used_again(
    paper: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(paper.file))
    trust = authorities()
    assert trust.minimum_version >= ssl.TLSVersion.TLSv1_2

    async def main() -> None:
        served: list[object] = []

        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for _ in range(2):
                await reader.readuntil(b"\r\n\r\n{}")
                served.append(writer)
                agreed = writer.get_extra_info("ssl_object").selected_alpn_protocol()
                writer.write(http(agreed.encode()))
            writer.transport.abort()

        async with await asyncio.start_server(greet, "127.0.0.1", 0, ssl=paper.serving) as server:
            asked, url = client(trust), f"https://localhost:{port_of(server)}"
            assert (await post(asked, url)).body == b"http/1.1"
            assert (await post(asked, url)).body == b"http/1.1"
            await asked.aclose()
        assert served[0] is served[1]

    run(main())


@pytest.mark.parametrize("scheme", ["https", "proxied"])
def test_who_accepts_and_then_says_nothing_has_the_time_for_connecting(
    scheme: str, paper: Certificate
) -> None:
    async def main() -> None:
        async with await asyncio.start_server(silence, "127.0.0.1", 0) as server:
            url, proxies = f"https://127.0.0.1:{port_of(server)}", {}
            if scheme == "proxied":
                url, proxies = "https://model.invalid", {"all": f"127.0.0.1:{port_of(server)}"}
            with pytest.raises(TooSlow) as caught:
                await post(client(paper.trusting, proxies, connect=0.1), url)
            assert caught.value.connecting

    run(main())
