"""Everything a client sends is hostile: hosts, origins, tokens, types, lengths, nesting, bytes."""

from __future__ import annotations

import asyncio
import json
import logging

import httpx2
import pytest

from recollect import errors
from recollect.errors import RecollectError
from recollect.server.http.problem_details import ProblemDetails, describe_error
from recollect.server.http.request_guard import HttpOptions
from recollect.server.problem_kinds import PROBLEMS
from tests.server.http.face import Folder, Served, new_session, run, token_of

JSON = {"content-type": "application/json"}


async def status_of(served: Served, path: str = "/api/sessions", **headers: str) -> int:
    async with served.client() as client:
        return (await client.get(path, headers=headers)).status_code


def test_only_the_servers_own_names_are_answered(folder: Folder) -> None:
    async def work() -> None:
        options = HttpOptions(allowed_hosts=("Recollect.example:8443",))
        async with folder.serve(options) as served:
            port = served.server.port
            for host in (f"127.0.0.1:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
                assert await status_of(served, host=host) == 200
            assert await status_of(served, host="recollect.example:8443") == 200
            for host in (
                "evil.example",
                "127.0.0.1",
                f"127.0.0.1:{port}.evil.example",
                f"127.0.0.1.nip.io:{port}",
                f"localhost.:{port}",
                "recollect.example",
                f"0.0.0.0:{port}",
                "",
            ):
                assert await status_of(served, host=host) == 421, host
                assert await status_of(served, "/health/live", host=host) == 421, host

    run(work)


def test_a_page_of_another_origin_is_refused(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served:
            port = served.server.port
            assert await status_of(served, origin=f"http://127.0.0.1:{port}") == 200
            for origin in (
                "null",
                "http://evil.example",
                f"http://localhost:{port}",
                "http://127.0.0.1",
                f"http://127.0.0.1:{port}/",
                f"http://x@127.0.0.1:{port}",
                "http://127.0.0.1:99999999",
                "chrome-extension://abc",
            ):
                assert await status_of(served, origin=origin) == 403, origin
            for site in ("cross-site", "same-site"):
                assert await status_of(served, **{"sec-fetch-site": site}) == 403

    run(work)


def test_there_is_no_cors(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
            refused = await client.options("/api/sessions", headers=asked)
            assert refused.status_code == 403
            answered = await client.get("/api/sessions")
            for response in (refused, answered):
                assert not [h for h in response.headers if h.startswith("access-control")]
                assert response.headers["x-content-type-options"] == "nosniff"
                assert response.headers["cache-control"] == "no-store"
                assert response.headers["content-security-policy"].startswith("default-src 'none'")

    run(work)


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        "Basic dXNlcjpwYXNz",
        f"Bearer {token_of('ann-chat')}x",
        f"Token {token_of('ann-chat')}",
        "Bearer " + "x" * 5_000,
    ],
)
def test_a_wrong_or_missing_token_is_refused(folder: Folder, given: str | None) -> None:
    async def work() -> None:
        headers = {} if given is None else {"authorization": given}
        async with folder.serve() as served:
            client = httpx2.AsyncClient(base_url=served.url, trust_env=False)
            async with client:
                for path in ("/api/sessions", "/metrics", "/v1/models", "/nothing"):
                    refused = await client.get(path, headers=headers)
                    assert refused.status_code == 401
                    assert refused.headers["www-authenticate"].startswith("Bearer")
                for path in ("/health/live", "/health/ready", "/openapi.json"):
                    assert (await client.get(path, headers=headers)).status_code == 200

    run(work)


def test_a_token_in_the_address_is_not_taken_and_none_is_logged(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        caplog.set_level(logging.DEBUG)
        async with folder.serve() as served:
            async with httpx2.AsyncClient(base_url=served.url, trust_env=False) as client:
                token = token_of("ann-chat")
                refused = await client.get(f"/api/sessions?token={token}&access_token={token}")
                assert refused.status_code == 401
            async with served.client("ann-chat") as client:
                await client.get("/api/sessions")

    run(work)
    logged = [r for r in caplog.records if r.name.startswith(("recollect", "uvicorn", "asyncio"))]
    assert "token-of" not in " ".join(record.getMessage() for record in logged)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"{", "bad-json"),
        (b"\xff\xfe", "bad-json"),
        (b'{"title": "\xed\xa0\x80"}', "bad-json"),
        (b'{"title": NaN}', "bad-json"),
        (b'{"title": 1e999}', "bad-json"),
        (b'{"title": "a", "title": "b"}', "bad-json"),
        (b"[" * 101 + b"]" * 101, "bad-json"),
        (b"[" * 100_000 + b"]" * 100_000, "bad-json"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "bad-json"),
        (b'{"title": ' + b"9" * 5_000 + b"}", "bad-json"),
        (b"[]", "invalid"),
        (b"null", "invalid"),
        (b'{"title": 5}', "invalid"),
        (b'{"tilte": "a"}', "invalid"),
        (b'{"title": "' + b"x" * 2_000 + b'"}', "invalid"),
        (b'{"title": "' + b"x" * 9_000_000 + b'"}', "body-too-large"),
    ],
    ids=range(16),
)
def test_a_bad_body_is_a_typed_error_and_the_server_lives_on(
    folder: Folder, content: bytes, code: str
) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            refused = await client.post("/api/sessions", content=content, headers=JSON)
            assert 400 <= refused.status_code < 500
            assert refused.headers["content-type"] == "application/problem+json"
            assert refused.json()["code"] == code
            assert len(refused.text) < 1_000
            await new_session(client, "fine")

    run(work)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_body_that_a_form_can_send_is_refused(folder: Folder, kind: str) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            headers = {"content-type": kind} if kind else {}
            refused = await client.post("/api/sessions", content=b"{}", headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (415, "content-type")

    run(work)


def test_a_body_without_end_is_cut_off_at_the_limit(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve(HttpOptions(body_limit=100_000)) as served:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
            head = (
                f"POST /api/sessions HTTP/1.1\r\nhost: 127.0.0.1:{served.server.port}\r\n"
                f"authorization: Bearer {token_of('ann-chat')}\r\n"
                "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            writer.write(head.encode())
            sent = 0

            async def flood() -> None:
                nonlocal sent
                while True:
                    writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
                    sent += 4096
                    await writer.drain()

            flooding = asyncio.create_task(flood())
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 413")
            await asyncio.wait([flooding])  # the connection is closed under it
            assert isinstance(flooding.exception(), ConnectionError)
            writer.close()
            assert sent < 60_000_000

    run(work)


@pytest.mark.parametrize(
    "path",
    [
        "/api/sessions/%00",
        "/api/sessions/%ff%fe",
        "/api/sessions/..%2f..%2fetc",
        "/api/sessions/" + "9" * 5_000,
        "/api/sessions/%F0%9F%98%80",
        "/api/sessions?limit=0",
        "/api/sessions?limit=501",
        "/api/sessions?limit=x",
        "/api/sessions?limit=1&limit=2",
        "/api/sessions?limt=1",
        "/api/sessions?cursor=%ff",
        "/api/sessions?" + "&".join(f"a{n}=1" for n in range(100)),
        "/api/search?q=%22",
        "/api/search?q=%00&session=%00",
        "/api/runs/x",
        "/api/nothing",
        "//api/sessions",
    ],
)
def test_an_absurd_address_is_a_clear_error(folder: Folder, path: str) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            answered = await client.get(path)
            assert answered.status_code < 500, answered.text
            if not answered.is_success:
                problem = answered.json()
                assert problem["status"] == answered.status_code
                assert problem["detail"]

    run(work)


def test_a_flood_of_bad_requests_leaves_the_server_answering(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)

            async def bad(number: int) -> int:
                path = f"/api/sessions/{session if number % 2 else 'x'}/edits"
                content = json.dumps({"pin": ["0" * (number % 70)]}).encode()[: number % 40]
                return (await client.post(path, content=content, headers=JSON)).status_code

            codes = await asyncio.gather(*(bad(number) for number in range(500)))
            assert {code // 100 for code in codes} == {4}
            assert (await client.get("/health/ready")).status_code == 200

    run(work)


# --- errors --------------------------------------------------------------------------------------


def _classes(root: type[RecollectError]) -> set[type[RecollectError]]:
    below = {one for one in root.__subclasses__() if one.__module__ == errors.__name__}
    return {root}.union(*map(_classes, below))


def test_every_error_class_has_one_row() -> None:
    assert set(PROBLEMS) == _classes(RecollectError)


def test_an_unknown_error_tells_nothing_about_itself(caplog: pytest.LogCaptureFixture) -> None:
    problem = describe_error(RuntimeError("/home/secret/path"))
    assert isinstance(problem, ProblemDetails)
    assert problem.status == 500
    assert "secret" not in problem.detail
    assert "/home/secret/path" in caplog.text


def test_an_error_of_the_store_does_not_tell_its_path() -> None:
    problem = describe_error(errors.CannotWrite("/home/secret/recollect.db", "No space left"))
    assert problem.status == 507
    assert "secret" not in problem.detail


def test_a_body_with_two_lengths_is_refused_and_the_connection_closed(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
            head = f"Host: 127.0.0.1:{served.server.port}\r\nContent-Type: application/json\r\n"
            token = f"Authorization: Bearer {token_of('ann-chat')}\r\n"
            lengths = "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"
            smuggled = f"GET /api/models HTTP/1.1\r\n{head}{token}\r\n"
            sent = f"POST /api/sessions HTTP/1.1\r\n{head}{token}{lengths}\r\n0\r\n\r\n{smuggled}"
            writer.write(sent.encode())
            answer = await reader.read()  # to the end
            writer.close()
            assert answer.count(b"HTTP/1.1 ") == 1
            assert b"two-lengths" in answer
            async with served.client("ann-chat") as client:
                assert (await client.get("/api/sessions")).json()["sessions"] == []

    run(work)


def test_too_many_headers_are_refused(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            many = {f"x-{number}": "y" for number in range(10_000)}
            refused = await client.get("/api/sessions", headers=many)
            assert refused.status_code in (400, 431)
            assert (await client.get("/api/sessions")).status_code == 200

    run(work)


def test_a_blank_prompt_is_refused(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider():
            async with folder.serve() as served, served.client() as client:
                session = await new_session(client)
                path = f"/api/sessions/{session}/prompts"
                refused = await client.post(path, json={"prompt": " \n"})
                assert (refused.status_code, refused.json()["code"]) == (400, "bad-input")

    run(work)
