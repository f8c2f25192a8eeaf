"""Streams of entries: what anybody appends, once and in order, across restarts and rewinds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from recollect.server.http.request_guard import HttpOptions
from recollect.testing import faulty, says, user
from tests.server.http.face import (
    Folder,
    Served,
    SseEvent,
    ask,
    new_session,
    read_events,
    run,
    streaming,
    take,
)


@asynccontextmanager
async def following(
    client: httpx2.AsyncClient, session: str, last: str = "", after: str = ""
) -> AsyncIterator[AsyncIterator[SseEvent]]:
    headers = {"last-event-id": last} if last else {}
    path = f"/api/sessions/{session}/entries/stream"
    params = {"after": after} if after else {}
    async with streaming(client, path, headers=headers, params=params) as events:
        yield events


async def append(served: Served, session: str, *words: str) -> list[str]:
    opened = await served.hub.runtime.session(session)
    return [entry.id for entry in await opened.append(*map(user, words))]


def test_a_stream_shows_what_another_server_appends_to_the_same_store(folder: Folder) -> None:
    async def work() -> None:
        async with (
            folder.serve() as one,
            folder.serve() as other,
            one.client() as client,
        ):
            session = await new_session(client)
            async with following(client, session) as events:
                (begin,) = await take(events, 1)
                assert (begin.name, begin.id) == ("head", "start")
                added = await append(other, session, "a", "b")
                got = await take(events, 2)
                assert [event.id for event in got] == added
                assert [event.data["position"] for event in got] == [0, 1]
                here = await append(one, session, "c")
                assert [event.id for event in await take(events, 1)] == here

    run(work)


def test_a_client_that_comes_back_misses_nothing_and_sees_nothing_twice(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)
            added = await append(served, session, *map(str, range(250)))
            async with following(client, session, after="start") as events:
                first = await take(events, 120)
            added += await append(served, session, "while away")
            async with following(client, session, last=first[-1].id) as events:
                rest = await take(events, len(added) - 120)
            assert [event.id for event in (*first, *rest)] == added
            assert {event.name for event in (*first, *rest)} == {"entry"}

    run(work)


def test_a_stream_goes_on_at_another_server_after_its_own_stopped(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)
            async with following(client, session) as events:
                await take(events, 1)
                added = await append(served, session, "a")
                seen = await take(events, 1)
                await served.server.stop()
                assert [event async for event in events] == []  # it ends, and is not cut off
        async with folder.serve() as served, served.client() as client:
            added += await append(served, session, "b", "c")
            async with following(client, session, last=seen[-1].id) as events:
                seen += await take(events, 2)
        assert [event.id for event in seen] == added

    run(work)


def test_a_rewind_tells_what_still_holds_and_then_what_is_new(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)
            added = await append(served, session, *"abcdef")
            rewind = f"/api/sessions/{session}/rewind"
            async with following(client, session) as events:
                await take(events, 1)
                await client.post(rewind, json={"to": added[2]})
                (told,) = await take(events, 1)
                assert (told.name, told.id) == ("rewound", added[2])
                assert told.data == {"head": added[2], "entries": 3}
                new = await append(served, session, "x")
                (event,) = await take(events, 1)
                assert (event.name, event.id, event.data["position"]) == ("entry", new[0], 3)
            async with following(client, session, last=added[5]) as events:  # a lost branch
                told, event = await take(events, 2)
                assert (told.name, told.id) == ("rewound", added[2])
                assert event.id == new[0]
                await client.post(rewind, json={"to": None})
                (told,) = await take(events, 1)
                assert (told.name, told.id, told.data["entries"]) == ("rewound", "start", 0)

    run(work)


def test_an_id_that_the_session_does_not_know_means_everything_again(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session, other = await new_session(client), await new_session(client)
            added = await append(served, session, *"abc")
            strange = await append(served, other, "x")
            for last in ("0" * 32, strange[0], "nonsense"):
                async with following(client, session, last=last) as events:
                    got = await take(events, 4)
                assert [event.id for event in got] == ["start", *added]
                assert got[0].name == "rewound"

    run(work)


def test_the_stream_of_a_fork_resumes_from_before_the_fork(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)
            added = await append(served, session, *"abcd")
            forked = await client.post(f"/api/sessions/{session}/fork", json={"at": added[1]})
            fork = forked.json()["id"]
            new = await append(served, fork, "x")
            async with following(client, fork, last=added[0]) as events:
                got = await take(events, 2)
            assert [event.id for event in got] == [added[1], *new]

    run(work)


def test_a_restart_in_the_middle_of_an_answer_keeps_its_part_and_the_session_goes_on(
    folder: Folder,
) -> None:
    async def work() -> None:
        slow = faulty(*(f"word{n} " for n in range(1000)), pause=0.05)
        with folder.provider(slow, says("Better now.")):
            async with folder.serve() as served, served.client() as client:
                session = await new_session(client)
                path = f"/api/sessions/{session}"
                async with following(client, session) as watched:
                    seen = await take(watched, 1)
                    posted = {"prompt": "Talk.", "kind": "ask", "stream": True}
                    async with streaming(client, f"{path}/prompts", "POST", json=posted) as events:
                        shown = ""
                        async for event in events:
                            if event.name == "delta":
                                shown += event.data["text"]
                            if len(shown) > 40:
                                break
                        await served.hub.close()
                        end = [event async for event in events][-1]
                        assert end.data["subtype"] in ("interrupted", "error_interrupted")
                    await served.server.stop()
                    seen += [event async for event in watched]
            async with folder.serve() as served, served.client() as client:
                stored = (await client.get(f"{path}/entries?role=model")).json()["entries"]
                body = stored[-1]["entry"]["body"]
                assert body["finish"] == "interrupted"
                assert body["parts"][0]["text"].startswith(shown[:40])
                answer = await ask(client, session, "Go on.", kind="ask")
                assert answer[-1].data["result"] == "Better now."
                every = (await client.get(f"{path}/entries?limit=500")).json()["entries"]
                ids = [one["entry"]["id"] for one in every]
                already = [event.id for event in seen if event.name == "entry"]
                async with following(client, session, last=seen[-1].id) as watched:
                    rest = await take(watched, len(ids) - len(already))
                assert already + [event.id for event in rest] == ids

    run(work)


def test_a_quiet_stream_sends_heartbeats(folder: Folder) -> None:
    async def work() -> None:
        options = HttpOptions(heartbeat_seconds=0.05)
        async with folder.serve(options) as served, served.client() as client:
            session = await new_session(client)
            async with client.stream("GET", f"/api/sessions/{session}/entries/stream") as response:
                lines = response.aiter_lines()
                async for line in lines:
                    if line == ": heartbeat":
                        break

    run(work)


def test_more_streams_than_allowed_are_refused_and_free_again_afterwards(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve(HttpOptions(streams=4)) as served, served.client() as client:
            session = await new_session(client)
            path = f"/api/sessions/{session}/entries/stream"
            async with following(client, session) as one, following(client, session) as two:
                await take(one, 1)
                await take(two, 1)
                refused = await client.get(path)
                assert (refused.status_code, refused.json()["code"]) == (503, "server-busy")
                assert refused.headers["retry-after"] == "1"
            while "recollect_event_streams 0.0" not in (await client.get("/metrics")).text:
                pass
            async with following(client, session) as one:
                await take(one, 1)

    run(work)


@pytest.mark.parametrize("last", ["é", "x" * 100])
def test_an_absurd_event_id_is_refused(folder: Folder, last: str) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)
            path = f"/api/sessions/{session}/entries/stream"
            refused = await client.get(path, headers={b"last-event-id": last.encode()})
            assert refused.status_code == 400

    run(work)


def test_events_of_a_run_are_resumed_by_their_number(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says("One ", "two ", "three.")):
            async with folder.serve() as served, served.client() as client:
                session = await new_session(client)
                sent = await client.post(
                    f"/api/sessions/{session}/prompts", json={"prompt": "Count.", "kind": "ask"}
                )
                assert sent.status_code == 202
                path = f"{sent.headers['location']}/events"
                async with client.stream("GET", path) as response:
                    every = [event async for event in read_events(response)]
                assert every[-1].name == "result"
                headers = {"last-event-id": every[1].id}
                async with client.stream("GET", path, headers=headers) as response:
                    rest = [event async for event in read_events(response)]
                assert rest == every[2:]
                wrong = await client.get(path, headers={"last-event-id": "x"})
                assert wrong.status_code == 400

    run(work)
