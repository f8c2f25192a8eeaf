from __future__ import annotations

import asyncio
import json

from recollect.models.http_model import HttpModel
from recollect.models.model_protocol import Retrying
from recollect.testing import model, user
from tests.models.server import HELLO, QUICK, chosen, events_of, http, serving

LONG = tuple(
    message
    for number in range(20)
    for message in (
        user(f"{number} " + "question " * 12_000),
        model(f"{number} " + "yes " * 12_000),
    )
)


def test_a_long_request_arrives_whole_with_its_length_told_before() -> None:
    async def main() -> None:
        async with serving(http(HELLO)) as server, HttpModel(chosen(server.url), QUICK) as asked:
            for count in (2, 30, len(LONG)):
                await events_of(asked, messages=LONG[:count])
            for count, request in zip((2, 30, len(LONG)), server.asked, strict=True):
                assert request.headers["content-length"] == str(len(request.body))
                assert "transfer-encoding" not in request.headers
                sent = [m["content"] for m in json.loads(request.body)["messages"]]
                assert sent == [message.parts[0].text for message in LONG[:count]]  # type: ignore[union-attr]
            assert len(server.asked[-1].body) > 3_000_000

    asyncio.run(main())


def test_a_question_that_is_asked_again_is_the_same_to_the_byte() -> None:
    async def main() -> None:
        busy = http(b"busy", "503 Service Unavailable", "text/plain")
        async with (
            serving(busy, busy, http(HELLO)) as server,
            HttpModel(chosen(server.url), QUICK) as asked,
        ):
            events = await events_of(asked, messages=LONG)
            assert sum(isinstance(event, Retrying) for event in events) == 2
            first, *others = (request.body for request in server.asked)
            assert len(others) == 2
            assert all(body == first for body in others)

    asyncio.run(main())
