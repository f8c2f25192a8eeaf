"""Which proxy is used, and how a request gets through it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.errors import Unreachable
from recollect.models.connecting import BadProxy, Broken, Place, ProxyRefused, Way, place_of
from recollect.models.http_model import HttpModel
from recollect.models.http_request import environment_proxies, way_to
from recollect.settings import TransportSettings
from tests.models.asking import client, post, run
from tests.models.proxy import Certificate, certificate, port_of, proxying, secure_greeting
from tests.models.server import HELLO, KEY, chosen, events_of, http, serving


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("certificate"))


@pytest.mark.parametrize("kind", ["http", "https"])
def test_a_plain_request_goes_through_a_proxy_with_its_whole_address(
    kind: str, paper: Certificate
) -> None:
    async def main() -> None:
        over = paper.serving if kind == "https" else None
        async with serving(http(b"far")) as server, proxying(server.port, over) as proxy:
            proxies = {"http": f"{kind}://me:pass%2Fword@localhost:{proxy.port}"}
            asked = client(paper.trusting, proxies)
            assert (await post(asked, "http://model.invalid:81/a?b")).body == b"far"
            assert (await post(asked, "http://model.invalid:81/a?b")).body == b"far"
            await asked.aclose()
        assert len(proxy.heads) == 1  # one connection for both
        assert proxy.heads[0].startswith("POST http://model.invalid:81/a?b HTTP/1.1\r\n")
        assert "Proxy-Authorization: Basic bWU6cGFzcy93b3Jk\r\n" in proxy.heads[0]
        assert server.asked[0].headers["host"] == "model.invalid:81"

    run(main())


@pytest.mark.parametrize("kind", ["http", "https"])
def test_a_secure_request_goes_through_a_tunnel_of_which_the_proxy_reads_nothing(
    kind: str, paper: Certificate
) -> None:
    async def main() -> None:
        over = paper.serving if kind == "https" else None
        server = await asyncio.start_server(secure_greeting, "127.0.0.1", 0, ssl=paper.serving)
        async with server, proxying(port_of(server), over) as proxy:
            proxies = {"https": f"{kind}://me:pass-word@localhost:{proxy.port}"}
            asked = client(paper.trusting, proxies)
            headers = [("X-Key", KEY)]
            assert (await post(asked, "https://model.invalid/v1", headers=headers)).body == HELLO
            await asked.aclose()
        [head] = proxy.heads
        assert head.startswith("CONNECT model.invalid:443 HTTP/1.1\r\nHost: model.invalid:443\r\n")
        assert "Proxy-Authorization: Basic bWU6cGFzcy13b3Jk\r\n" in head
        assert KEY not in head

    run(main())


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (http(b"no", "407 No"), ProxyRefused),
        (http(b"no", "302 Found"), ProxyRefused),
        (b"HTTP/1.1 200 OK\r\n\r\nearly words", Broken),
        (b"nonsense\r\n\r\n", Broken),
        (b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 200_000, Broken),
    ],
)
def test_a_proxy_that_opens_no_tunnel_is_told_from_one_that_breaks(
    answer: bytes, error: type[Exception]
) -> None:
    async def main() -> None:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer)
            writer.close()

        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            proxies = {"all": f"http://127.0.0.1:{port_of(server)}"}
            with pytest.raises(error):
                await post(client(None, proxies), "https://model.invalid")

    run(main())


def test_a_socks_proxy_is_said_to_be_unsupported() -> None:
    async def main() -> None:
        transport = TransportSettings(proxy="socks5://me:pass-word@proxy.example:1080")
        async with HttpModel(chosen("https://model.invalid/v1"), transport) as asked:
            await events_of(asked)

    with pytest.raises(Unreachable, match="only http:// and https:// proxies") as caught:
        run(main())
    assert "proxy.example:1080 cannot be used" in str(caught.value)
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, {}),
        ({"HTTP_PROXY": "a", "http_proxy": "b"}, {"http": "b"}),
        ({"HTTPS_PROXY": "a", "https_proxy": ""}, {}),
        ({"ALL_PROXY": "a", "NO_PROXY": "x,y"}, {"all": "a", "no": "x,y"}),
        ({"HTTP_PROXY": "a", "REQUEST_METHOD": "GET"}, {}),
        ({"http_proxy": "a", "REQUEST_METHOD": "GET"}, {"http": "a"}),
        ({"FTP_PROXY": "a"}, {}),
    ],
)
@pytest.mark.skipif("sys.platform in ('darwin', 'win32')", reason="the system has a say there")
def test_proxies_of_the_environment(
    environment: Mapping[str, str], found: Mapping[str, str]
) -> None:
    assert environment_proxies(environment) == found


@pytest.mark.parametrize(
    ("no", "url", "direct"),
    [
        ("", "http://host.example", False),
        ("*", "http://host.example", True),
        ("example", "http://host.example", True),
        ("host.example", "http://HOST.example", True),
        (" other , host.example ", "http://a.host.example", True),
        ("host.example", "http://myhost.example", False),
        (".host.example", "http://a.host.example", True),
        (".host.example", "http://host.example", False),
        ("*.host.example", "http://a.host.example", True),
        ("host.example:80", "http://host.example", True),
        ("host.example:81", "http://host.example", False),
        ("https://host.example", "http://host.example", False),
        ("http://host.example", "http://host.example", True),
        ("10.0.0.1", "http://10.0.0.1", True),
        ("10.0.0.1", "http://10.0.0.11", False),
        ("10.0.0.0/8", "http://10.2.3.4", True),
        ("10.0.0.0/8", "http://11.2.3.4", False),
        ("10.0.0.0/8", "http://host.example", False),
        ("2001:db8::1", "http://[2001:db8::1]", True),
        ("", "http://localhost:8080", True),
        ("", "http://127.0.0.1:8080", True),
        ("", "http://[::1]:8080", True),
    ],
)
def test_who_is_reached_without_a_proxy(no: str, url: str, direct: bool) -> None:
    way = way_to(place_of(url), {"all": "proxy.example:3128", "no": no})
    assert (way.proxy is None) == direct
    if way.proxy is not None:
        assert way.proxy.origin == ("http", "proxy.example", 3128)


def test_the_proxy_of_the_scheme_comes_before_the_one_for_all() -> None:
    proxies = {"all": "http://all.example", "https": "https://secure.example"}
    secure, plain = (way_to(place_of(f"{s}://host.example"), proxies) for s in ("https", "http"))
    assert secure.proxy is not None
    assert plain.proxy is not None
    assert (secure.proxy.host, plain.proxy.host) == ("secure.example", "all.example")


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(["host.example", "10.1.2.3"]))
@example("x", "[::1]:8,/,10.0.0.0/99,::/0,[", "10.1.2.3")
def test_whatever_stands_in_the_environment_gives_a_way_or_a_bad_proxy(
    proxy: str, no: str, host: str
) -> None:
    place = Place("http", host, 80, "/", None)
    try:
        way = way_to(place, {"all": proxy, "no": no})
    except BadProxy:
        return
    assert isinstance(way, Way)
    assert way.place == place
