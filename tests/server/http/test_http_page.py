"""docs/http.md names every route with its right, and every example in it is what happens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from recollect.server.http.api_table import ROUTES
from recollect.testing import call, says
from tests.server.http.face import Folder, Served, run, streaming

PAGE = (Path(__file__).parents[3] / "docs" / "http.md").read_text(encoding="utf-8")
WRITE = call("write_file", path="plan.txt", content="north\n")


class Example(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: str
    status: int
    shown: str


def _read(block: str) -> Example:
    request, _, response = block.partition("\n\n")
    first, *rest = request.splitlines()
    method, path = first.split(" ")
    headers = dict(line.split(": ", 1) for line in rest if not line.startswith("{"))
    body = "\n".join(line for line in rest if line.startswith("{"))
    status, _, shown = response.strip().partition("\n")
    return Example(method, path, headers, body, int(status), shown)


EXAMPLES = [_read(block) for block in re.findall(r"```http\n(.*?)```", PAGE, re.S)]


def test_every_route_is_in_the_table_with_its_right() -> None:
    rows = re.findall(r"^\| `(\w+) (/\S+)` \| (\w+) \|", PAGE, re.M)
    listed = {row for row in rows if row[1] != "/metrics"}
    assert listed == {(r.method, r.path, r.right or "none") for r in ROUTES}


def test_every_route_has_an_example() -> None:
    for route in ROUTES:
        pattern = re.sub(r"{\w+}", "[A-Z]+", route.path) + r"(\?.*)?"
        found = [e for e in EXAMPLES if e.method == route.method and re.fullmatch(pattern, e.path)]
        assert found, (route.method, route.path)


def _matches(shown: Any, got: Any) -> bool:
    if shown == "…":
        return True
    if isinstance(shown, dict):
        return isinstance(got, dict) and all(
            key in got and _matches(value, got[key]) for key, value in shown.items()
        )
    if isinstance(shown, list):
        return isinstance(got, list) and len(shown) == len(got) and all(map(_matches, shown, got))
    return bool(shown == got)


class _Reader:
    """Goes through the page like a reader who copies ids from one response to the next request."""

    def __init__(self, served: Served, client: httpx2.AsyncClient) -> None:
        self._served, self._client = served, client
        self._names = {"DOWNLOAD": served.downloads.register("a.txt", b"a").token}

    async def follow(self, example: Example) -> None:
        if example.shown.startswith("event:"):
            await self._stream(example)
            return
        if "APPROVAL" in example.path:
            await self._wait_for_approval()
        path, headers = self._fill(example.path), dict(example.headers)
        if example.body:
            headers.setdefault("Content-Type", "application/json")
        content = self._fill(example.body).encode() or None
        reply = await self._client.request(example.method, path, content=content, headers=headers)
        assert reply.status_code == example.status, (example, reply.text)
        if example.shown:
            assert _matches(json.loads(example.shown), reply.json()), (example, reply.text)
        await self._note(example, reply.json() if example.shown else {})

    def _fill(self, text: str) -> str:
        return re.sub("|".join(self._names), lambda name: self._names[name[0]], text)

    async def _note(self, example: Example, got: Any) -> None:
        if (example.method, example.path) == ("POST", "/api/sessions"):
            self._names["SESSION"] = got["id"]
        if example.path.endswith("/prompts"):
            self._names["RUN"] = got["run"]
        if example.path.endswith("/cancel"):  # what follows finds the session at rest
            async with streaming(self._client, self._fill("/api/runs/RUN/events")) as events:
                assert [event async for event in events]
        if "role=model" in example.path:
            self._names["ENTRY"] = got["entries"][0]["entry"]["id"]
            path = self._fill("/api/sessions/SESSION/entries?kind=request&limit=1")
            found = (await self._client.get(path)).json()
            self._names["REQUEST"] = found["entries"][0]["entry"]["id"]

    async def _wait_for_approval(self) -> None:
        async with streaming(self._client, self._fill("/api/runs/RUN/events")) as events:
            async for event in events:
                if event.name == "approval_requested":
                    self._names["APPROVAL"] = event.data["approval"]
                    return

    async def _stream(self, example: Example) -> None:
        wanted = re.findall(r"event: (\w+)", example.shown)
        async with streaming(self._client, self._fill(example.path)) as events:
            seen = list[str]()
            async for event in events:
                if event.name not in seen or event.name != "delta":
                    seen.append(event.name)
                if len(seen) == len(wanted):
                    break
        assert seen == wanted


def test_the_examples_are_what_happens(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says("North."), says(WRITE), says("Written.")):
            async with folder.serve(mode="ask") as served, served.client() as client:
                reader = _Reader(served, client)
                for example in EXAMPLES:
                    await reader.follow(example)

    run(work)
