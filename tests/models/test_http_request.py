from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.errors import ModelError, Unreachable
from recollect.models.api_keys import ApiKey, redact
from recollect.models.http_model import HttpModel
from recollect.models.http_request import build_headers, build_url, display_host, find_secrets
from recollect.profiles import Endpoint
from recollect.settings import TransportSettings
from tests.models.server import HELLO, KEY, QUICK, chosen, events_of, http, serving, text_of

GEMINI = Endpoint(name="g", wire="gemini", url="https://host.example/base")
OPENAI = Endpoint(name="o", wire="openai", url="https://host.example/v1")


@given(st.text(st.characters(), max_size=40))
@example("../../../other:generateContent?key=x#")
@example("lone \ud800")
def test_a_models_name_cannot_lead_out_of_its_place_in_the_address(name: str) -> None:
    parts = urlsplit(build_url(GEMINI, GEMINI.url, name))
    assert (parts.hostname, parts.query, parts.fragment) == ("host.example", "alt=sse", "")
    assert parts.path.startswith("/base/v1beta/models/")
    assert parts.path.count("/") == 4


def test_the_settings_headers_win_whatever_their_case() -> None:
    transport = TransportSettings(headers={"AUTHORIZATION": "Basic abc"})
    headers = build_headers(OPENAI, ApiKey(KEY), transport)
    assert headers["authorization"] == "Basic abc"
    assert len({name.lower() for name in headers}) == len(headers)


def test_without_a_key_there_is_no_header_for_it() -> None:
    assert "authorization" not in build_headers(OPENAI, None, TransportSettings())


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://me:secret@host.example:8443/x", "host.example:8443"),
        ("http://[::1]:8080/v1", "[::1]:8080"),
        ("https://host.example", "host.example"),
        ("http://host:notaport", "an invalid address"),
        ("", "nowhere"),
    ],
)
def test_a_host_is_shown_without_credentials(url: str, host: str) -> None:
    assert display_host(url) == host


def test_secrets_in_headers_and_in_the_proxys_address_are_masked_as_well() -> None:
    transport = TransportSettings(
        proxy="http://me:pass%2Fword@proxy.example:3128",
        headers={"X-Gateway-Token": "Bearer gateway-token-1", "X-Team": "history"},
    )
    said = "gateway-token-1 pass%2Fword pass/word history"
    assert redact(said, find_secrets(OPENAI, transport)) == "[key] [key] [key] history"


def test_a_connection_that_nobody_accepts_ends_with_the_connect_timeout() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]  # they fill the queue
        try:
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))

            async def main() -> None:
                hurry = TransportSettings(connect_timeout=0.2, read_timeout=0.2, retries=0)
                async with HttpModel(chosen(f"http://127.0.0.1:{port}"), hurry) as model:
                    await events_of(model)

            with pytest.raises(Unreachable, match=r"within 0\.2 seconds|for 0\.2 seconds"):
                asyncio.run(main())
        finally:
            for one in waiting:
                one.close()


def test_a_local_server_is_located_anew_for_each_attempt() -> None:
    async def main() -> None:
        async with serving(http(b"", "503 Busy")) as old, serving(http(HELLO)) as new:
            places = [(old.url, "first-secret"), (new.url, "second-secret")]

            async def locate() -> tuple[str, str]:
                return places.pop(0)

            async with HttpModel(chosen(""), QUICK, locate=locate) as model:
                assert text_of(await events_of(model)) == "hello"
            assert old.asked[0].headers["authorization"] == "Bearer first-secret"
            assert new.asked[0].headers["authorization"] == "Bearer second-secret"

    asyncio.run(main())


def test_a_local_server_that_cannot_be_started_says_why() -> None:
    async def locate() -> tuple[str, str]:
        raise ModelError("no weights")

    async def main() -> None:
        async with HttpModel(chosen(""), QUICK, locate=locate) as model:
            await events_of(model)

    with pytest.raises(ModelError, match="no weights"):
        asyncio.run(main())
