"""The OpenAPI description is what the server does: schemathesis finds no server error by it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks
from schemathesis.core.result import Ok

from recollect.server.http.api_table import ROUTES
from recollect.server.http.openapi import describe_api
from recollect.testing import says, user
from tests.server.http.face import Folder, Served, new_session, run, token_of


def test_every_route_is_described_with_its_right() -> None:
    described = describe_api()
    jsonschema.Draft202012Validator.check_schema({"$defs": described["components"]["schemas"]})
    for route in ROUTES:
        operation = described["paths"][route.path][route.method.lower()]
        assert operation["summary"].endswith(".")
        assert operation.get("x-right") == route.right
        named = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
        assert all(f"{{{name}}}" in route.path for name in named)
    references = [
        part.split('"')[0] for part in json.dumps(described).split("#/components/schemas/")[1:]
    ]
    assert set(references) <= set(described["components"]["schemas"])


def test_replies_are_as_described(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says("Hello."), repeat=True):
            async with folder.serve() as served, served.client() as client:
                described = (await client.get("/openapi.json")).json()
                session = await new_session(client, "T")
                opened = await served.hub.runtime.session(session)
                await opened.append(user("what \ud800 is it?"))
                sent = await client.post(
                    f"/api/sessions/{session}/prompts", json={"prompt": "x", "kind": "ask"}
                )
                names = {"session": session, "run": sent.json()["run"]}
                async with client.stream("GET", f"/api/runs/{names['run']}/events") as done:
                    await done.aread()
                entries = (await client.get(f"/api/sessions/{session}/entries")).json()["entries"]
                names["entry"] = entries[0]["entry"]["id"]
                for route in ROUTES:
                    if route.method != "GET" or route.value is None or route.is_stream:
                        continue
                    query = "?q=what" if "search" in route.path else ""
                    reply = await client.get(route.path.format(**names) + query)
                    assert reply.status_code == 200, (route.path, reply.text)
                    operation = described["paths"][route.path]["get"]
                    content = operation["responses"]["200"]["content"]["application/json"]
                    schema = {**content["schema"], "components": described["components"]}
                    jsonschema.validate(reply.json(), schema)

    run(work)


class _Background:
    """A server in a thread of its own, for a client that is not async."""

    def __init__(self, folder: Folder) -> None:
        self._folder, self._ready, self._stop = folder, threading.Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.served: Served | None = None
        self.session = ""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self._folder.serve() as self.served, self.served.client() as client:
            self.session = await new_session(client, "T")
            opened = await self.served.hub.runtime.session(self.session)
            await opened.append(user("hello"), user("there"))
            self._ready.set()
            await self._stop.wait()

    def __enter__(self) -> _Background:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


@pytest.fixture
def background(folder: Folder) -> Iterator[_Background]:
    with folder.provider(says("Hello."), repeat=True), _Background(folder) as served:
        yield served


def _attack(background: _Background, examples: int) -> None:
    """Every operation with generated requests, right and wrong ones, real ids among them."""
    assert background.served is not None
    base, headers = background.served.url, {"Authorization": f"Bearer {token_of('ann-admin')}"}
    described: dict[str, Any] = describe_api()
    for path, operations in described["paths"].items():
        for operation in operations.values():
            for parameter in operation["parameters"]:
                if parameter["name"] == "session" and parameter["in"] == "path":
                    real = {"const": background.session}
                    parameter["schema"] = {"anyOf": [real, real, parameter["schema"]]}
        if path.endswith(("/stream", "/events")):
            operations.clear()  # they do not end by themselves; their own tests have them
    schema = schemathesis.openapi.from_dict(described)
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()

        @given(case=operation.as_strategy())
        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def attack(case: Any) -> None:
            if isinstance(case.body, dict):
                case.body.pop("stream", None)
            case.call_and_validate(
                base_url=base, headers=headers, checks=[checks.not_a_server_error], timeout=60
            )

        attack()


def test_schemathesis_finds_no_server_error(background: _Background) -> None:
    _attack(background, 8)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_schemathesis_finds_no_server_error_in_many_requests(background: _Background) -> None:
    _attack(background, 500)
