"""Which proxy carries a request, and how a request gets through it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping

import pytest

from recollect.errors import Unreachable
from recollect.models.http_errors import BROKEN
from recollect.models.http_model import HttpModel
from recollect.settings import TransportSettings
from tests.models.h2_server import serving_http2
from tests.models.posting import opened, post, run, why_it_fails
from tests.models.proxy import port_of, proxying
from tests.models.server import HELLO, KEY, QUICK, chosen, events_of, http, serving, text_of
from tests.models.socks_server import socks_proxying
from tests.models.tls import Certificate

_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def through(url: str) -> TransportSettings:
    return TransportSettings(proxy=url, connect_timeout=5.0, read_timeout=5.0, retries=0)


# --- HTTP proxies --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["http", "https"])
def test_a_plain_request_goes_through_a_proxy_with_its_whole_address(
    kind: str, trusted: Certificate
) -> None:
    async def main() -> None:
        over = trusted.http1 if kind == "https" else None
        async with serving(http(b"far")) as server, proxying(server.port, over) as proxy:
            settings = through(f"{kind}://me:pass%2Fword@localhost:{proxy.port}")
            async with opened(settings) as client:
                for _ in range(2):
                    assert (await post(client, "http://model.invalid:81/a?b")).body == b"far"
        assert len(proxy.heads) == 1  # one connection for both
        assert proxy.heads[0].startswith("POST http://model.invalid:81/a?b HTTP/1.1\r\n")
        assert "Proxy-Authorization: Basic bWU6cGFzcy93b3Jk\r\n" in proxy.heads[0]
        assert server.asked[0].headers["host"] == "model.invalid:81"

    run(main())


@pytest.mark.parametrize("kind", ["http", "https"])
def test_a_secure_request_goes_through_a_tunnel_of_which_the_proxy_reads_nothing(
    kind: str, trusted: Certificate
) -> None:
    async def main() -> None:
        over = trusted.http1 if kind == "https" else None
        async with serving_http2(trusted) as server, proxying(server.port, over) as proxy:
            settings = through(f"{kind}://me:pass-word@localhost:{proxy.port}")
            async with opened(settings) as client:
                headers = {"x-key": KEY}
                got = await post(client, "https://model.invalid/v1", headers=headers)
                assert got == (200, HELLO, "HTTP/2")
        [head] = proxy.heads
        assert head.startswith("CONNECT model.invalid:443 HTTP/1.1\r\nHost: model.invalid:443\r\n")
        assert "Proxy-Authorization: Basic bWU6cGFzcy13b3Jk\r\n" in head
        assert KEY not in head

    run(main())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (http(b"no", "407 No"), "the proxy 127.0.0.1:{} refused"),
        (http(b"no", "302 Found"), "the proxy 127.0.0.1:{} refused"),
        (b"nonsense\r\n\r\n", BROKEN),
        (b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 200_000, BROKEN),
    ],
)
def test_a_proxy_that_refuses_a_tunnel_is_distinguished_from_one_that_breaks(
    answer: bytes, why: str
) -> None:
    async def main() -> None:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer)
            writer.close()

        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            settings = through(f"http://me:pass-word@127.0.0.1:{port_of(server)}")
            got = await why_it_fails("https://model.invalid", settings)
            assert got == why.format(port_of(server))

    run(main())


# --- SOCKS ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["socks5", "socks5h"])
def test_a_request_goes_through_a_socks_proxy_which_resolves_the_host(
    kind: str, trusted: Certificate
) -> None:
    async def main() -> None:
        async with (
            serving(http(b"far"), over=trusted.http1) as server,
            socks_proxying(server.port) as proxy,
        ):
            settings = through(f"{kind}://me:pass-word@127.0.0.1:{proxy.port}")
            async with opened(settings) as client:
                assert (await post(client, "https://model.invalid/v1")).body == b"far"
        assert proxy.hosts == ["model.invalid"]
        assert proxy.logins == [("me", "pass-word")]

    run(main())


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"\x05\xff"])
def test_a_socks_proxy_that_speaks_something_else_is_one_clear_failure(answer: bytes) -> None:
    async def main() -> str:
        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(answer)
            writer.close()

        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            proxy = f"socks5://127.0.0.1:{port_of(server)}"
            return await why_it_fails("https://model.invalid", through(proxy))

    why = run(main())
    assert why == BROKEN or why.endswith(" refused")


def test_without_its_package_a_socks_proxy_names_the_extra_to_install() -> None:
    program = """
import sys
sys.modules["socksio"] = None  # as if it were not installed
from tests.models.posting import run, why_it_fails
from tests.models.test_proxies import through
print(run(why_it_fails("https://model.invalid", through("socks5://me:secret@proxy.example:1080"))))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == (
        "the proxy proxy.example:1080 cannot be used: SOCKS proxies need an extra package; "
        "run `pip install 'recollect[socks]'`"
    )


# --- which proxy ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "url", "used"),
    [
        ({}, "http://model.invalid", False),
        ({"HTTP_PROXY": "http://{}"}, "http://model.invalid", True),
        ({"http_proxy": "{}"}, "http://model.invalid", True),
        ({"ALL_PROXY": "http://{}"}, "http://model.invalid", True),
        ({"HTTPS_PROXY": "http://{}"}, "http://model.invalid", False),
        ({"HTTP_PROXY": "http://{}", "NO_PROXY": "a,model.invalid"}, "http://model.invalid", False),
        ({"HTTP_PROXY": "http://{}", "NO_PROXY": "*"}, "http://model.invalid", False),
        ({"HTTP_PROXY": "http://{}", "NO_PROXY": "10.0.0.0/8"}, "http://model.invalid", True),
        # a web server puts a client's `Proxy:` header into HTTP_PROXY of the programs it runs
        ({"HTTP_PROXY": "http://{}", "REQUEST_METHOD": "GET"}, "http://model.invalid", False),
    ],
)
def test_a_proxy_of_the_environment_carries_what_is_meant_for_it(
    environment: Mapping[str, str], url: str, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with serving(http(b"far")) as server, proxying(server.port) as proxy:
            for name, value in environment.items():
                monkeypatch.setenv(name, value.format(f"127.0.0.1:{proxy.port}"))
            if used:
                async with opened() as client:
                    assert (await post(client, url)).body == b"far"
            else:
                why = await why_it_fails(url)
                assert why == "the host is unknown" or "no connection" in why
            assert len(proxy.heads) == used

    run(main())


def test_the_proxy_of_the_settings_comes_before_those_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "*")

    async def main() -> None:
        async with serving(http(HELLO)) as server, proxying(server.port) as proxy:
            settings = through(f"http://127.0.0.1:{proxy.port}")
            async with HttpModel(chosen("http://model.invalid/v1"), settings) as model:
                assert text_of(await events_of(model)) == "hello"
            assert len(proxy.heads) == 1

    run(main())


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_this_machine_is_never_reached_through_a_proxy(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    async def main() -> None:
        async with serving(http(b"near")) as server:
            for settings in (QUICK, through("http://127.0.0.1:1")):
                async with opened(settings) as client:
                    assert (await post(client, f"http://{host}:{server.port}")).body == b"near"

    run(main())


@pytest.mark.parametrize("proxy", ["ftp://proxy.example", "http://[", "http://:secret@"])
def test_a_proxy_of_the_environment_that_cannot_be_used_is_said_to_be_so(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    why = run(why_it_fails("http://model.invalid"))
    assert "secret" not in why
    assert why


def test_a_proxy_that_refuses_is_named_without_its_password() -> None:
    async def main() -> None:
        refused = http(b"", "407 Proxy Authentication Required", "text/plain")
        async with serving(refused) as proxy:
            settings = through(f"http://me:pass-word@127.0.0.1:{proxy.port}")
            async with HttpModel(chosen("https://model.invalid/v1"), settings) as model:
                with pytest.raises(Unreachable) as caught:
                    await events_of(model)
        assert f"the proxy 127.0.0.1:{proxy.port} refused" in str(caught.value)
        assert "pass-word" not in str(caught.value)

    run(main())
