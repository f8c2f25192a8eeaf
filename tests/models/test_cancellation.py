"""Stopping a model in the middle of its reply."""

from __future__ import annotations

import asyncio
import time

import pytest

from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.models.http_model import HttpModel
from recollect.settings import TransportSettings
from recollect.testing import user
from tests.models.server import QUICK, Play, chosen, event, events_of, plays, refused, serving


def _noticing(gone: asyncio.Event) -> Play:
    async def wait(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()  # until the other side closes
        gone.set()

    return wait


@pytest.mark.parametrize("by", ["cancelling", "closing"])
def test_stopping_closes_the_connection_at_once(by: str) -> None:
    async def main() -> None:
        gone, first = asyncio.Event(), asyncio.Event()
        async with (
            serving(plays(event("one "), then=_noticing(gone))) as server,
            HttpModel(chosen(server.url), QUICK) as asked,
        ):
            stream = asked.stream([user("hi")], RequestOptions(model="m"))

            async def read() -> None:
                async for _ in stream:
                    first.set()

            if by == "closing":
                assert await anext(stream) == Delta("text", "one ")
                await stream.aclose()
            else:
                task = asyncio.create_task(read())
                await first.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await asyncio.wait_for(gone.wait(), 2)
            # and the model can be asked again
            assert asked.name == "gpt-4o"

    asyncio.run(main())


def test_stopping_while_it_waits_for_another_attempt_stops_the_wait() -> None:
    async def main() -> None:
        slow = TransportSettings(longest_wait=60.0)
        async with (
            serving(refused("429 No", "wait", "Retry-After: 50")) as server,
            HttpModel(chosen(server.url), slow) as asked,
        ):
            task = asyncio.create_task(events_of(asked))
            while not server.asked:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            task.cancel()
            started = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - started < 1

    asyncio.run(main())
