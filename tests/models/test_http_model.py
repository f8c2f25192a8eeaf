"""Calling a model over HTTP, when all goes well."""

from __future__ import annotations

import asyncio
import json

import pytest

from recollect.codecs.wire_protocol import Declaration, Delta, Generation, RequestOptions
from recollect.entries import Message, Text, Usage
from recollect.models.http_model import HttpModel
from recollect.models.model_protocol import Model, Retrying
from recollect.models.resolve import build_wire
from recollect.profiles import WireName
from recollect.settings import TransportSettings
from recollect.testing import call, user
from recollect.testing import model as reply
from tests.models.server import (
    DONE,
    END,
    HELLO,
    KEY,
    QUICK,
    call_model,
    chosen,
    event,
    events_of,
    final,
    http,
    plays,
    retries,
    serving,
    text_of,
)

PLACES: list[tuple[WireName, str, str, str, str]] = [
    ("openai", "gpt-4o", "/chat/completions", "authorization", f"Bearer {KEY}"),
    ("anthropic", "claude-sonnet-4-5", "/v1/messages", "x-api-key", KEY),
    (
        "gemini",
        "gemini-2.5-pro",
        "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
        "x-goog-api-key",
        KEY,
    ),
]


@pytest.mark.parametrize(("wire", "name", "path", "header", "secret"), PLACES)
def test_each_format_has_its_path_and_its_header_for_the_key(
    wire: WireName, name: str, path: str, header: str, secret: str
) -> None:
    answer = Message(
        role="model",
        parts=(Text(text="I look."), call("grep", pattern="x")),
        finish="calls",
        usage=Usage(input=7, output=3, total=10),
    )
    stream = b"".join(build_wire(chosen("", wire, name)).encode_stream(answer))
    events, server = call_model(http(stream), wire=wire, model=name)
    message = final(events)
    assert message.parts[0] == Text(text="I look.")
    assert (message.model, message.finish, len(message.parts)) == (name, "calls", 2)
    assert message.usage is not None
    assert (message.usage.input, message.usage.output) == (7, 3)
    assert text_of(events) == "I look."
    request = server.asked[0]
    assert request.line == f"POST {path} HTTP/1.1"
    assert request.headers[header] == secret
    assert KEY not in request.line
    json.loads(request.body)


def test_a_model_behind_http_is_a_model() -> None:
    model: Model = HttpModel(chosen("http://localhost:1"))
    assert model.name == "gpt-4o"


def test_a_stream_cut_into_single_bytes_gives_the_same_reply() -> None:
    pieces = [HELLO[i : i + 1] for i in range(len(HELLO))]
    events, _ = call_model(plays(*pieces, end=END))
    assert final(events).parts == (Text(text="hello"),)
    assert text_of(events) == "hello"


def test_pieces_arrive_while_the_server_still_writes() -> None:
    async def main() -> None:
        heard = asyncio.Event()

        async def wait(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await heard.wait()
            rest = event("lo") + event(finish="stop") + DONE
            writer.write(b"%x\r\n%s\r\n" % (len(rest), rest) + END)
            await writer.drain()

        async with (
            serving(plays(event("hel"), then=wait)) as server,
            HttpModel(chosen(server.url), QUICK) as model,
        ):
            events = []
            async for piece in model.stream([user("hi")], RequestOptions(model="m")):
                events.append(piece)
                heard.set()
            assert events[0] == Delta("text", "hel")
            assert text_of(events) == "hello"

    asyncio.run(main())


def test_a_server_that_does_not_stream_is_understood() -> None:
    answer = Message(role="model", parts=(Text(text="at once"),), finish="stop")
    body = build_wire(chosen("")).encode_reply(answer)
    events, _ = call_model(http(body, kind="application/json; charset=utf-8"))
    assert final(events).parts == (Text(text="at once"),)
    assert text_of(events) == "at once"


def test_a_reply_without_a_finish_reason_is_a_reply_all_the_same() -> None:
    events, _ = call_model(http(event("words") + DONE))
    assert final(events).parts == (Text(text="words"),)
    assert final(events).finish == "stop"


def test_requests_at_the_same_time_do_not_meet() -> None:
    async def main() -> None:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            said = json.loads(server.asked[-1].body)["messages"][-1]["content"]
            await asyncio.sleep(0.01)
            await plays(event(said), event(finish="stop"), DONE, end=END)(reader, writer)

        async with serving(echo) as server, HttpModel(chosen(server.url), QUICK) as model:

            async def one(number: int) -> str:
                return text_of(await events_of(model, messages=[user(f"number {number}")]))

            answers = await asyncio.gather(*(one(number) for number in range(20)))
            assert answers == [f"number {number}" for number in range(20)]

    asyncio.run(main())


def test_the_connection_is_reused_for_the_next_request() -> None:
    async def main() -> None:
        async with serving(http(HELLO)) as server, HttpModel(chosen(server.url), QUICK) as model:
            for _ in range(3):
                await events_of(model)
            assert (len(server.asked), server.connections) == (3, 1)

    asyncio.run(main())


def test_a_longer_conversation_begins_with_the_same_bytes() -> None:
    async def main() -> None:
        async with serving(http(HELLO)) as server, HttpModel(chosen(server.url), QUICK) as model:
            first = [user("one")]
            await events_of(model, messages=first)
            await events_of(model, messages=[*first, reply("two"), user("three")])
            shorter, longer = (request.body for request in server.asked)
            assert longer.startswith(shorter.rstrip(b"]}"))

    asyncio.run(main())


def test_headers_from_the_settings_are_sent() -> None:
    transport = TransportSettings(headers={"X-Team": "history"}, retries=0)
    _, server = call_model(http(HELLO), transport=transport)
    assert server.asked[0].headers["x-team"] == "history"


def test_the_options_of_a_call_win_over_the_profile() -> None:
    options = RequestOptions(model="ignored", generation=Generation(temperature=0.7, max_output=50))
    _, server = call_model(http(HELLO), options=options)
    body = json.loads(server.asked[0].body)
    assert (body["temperature"], body["max_completion_tokens"], body["model"]) == (
        0.7,
        50,
        "gpt-4o",
    )


LONG = tuple(
    message
    for number in range(20)
    for message in (
        user(f"{number} " + "question " * 12_000),
        reply(f"{number} " + "yes " * 12_000),
    )
)


def test_a_long_request_arrives_whole_with_its_length_in_a_header() -> None:
    async def main() -> None:
        async with serving(http(HELLO)) as server, HttpModel(chosen(server.url), QUICK) as model:
            for count in (2, 30, len(LONG)):
                await events_of(model, messages=LONG[:count])
            for count, request in zip((2, 30, len(LONG)), server.asked, strict=True):
                assert request.headers["content-length"] == str(len(request.body))
                assert "transfer-encoding" not in request.headers
                sent = [m["content"] for m in json.loads(request.body)["messages"]]
                assert sent == [message.parts[0].text for message in LONG[:count]]  # type: ignore[union-attr]
            assert len(server.asked[-1].body) > 3_000_000

    asyncio.run(main())


def test_a_retried_request_is_the_same_to_the_byte() -> None:
    async def main() -> None:
        busy = http(b"busy", "503 Service Unavailable", "text/plain")
        async with (
            serving(busy, busy, http(HELLO)) as server,
            HttpModel(chosen(server.url), QUICK) as model,
        ):
            events = await events_of(model, messages=LONG)
            assert sum(isinstance(event, Retrying) for event in events) == 2
            first, *others = (request.body for request in server.asked)
            assert len(others) == 2
            assert all(body == first for body in others)

    asyncio.run(main())


# --- tools that are refused -----------------------------------------------------------------------


TOOLS = (Declaration(name="grep", description="finds text"),)


REFUSED = http(
    b'{"error":"registry.ollama.ai/library/tiny:latest does not support tools"}',
    "400 Bad Request",
    "application/json",
)


def test_concurrent_requests_that_are_refused_for_their_tools_are_all_sent_again() -> None:
    async def main() -> None:
        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            native = "tools" in json.loads(server.asked[-1].body)
            while len(server.asked) < 5:  # all of them have sent their tools
                await asyncio.sleep(0)
            writer.write(REFUSED if native else http(HELLO))
            await writer.drain()

        async with serving(answer) as server, HttpModel(chosen(server.url), QUICK) as model:
            options = RequestOptions(model="m", tools=TOOLS)
            answers = await asyncio.gather(*(events_of(model, options) for _ in range(5)))
            assert [text_of(events) for events in answers] == ["hello"] * 5

    asyncio.run(main())


def test_an_endpoint_that_refuses_tools_gets_them_as_text_from_then_on() -> None:
    async def main() -> None:
        async with serving(REFUSED, http(HELLO)) as server:
            async with HttpModel(chosen(server.url), QUICK) as model:
                options = RequestOptions(model="m", tools=TOOLS)
                events = await events_of(model, options)
                assert text_of(events) == "hello"
                [again] = retries(events)
                assert again.delay == 0.0
                assert not again.shown
                assert "tools" in again.reason
                assert model.text_tools
                await events_of(model, options)
            native, *texts = (json.loads(request.body) for request in server.asked)
            assert "tools" in native
            assert len(texts) == 2
            for body in texts:
                assert "tools" not in body
                assert "grep" in json.dumps(body["messages"])

    asyncio.run(main())
