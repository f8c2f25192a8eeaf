from __future__ import annotations

import http.client
import json
import socket
import threading
from typing import Any

import pytest

from recollect.entries import Message, Text, Thought, ToolCall, Usage
from recollect.errors import BadReply, ProviderBusy
from recollect.models.model_protocol import Retrying
from recollect.profiles import WireName
from recollect.testing import (
    ProviderLine,
    ProviderServer,
    breaks_after,
    call,
    fails,
    faulty,
    model,
    provider_error,
    says,
)
from recollect.testing import provider_server as server_module
from tests.testing.raw_client import BODIES, PATIENCE, Seen, ask, read_response, request_bytes

FORMATS: tuple[WireName, ...] = ("gemini", "openai", "anthropic")
every_format = pytest.mark.parametrize("format_", FORMATS)


def error_of(seen: Seen) -> str:
    return str(seen.events[0]["error"]["message"])


@every_format
@pytest.mark.parametrize("stream", [True, False])
def test_the_lines_are_played_in_order_and_requests_are_kept(
    format_: WireName, stream: bool
) -> None:
    lines: list[ProviderLine] = [
        "one",
        model("two"),
        says("three"),
        lambda request: f"{len(request.messages)} asked",
    ]
    with ProviderServer(format_, lines) as server:
        texts = [ask(server.url, format_, stream=stream).text for _ in lines]
        assert server.left == 0
    assert texts == ["one", "two", "three", "1 asked"]
    assert len(server.requests) == 4
    request = server.requests[0]
    assert request.decoded is not None
    assert request.decoded.messages == (Message(role="user", parts=(Text(text="hi"),)),)
    assert (request.decoded.options.model, request.decoded.options.stream) == ("m", stream)
    assert BODIES[format_].items() <= request.json.items()
    assert request.headers["host"] == "x"


@every_format
def test_a_request_too_many_is_an_error_that_says_so(format_: WireName) -> None:
    with ProviderServer(format_, ["one"]) as server:
        ask(server.url, format_)
        assert not server.exhausted
        seen = ask(server.url, format_)
    assert (seen.status, server.exhausted) == (500, True)
    assert "has 1 lines and got one request more" in error_of(seen)


def test_the_last_line_can_be_repeated() -> None:
    with ProviderServer("openai", ["one", "two"], repeat=True) as server:
        assert [ask(server.url, "openai").text for _ in range(4)] == ["one", "two", "two", "two"]
        assert not server.exhausted


@every_format
def test_a_reply_reports_a_usage_and_a_turn_can_say_which(format_: WireName) -> None:
    keys = ("promptTokenCount", "prompt_tokens", "input_tokens")
    with ProviderServer(format_, ["one", says("two", usage=Usage(input=7, output=2))]) as server:
        assert ask(server.url, format_).values(*keys)[0] > 10
        assert ask(server.url, format_).values(*keys) == [7]


@every_format
def test_thoughts_text_and_calls_come_in_order_and_in_pieces(format_: WireName) -> None:
    grep = call("grep", pattern="ü" * 30)
    line = says(Thought(text="I think", signature="c2ln"), "I look for it", grep)
    with ProviderServer(format_, [line, faulty(line, piece=3)]) as server:
        first, second = ask(server.url, format_), ask(server.url, format_)
    assert len(second.events) > len(first.events)
    for seen in (first, second):
        assert "I look for it" in seen.text
        assert json.loads(seen.arguments) == {"pattern": "ü" * 30}
        assert seen.names == ["grep"]


@every_format
def test_arguments_are_sent_as_they_are_written(format_: WireName) -> None:
    written = '{ "a":1.0,"a":2 }'
    with ProviderServer(format_, [says(ToolCall(id="c", name="t", arguments=written))]) as server:
        seen = ask(server.url, format_)
    assert written in (seen.body.decode() if format_ == "gemini" else seen.arguments)


@every_format
def test_the_failures_of_a_scripted_model_have_a_form_on_the_wire(format_: WireName) -> None:
    lines: list[ProviderLine] = [
        ProviderBusy("slow", 429),
        fails(BadReply("x")),
        breaks_after("half of"),
    ]
    with ProviderServer(format_, lines) as server:
        busy, bad, broken = (ask(server.url, format_) for _ in lines)
    assert (busy.status, error_of(busy)) == (429, "slow")
    assert bad.status == 500
    assert (broken.status, broken.text, broken.ending) == (200, "half of", "closed")


def test_a_connection_serves_several_requests() -> None:
    with ProviderServer("openai", ["one", provider_error("openai", 429, "x"), "two"]) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), PATIENCE) as connection:
            found = []
            for _ in range(3):
                connection.sendall(request_bytes("openai"))
                found.append(read_response(connection, "openai"))
    assert [seen.status for seen in found] == [200, 429, 200]
    assert found[2].text == "two"


def test_an_unknown_address_and_an_unreadable_request_take_no_line() -> None:
    with ProviderServer("openai", ["one"]) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
        answers: list[tuple[int, Any]] = []
        for path, body in (("/v1/models", "{}"), ("/chat/completions", "{"), ("/responses", "")):
            connection.request("POST", path, body)
            response = connection.getresponse()
            answers.append((response.status, json.loads(response.read())["error"]["message"]))
        connection.request("GET", "/")
        assert connection.getresponse().status == 404
        connection.close()
        assert server.left == 1
    assert [status for status, _ in answers] == [404, 400, 404]
    assert answers[0][1] == "/v1/models is not served here, only …/chat/completions"


def test_a_request_may_be_chunked_and_must_not_be_too_long() -> None:
    with ProviderServer("openai", ["one"]) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
        data = json.dumps(BODIES["openai"]).encode()
        connection.request("POST", "/chat/completions", iter([data[:9], data[9:]]))
        assert b"one" in connection.getresponse().read()
        too_long = {"content-length": str(server_module.MAX_REQUEST + 1)}
        connection.request("POST", "/chat/completions", headers=too_long)
        assert connection.getresponse().status == 413
        connection.close()


def test_gemini_streams_a_list_unless_events_are_asked_for() -> None:
    with ProviderServer("gemini", ["hello there"]) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
        path = "/v1beta/models/m:streamGenerateContent"
        connection.request("POST", path, json.dumps(BODIES["gemini"]))
        found = json.loads(connection.getresponse().read())
        connection.close()
    texts = [part["candidates"][0]["content"]["parts"][0]["text"] for part in found]
    assert texts == ["hello th", "ere", ""]


def test_a_line_that_fails_is_raised_when_the_server_closes() -> None:
    def broken(_: object) -> str:
        raise LookupError("no such reply")

    server = ProviderServer("openai", [broken])
    with pytest.raises(LookupError, match="no such reply"), server:
        assert ask(server.url, "openai").status == 500
    wrong: Any = 3
    with pytest.raises(TypeError, match="not int"), ProviderServer("openai", [wrong]) as second:
        ask(second.url, "openai")
    retry = says("a", Retrying("x", 0.0, 1, shown=True))
    with (
        pytest.raises(TypeError, match="script the two"),
        ProviderServer("openai", [retry]) as third,
    ):
        ask(third.url, "openai")


def test_what_no_reply_can_be_is_refused_when_it_is_made() -> None:
    with pytest.raises(ValueError, match=r"end='nothing' is unknown; use one of 'all', 'word'"):
        faulty("x", end="nothing")
    with pytest.raises(ValueError, match="piece=0; it needs at least 1"):
        faulty("x", piece=0)
    with pytest.raises(ValueError, match="has no length"):
        faulty("x", endless="text", framing="length")
    with pytest.raises(TypeError, match="stands alone"):
        faulty(says("x"), "y")
    with pytest.raises(TypeError, match="colour"):
        faulty("x", colour="blue")
    unknown: Any = "cohere"
    with pytest.raises(ValueError, match="'cohere' is unknown; use one of gemini, openai"):
        ProviderServer(unknown, [])


@pytest.mark.parametrize(
    ("cut", "match"), [("character", "several bytes"), ("arguments", "a call")]
)
def test_a_cut_that_finds_no_place_is_an_error_of_the_script(cut: str, match: str) -> None:
    with (
        pytest.raises(ValueError, match=match),
        ProviderServer("openai", [faulty("x", cut=cut)]) as server,
    ):
        ask(server.url, "openai")


def test_closing_ends_every_connection_and_every_thread() -> None:
    before = threading.active_count()
    with ProviderServer("openai", [faulty("hello", close="silence")], repeat=True) as server:
        host, port = server.url.removeprefix("http://").split(":")
        connections = [socket.create_connection((host, int(port)), PATIENCE) for _ in range(3)]
        for connection in connections[:2]:  # the third never asks
            connection.sendall(request_bytes("openai"))
            while b"[DONE]" not in connection.recv(100_000):
                pass
    assert threading.active_count() == before
    for connection in connections:
        connection.settimeout(PATIENCE)
        assert connection.recv(100) == b""
        connection.close()


def test_a_server_that_was_never_started_can_be_closed() -> None:
    ProviderServer("openai", []).close()


def test_a_body_is_sent_as_it_is() -> None:
    line = faulty(body=b"\x00\x01", content_type="image/png", status=200, headers={"x-a": "b"})
    with ProviderServer("openai", [line]) as server:
        seen = ask(server.url, "openai")
    assert (seen.body, seen.headers["content-type"], seen.headers["x-a"]) == (
        b"\x00\x01",
        "image/png",
        "b",
    )
