"""A real HTTP server on a free port, over a real store, with a scripted provider behind it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from starlette.applications import Starlette

from recollect.runtime.runtime import Overrides, open_runtime
from recollect.server.access import AccessToken, AccessTokens, Identity, Right, hash_token
from recollect.server.downloads import DownloadOffers
from recollect.server.http.http_app import build_app
from recollect.server.http.http_protocol import ConnectionLimits
from recollect.server.http.http_server import HttpServer
from recollect.server.http.request_guard import HttpOptions
from recollect.server.session_hub import HubLimits, SessionHub
from recollect.testing import ProviderLine, ProviderServer

KEY = {"MY_KEY": "sk-fake-0123456789abcdef"}
RIGHTS: tuple[Right, ...] = ("read", "chat", "admin")
IDENTITIES = (
    *(Identity(f"{name}-{right}", right) for name in ("ann", "bob") for right in RIGHTS),
    Identity("root", "admin", all_sessions=True),
)


def token_of(name: str) -> str:
    return f"token-of-{name}-0123456789abcdef0123456789abcdef"


TOKENS = AccessTokens([AccessToken(one, hash_token(token_of(one.name))) for one in IDENTITIES])


class Served(NamedTuple):
    """A server that runs."""

    hub: SessionHub
    server: HttpServer
    downloads: DownloadOffers

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def client(self, name: str = "ann-admin") -> httpx2.AsyncClient:
        headers = {"authorization": f"Bearer {token_of(name)}"}
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=60, trust_env=False)


class Folder(NamedTuple):
    """A project's folder and the user's data, with settings that name a scripted provider."""

    root: Path

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def store(self) -> Path:
        return self.root / "home" / "recollect.db"

    def provider(
        self, *script: ProviderLine, more: str = "", repeat: bool = False
    ) -> ProviderServer:
        server = ProviderServer("openai", script, repeat=repeat)
        self.project.mkdir(exist_ok=True)
        (self.root / "home").mkdir(exist_ok=True)
        (self.root / "home" / "settings.toml").write_text(
            'model = "mine"\n[transport]\nretries = 1\nlongest_wait = 0.01\n'
            f'[models.mine]\nurl = "{server.url}"\nwire = "openai"\nkey = "MY_KEY"\n'
            f"window = 30000\n{more}"
        )
        return server

    @asynccontextmanager
    async def serve(
        self,
        options: HttpOptions | None = None,
        limits: HubLimits | None = None,
        mode: str = "",
        connection: ConnectionLimits | None = None,
        around: Callable[[Starlette], Starlette] = lambda app: app,
        tls: ssl.SSLContext | None = None,
        project: Path | None = None,
    ) -> AsyncIterator[Served]:
        overrides, project = Overrides(mode=mode), project or self.project
        async with open_runtime(project, self.store, overrides=overrides) as runtime:
            hub, downloads = SessionHub(runtime, limits or HubLimits()), DownloadOffers()
            app = build_app(hub, TOKENS, options or HttpOptions(), downloads=downloads)
            http = HttpServer(around(app), limits=connection or ConnectionLimits(), tls=tls)
            await http.start()
            try:
                yield Served(hub, http, downloads)
            finally:
                await hub.close()
                await http.stop()


class SseEvent(NamedTuple):
    name: str
    id: str
    data: Any


async def read_events(response: httpx2.Response) -> AsyncIterator[SseEvent]:
    """The events of a stream, as a browser reads them."""
    name, id_, data = "message", "", ""
    async for line in response.aiter_lines():
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "id":
            id_ = value
        elif field == "data":
            data += value
        elif not line and data:
            yield SseEvent(name, id_, json.loads(data))
            name, data = "message", ""


async def take(events: AsyncIterator[SseEvent], count: int) -> list[SseEvent]:
    return [await anext(events) for _ in range(count)]


@asynccontextmanager
async def streaming(
    client: httpx2.AsyncClient, path: str, method: str = "GET", **options: Any
) -> AsyncIterator[AsyncIterator[SseEvent]]:
    async with client.stream(method, path, **options) as response:
        if response.status_code != 200:
            await response.aread()
        assert response.status_code == 200, response.text
        yield read_events(response)


async def new_session(client: httpx2.AsyncClient, title: str = "") -> str:
    made = await client.post("/api/sessions", json={"title": title})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def ask(client: httpx2.AsyncClient, session: str, text: str, **body: Any) -> list[SseEvent]:
    """Send a prompt and read its events to the end."""
    path = f"/api/sessions/{session}/prompts"
    given = {"prompt": text, "stream": True, **body}
    async with streaming(client, path, "POST", json=given) as events:
        return [event async for event in events]


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def kinds(entries: Sequence[dict[str, Any]]) -> list[str]:
    return [one["entry"]["body"]["kind"] for one in entries]
