"""Every route × every token: no token reads or changes another's session, or exceeds its right."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from recollect.server.access import Identity
from recollect.server.http.api_table import ROUTES, ApiRoute
from recollect.testing import says, user
from tests.server.http.face import (
    IDENTITIES,
    Folder,
    Served,
    new_session,
    run,
    streaming,
    take,
)

SECRET = "xylophone"
BODIES: dict[str, dict[str, Any]] = {
    "rename_session": {"title": "stolen"},
    "rewind_session": {"to": None, "preview": True},
    "edit_view": {"drop": ["ENTRY"]},
    "create_prompt": {"prompt": "Hi.", "kind": "ask"},
    "compact_session": {"use_model": False, "preview": True},
    "answer_approval": {"allow": True},
}
QUERIES = {
    "export_transcript": "?format=gemini",
    "search_entries": f"?q={SECRET}",
    "stream_entries": "?after=start",
}
MAY_READ_ALL = {"list_sessions", "search_entries", "list_models"}


async def attempt(
    client: httpx2.AsyncClient, route: ApiRoute, names: dict[str, str]
) -> httpx2.Response:
    body = BODIES.get(route.name)
    if route.name == "edit_view":
        body = {"drop": [names["entry"]]}
    path = route.path.format(**names) + QUERIES.get(route.name, "")
    if route.name == "import_transcript":
        octets = {"content-type": "application/octet-stream"}
        return await client.post(path, content=b"{}", headers=octets)
    async with client.stream(route.method, path, json=body) as response:
        if response.headers["content-type"].startswith("text/event-stream"):
            assert response.status_code < 300
            return response  # its beginning is enough
        await response.aread()
        return response


async def state_of(served: Served, session: str) -> tuple[object, ...]:
    info = await served.hub.store.session(session)
    return info, await served.hub.store.tree(session)


@pytest.mark.parametrize("who", IDENTITIES, ids=lambda one: one.name)
def test_a_token_reaches_only_its_own_sessions(folder: Folder, who: Identity) -> None:
    async def work() -> None:
        with folder.provider(says("Hello."), repeat=True):
            async with folder.serve() as served, served.client(who.name) as client:
                async with served.client("ann-chat") as owner:
                    session = await new_session(owner, SECRET)
                    opened = await served.hub.runtime.session(session)
                    (entry,) = await opened.append(user(SECRET))
                    sent = await owner.post(
                        f"/api/sessions/{session}/prompts", json={"prompt": "x", "kind": "ask"}
                    )
                    run_id = sent.json()["run"]
                    async with owner.stream("GET", f"/api/runs/{run_id}/events") as done:
                        await done.aread()
                if who.name == "ann-chat":
                    return
                names = {
                    "session": session,
                    "entry": entry.id,
                    "run": run_id,
                    "approval": "0" * 32,
                    "token": "0" * 43,
                }
                before = await state_of(served, session)
                for route in ROUTES:
                    if who.all_sessions:
                        continue
                    reply = await attempt(client, route, names)
                    check(route, who, reply)
                    assert await state_of(served, session) == before, route
                    assert client.headers  # the connection lives
                if who.all_sessions:
                    seen = await client.get(f"/api/sessions/{session}")
                    assert seen.json()["title"] == SECRET

    run(work)


def check(route: ApiRoute, who: Identity, reply: httpx2.Response) -> None:
    where = (route.method, route.path, who.name)
    named = "{session}" in route.path or "{run}" in route.path or "{token}" in route.path
    if route.right is not None and not who.may(route.right):
        assert reply.status_code == 403, where
    elif named:
        assert reply.status_code == 404, where
    if not reply.is_stream_consumed:
        return
    assert SECRET not in reply.text or route.name == "search_entries", where
    if route.name == "search_entries":
        assert reply.json()["hits"] == [], where
    if route.name == "list_sessions":
        assert reply.json()["sessions"] == [], where


@pytest.mark.parametrize("shortened", [True, False])
def test_part_of_an_id_does_not_tell_that_a_session_exists(folder: Folder, shortened: bool) -> None:
    async def work() -> None:
        async with (
            folder.serve() as served,
            served.client("ann-chat") as ann,
            served.client("bob-admin") as bob,
        ):
            session = await new_session(ann, SECRET)
            given = session[-8:] if shortened else session
            refused = await bob.get(f"/api/sessions/{given}")
            nothing = await bob.get(f"/api/sessions/{'0' * len(given)}")
            assert refused.status_code == nothing.status_code == 404
            assert refused.json()["detail"].replace(given, "") == nothing.json()["detail"].replace(
                "0" * len(given), ""
            )

    run(work)


def test_a_token_without_the_right_to_chat_changes_nothing_of_its_own(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client("ann-read") as client:
            made = await client.post("/api/sessions", json={})
            assert (made.status_code, made.json()["code"]) == (403, "access-denied")

    run(work)


def test_what_another_adds_to_a_fork_is_not_read_through_the_session_it_came_from(
    folder: Folder,
) -> None:
    async def work() -> None:
        async with (
            folder.serve() as served,
            served.client("ann-chat") as ann,
            served.client("root") as root,
        ):
            session = await new_session(ann)
            opened = await served.hub.runtime.session(session)
            (entry,) = await opened.append(user("shared"))
            forked = (await root.post(f"/api/sessions/{session}/fork", json={})).json()
            assert forked["owner"] == "root"
            assert (await ann.get(f"/api/sessions/{forked['id']}")).status_code == 404
            other = await served.hub.runtime.session(forked["id"])
            (secret,) = await other.append(user(SECRET))
            path = f"/api/sessions/{session}"
            for address in (
                f"{path}/entries/{secret.id}",
                f"{path}/entries?at={secret.id}",
                f"{path}/view?at={secret.id}",
                f"{path}/requests/{secret.id}",
            ):
                refused = await ann.get(address)
                assert (refused.status_code, refused.json()["code"]) == (404, "unknown-entry")
            for change in ({"to": secret.id}, {"to": forked["head"]}):
                moved = await ann.post(f"{path}/rewind", json=change)
                assert moved.status_code == (404 if change["to"] == secret.id else 200)
            headers = {"last-event-id": secret.id}
            async with streaming(ann, f"{path}/entries/stream", headers=headers) as events:
                told, first = await take(events, 2)
            assert (told.name, told.id) == ("rewound", "start")
            assert first.id == entry.id

    run(work)


def test_other_clients_sessions_do_not_make_a_part_of_an_id_ambiguous(folder: Folder) -> None:
    async def work() -> None:
        async with (
            folder.serve() as served,
            served.client("ann-chat") as ann,
            served.client("bob-chat") as bob,
        ):
            for _ in range(12):
                await new_session(bob, SECRET)
            session = await new_session(ann)
            found = await ann.get(f"/api/sessions/{session[:4]}")
            assert found.json()["id"] == session
            await new_session(ann, "another")
            vague = await ann.get(f"/api/sessions/{session[:4]}")
            assert vague.json()["code"] == "ambiguous-id"
            assert SECRET not in vague.text

    run(work)
