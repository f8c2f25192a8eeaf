"""Calling a model over HTTP, when something goes wrong: one clear sentence, and no key in it."""

from __future__ import annotations

import asyncio
import time

import pytest

from recollect.codecs.wire_protocol import Delta
from recollect.entries import Text
from recollect.errors import (
    ApiKeyRefused,
    BadReply,
    ContextOverflow,
    ProviderBusy,
    ProviderFailed,
    Unreachable,
)
from recollect.models.http_model import HttpModel
from recollect.models.model_protocol import partial_of
from recollect.settings import TransportSettings
from tests.models.server import (
    DONE,
    END,
    HELLO,
    KEY,
    QUICK,
    VARIABLE,
    break_off,
    call_model,
    chosen,
    event,
    events_of,
    fails,
    final,
    http,
    plays,
    refused,
    retries,
    serving,
    text_of,
)

PAGE = b"<!DOCTYPE html><html><head><title>Welcome</title></head></html>"
OVERLOADED = http(b'{"error":{"message":"overloaded"}}', "503 Busy", "application/json")


async def stall(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


async def never_end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    piece = event("more ")
    while True:
        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        await writer.drain()
        await asyncio.sleep(0.005)


# --- retried -----------------------------------------------------------------------------------


def test_too_many_requests_are_retried_after_the_delay_the_provider_requests() -> None:
    started = time.monotonic()
    slow = TransportSettings(retries=2, longest_wait=5.0)
    events, server = call_model(
        refused("429 Too Many Requests", "slow down", "Retry-After-Ms: 200"),
        http(HELLO),
        transport=slow,
    )
    assert text_of(events) == "hello"
    [again] = retries(events)
    assert 0.2 <= again.delay <= 0.7
    assert (again.attempt, again.shown, again.reason) == (1, False, "slow down (429)")
    assert time.monotonic() - started >= 0.2
    assert len(server.asked) == 2


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_a_temporary_failure_is_retried(status: int) -> None:
    events, _ = call_model(refused(f"{status} Sorry", "not now"), http(HELLO))
    assert text_of(events) == "hello"
    assert len(retries(events)) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_permanent_failure_is_not_retried(status: int) -> None:
    async def main() -> None:
        async with serving(refused(f"{status} No", "never")) as server:
            async with HttpModel(chosen(server.url), QUICK) as model:
                with pytest.raises(ProviderFailed, match="never") as caught:
                    await events_of(model)
            assert caught.value.status == status
            assert len(server.asked) == 1

    asyncio.run(main())


def test_after_the_last_attempt_the_error_counts_them() -> None:
    error = fails(OVERLOADED)
    assert isinstance(error, ProviderBusy)
    assert error.attempts == 3
    assert str(error) == "the provider refused (503): overloaded; tried 3 times; try again later"


def test_an_empty_account_is_not_retried() -> None:
    error = fails(refused("429 No", "insufficient_quota"), http(HELLO))
    assert isinstance(error, ProviderBusy)
    assert error.attempts == 1


def test_a_stream_that_breaks_after_text_is_retried_and_voids_the_text() -> None:
    events, _ = call_model(plays(event("half a"), then=break_off), http(HELLO))
    assert events[0] == Delta("text", "half a")
    [again] = retries(events)
    assert again.shown
    assert final(events).parts == (Text(text="hello"),)


def test_a_stream_that_breaks_every_time_leaves_what_had_arrived_on_the_error() -> None:
    error = fails(plays(event("half a"), then=break_off))
    assert isinstance(error, Unreachable)
    assert "broke" in error.why
    partial = partial_of(error)
    assert partial is not None
    assert partial.parts == (Text(text="half a"),)
    assert (partial.finish, partial.model) == ("", "gpt-4o")


def test_a_temporary_error_inside_the_stream_is_retried() -> None:
    busy = b'data: {"error":{"message":"overloaded","type":"overloaded_error"}}\n\n'
    events, _ = call_model(http(event("so ") + busy), http(HELLO))
    [again] = retries(events)
    assert again.shown
    assert text_of(events[2:]) == "hello"


@pytest.mark.parametrize("stream", [b"", DONE, event(), b": ping\n\n"])
def test_an_empty_stream_is_retried_and_then_reported(stream: bytes) -> None:
    events, _ = call_model(http(stream), http(HELLO))
    assert len(retries(events)) == 1
    error = fails(http(stream))
    assert isinstance(error, BadReply)


def test_half_a_json_at_the_end_is_retried_and_then_reported() -> None:
    half = event("so ") + event("far")[:30]
    events, _ = call_model(http(half), http(HELLO))
    assert text_of(events[-3:]) == "hello"
    error = fails(http(half))
    assert isinstance(error, BadReply)
    assert partial_of(error) is not None


def test_a_call_that_was_cut_off_is_never_a_reply() -> None:
    function = b'{"name":"rm","arguments":"{\\"path\\": \\""}'
    delta = b'{"tool_calls":[{"index":0,"id":"c1","function":' + function + b"}]}"
    cut = b'data: {"choices":[{"index":0,"delta":' + delta + b',"finish_reason":null}]}\n\n'
    assert "broke off before its end" in str(fails(http(cut)))


# --- not retried -------------------------------------------------------------------------------


def test_a_web_page_is_no_reply() -> None:
    for kind in ("text/html", "text/event-stream"):
        error = fails(http(PAGE, kind=kind))
        assert isinstance(error, BadReply)
        assert "web page" in error.what


def test_a_refused_key_names_its_variable() -> None:
    error = fails(refused("401 Unauthorized", f"Incorrect API key provided: {KEY}"))
    assert isinstance(error, ApiKeyRefused)
    assert error.variable == VARIABLE
    assert f"check the key in {VARIABLE}" in str(error)


def test_an_overflow_carries_the_limit_that_the_provider_named() -> None:
    said = "This model's maximum context length is 8192 tokens. However, you requested 9000."
    error = fails(refused("400 Bad Request", said))
    assert isinstance(error, ContextOverflow)
    assert error.limit == 8_192


def test_a_redirect_is_not_followed_and_says_where_it_leads() -> None:
    async def main() -> None:
        async with serving(http(HELLO)) as elsewhere:
            where = f"Location: {elsewhere.url}/chat/completions"
            async with (
                serving(http(b"", "307 Moved", "text/plain", [where])) as server,
                HttpModel(chosen(server.url), QUICK) as model,
            ):
                with pytest.raises(ProviderFailed, match="it redirects to") as caught:
                    await events_of(model)
            assert f":{elsewhere.port}/" in str(caught.value)
            assert elsewhere.asked == []

    asyncio.run(main())


def test_a_host_that_does_not_exist_is_unreachable() -> None:
    async def main() -> None:
        async with HttpModel(chosen("http://nowhere.invalid/v1"), QUICK) as model:
            await events_of(model)

    with pytest.raises(Unreachable) as caught:
        asyncio.run(main())
    assert caught.value.where == "nowhere.invalid"
    assert caught.value.why


def test_a_refused_connection_is_unreachable_and_shows_no_credentials() -> None:
    async def main() -> int:
        async with serving(b"") as server:
            port = server.port
        async with HttpModel(chosen(f"http://me:hidden@127.0.0.1:{port}"), QUICK) as model:
            with pytest.raises(Unreachable) as caught:
                await events_of(model)
        assert caught.value.where == f"127.0.0.1:{port}"
        assert "refused" in caught.value.why
        assert "hidden" not in str(caught.value)
        return port

    asyncio.run(main())


def test_plain_http_where_tls_is_expected_is_unreachable() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, HttpModel(chosen(f"https://127.0.0.1:{port}"), QUICK) as model:
            with pytest.raises(Unreachable, match="TLS"):
                await events_of(model)

    asyncio.run(main())


def test_silence_ends_with_the_read_timeout() -> None:
    quiet = TransportSettings(read_timeout=0.5, retries=0)
    error = fails(plays(event("one "), then=stall), transport=quiet)
    assert "nothing arrived for 0.5 seconds" in str(error)
    assert partial_of(error) is not None


def test_a_stream_without_an_end_ends_with_the_total_timeout() -> None:
    short = TransportSettings(total_timeout=0.5, retries=5)
    started = time.monotonic()
    error = fails(plays(event("one "), then=never_end), transport=short)
    assert "not complete after 0.5 seconds" in str(error)
    assert time.monotonic() - started < 60
    assert partial_of(error) is not None


def test_a_delay_beyond_the_total_timeout_is_not_begun() -> None:
    short = TransportSettings(total_timeout=600.0, longest_wait=3_600.0)
    started = time.monotonic()
    assert isinstance(
        fails(refused("429 No", "wait", "Retry-After: 3000"), transport=short), ProviderBusy
    )
    assert time.monotonic() - started < 60


def test_a_line_of_five_megabytes_is_read() -> None:
    events, _ = call_model(http(event("x" * 5_000_000) + event(finish="stop")))
    assert len(text_of(events)) == 5_000_000


def test_of_an_endless_error_page_only_the_beginning_is_read() -> None:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 No\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"no " * 10_000)
            await writer.drain()

    error = fails(play)
    assert isinstance(error, ProviderFailed)
    assert len(str(error)) < 1_000


def test_a_server_that_does_not_speak_http_is_unreachable() -> None:
    assert isinstance(fails(b"220 smtp.example.org ESMTP\r\n\r\n"), Unreachable)


def test_reading_the_events_to_the_end_of_a_chunked_stream_works_after_failures() -> None:
    events, server = call_model(OVERLOADED, plays(HELLO, then=break_off), plays(HELLO, end=END))
    assert text_of(events).endswith("hello")
    assert len(server.asked) == 3
