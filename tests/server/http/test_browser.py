"""A page from another origin, in a real browser, can neither read nor change anything."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.types import Message, Receive, Scope, Send

from recollect.testing import user
from tests.server.http.face import Folder, new_session, run, token_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SECRET = "xylophone"
PAGE = """<!doctype html><title>evil</title><body><script>
const base = "BASE", rebound = "REBOUND", token = "TOKEN", session = "SESSION";
const results = {};
const settle = (name, promise) => Promise.race([
  promise, new Promise(done => setTimeout(() => done("blocked: timeout"), 4000)),
]).then(value => { results[name] = value; }, error => { results[name] = "blocked: " + error; });
const read = (url, options) => fetch(url, options).then(async reply =>
  reply.type === "opaque" ? "blocked: opaque" : `read ${reply.status}: ${await reply.text()}`);
const bearer = {authorization: "Bearer " + token};
const body = JSON.stringify({title: "changed"});
const element = (tag, property, url) => new Promise((loaded, failed) => {
  const made = document.createElement(tag);
  made.onload = () => loaded("read: loaded"); made.onerror = () => failed("not loaded");
  made[property] = url; document.body.append(made);
});
const source = url => new Promise((got, failed) => {
  const events = new EventSource(url);
  events.onmessage = event => got("read: " + event.data);
  events.addEventListener("head", event => got("read: " + event.data));
  events.onopen = () => got("read: open");
  events.onerror = () => { events.close(); failed("error"); };
});
const socket = url => new Promise((got, failed) => {
  const made = new WebSocket(url);
  made.onopen = () => got("read: open"); made.onerror = () => failed("error");
});
const form = (url, type) => new Promise(done => {
  const frame = document.createElement("iframe"); frame.name = "f" + Math.random();
  document.body.append(frame);
  const made = document.createElement("form");
  Object.assign(made, {method: "POST", action: url, enctype: type, target: frame.name});
  const field = document.createElement("input");
  Object.assign(field, {name: '{"title":"changed","x":"', value: '"}'});
  made.append(field); document.body.append(made);
  frame.onload = () => {
    try { done("read: " + frame.contentDocument.body.innerText); }
    catch (error) { done("blocked: " + error); }
  };
  made.submit();
});
(async () => {
  const sessions = base + "/api/sessions", one = sessions + "/" + session;
  await Promise.all([
    settle("get", read(sessions)),
    settle("get-no-cors", read(sessions, {mode: "no-cors"})),
    settle("get-with-token", read(sessions, {headers: bearer})),
    settle("health", read(base + "/health/live")),
    settle("description", read(base + "/openapi.json")),
    settle("post-simple", read(sessions, {method: "POST", body})),
    settle("post-no-cors", read(sessions, {method: "POST", body, mode: "no-cors"})),
    settle("post-json", read(sessions,
      {method: "POST", body, headers: {...bearer, "content-type": "application/json"}})),
    settle("patch", read(one, {method: "PATCH", body, headers: bearer})),
    settle("delete", read(one, {method: "DELETE", headers: bearer})),
    settle("form-text", form(sessions, "text/plain")),
    settle("form-urlencoded", form(sessions, "application/x-www-form-urlencoded")),
    settle("event-source", source(one + "/entries/stream?after=start")),
    settle("web-socket", socket(base.replace("http", "ws") + "/api/sessions")),
    settle("image", element("img", "src", sessions)),
    settle("script", element("script", "src", base + "/openapi.json")),
    settle("rebound", read(rebound + "/api/sessions", {headers: bearer})),
    settle("rebound-no-cors", read(rebound + "/api/sessions", {mode: "no-cors"})),
    settle("beacon", Promise.resolve("blocked: " + navigator.sendBeacon(sessions, body))),
  ]);
  await fetch("/report", {method: "POST", body: JSON.stringify(results)});
})();
</script></body>"""


class _EvilSite:
    """A server of its own origin that hands out the page and takes its report."""

    def __init__(self) -> None:
        site = self
        self.page, self.report, self.done = "", dict[str, str](), threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = site.page.encode()
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                site.report = json.loads(self.rfile.read(length))
                self.send_response(204)
                self.end_headers()
                site.done.set()

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._http.server_address[1]

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            self._http.shutdown()
            thread.join()
            self._http.server_close()


class _Recorder:
    """Notes what arrives at the server, and what it answers."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, int]] = []

    def around(self, app: Starlette) -> Starlette:
        async def recorded(scope: Scope, receive: Receive, send: Send) -> None:
            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self.seen.append((scope["method"], scope["path"], message["status"]))
                await send(message)

            await app(scope, receive, noted)

        recorded.state = app.state  # type: ignore[attr-defined]
        return cast(Starlette, recorded)


async def browse(url: str, profile: Path, done: threading.Event) -> None:
    assert CHROMIUM is not None
    browser = await asyncio.create_subprocess_exec(
        CHROMIUM,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP evil.example 127.0.0.1, EXCLUDE localhost",
        "--remote-debugging-port=0",  # without it the browser ends at once
        url,
        start_new_session=True,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        while not await asyncio.to_thread(done.wait, 0.2):
            assert browser.returncode is None, "the browser ended before the page reported"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(browser.pid, signal.SIGKILL)
        await browser.wait()


@pytest.mark.skipif(CHROMIUM is None, reason="needs the program chromium")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1", "http://localhost"])
def test_a_page_of_another_origin_reads_and_changes_nothing(
    folder: Folder, tmp_path: Path, origin: str
) -> None:
    async def work() -> None:
        site, recorder = _EvilSite(), _Recorder()
        with site.running():
            async with (
                folder.serve(around=recorder.around) as served,
                served.client() as client,
            ):
                session = await new_session(client, SECRET)
                opened = await served.hub.runtime.session(session)
                await opened.append(user(SECRET))
                before = await served.hub.store.session(session)
                recorder.seen.clear()
                names = {
                    "BASE": served.url,
                    "REBOUND": f"http://evil.example:{served.server.port}",
                    "TOKEN": token_of("ann-admin"),
                    "SESSION": session,
                }
                page = PAGE
                for name, value in names.items():
                    page = page.replace(f'"{name}"', json.dumps(value))
                site.page = page
                await browse(f"{origin}:{site.port}/", tmp_path / "profile", site.done)
                assert len(site.report) == 19
                assert {
                    name: told
                    for name, told in site.report.items()
                    if not told.startswith("blocked")
                } == {}
                arrived = {(method, path) for method, path, _ in recorder.seen}
                assert ("GET", "/api/sessions") in arrived  # the browser did try
                assert ("POST", "/api/sessions") in arrived
                assert ("OPTIONS", "/api/sessions") in arrived
                assert {status for _, _, status in recorder.seen} <= {401, 403, 421}
                assert await served.hub.store.session(session) == before
                assert len((await client.get("/api/sessions")).json()["sessions"]) == 1

    run(work)
