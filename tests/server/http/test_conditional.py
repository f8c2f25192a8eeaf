"""Conditional requests: a head that a client knows is not sent again, one that moved is a 412."""

from __future__ import annotations

import asyncio

import pytest

from recollect.testing import says, user
from tests.server.http.face import Folder, new_session, run

READS = ("", "/entries", "/view", "/explain")


@pytest.mark.parametrize("resource", READS)
def test_what_a_client_has_is_not_sent_again_until_the_head_moves(
    folder: Folder, resource: str
) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)
            opened = await served.hub.runtime.session(session)
            (first,) = await opened.append(user("a"))
            path = f"/api/sessions/{session}{resource}"
            tag = (await client.get(path)).headers["etag"]
            assert tag == f'"{first.id}"'
            same = await client.get(path, headers={"if-none-match": f'"x", {tag}'})
            assert (same.status_code, same.content) == (304, b"")
            await opened.append(user("b"))
            assert (await client.get(path, headers={"if-none-match": tag})).status_code == 200

    run(work)


def test_a_session_that_went_to_the_trash_is_sent_again(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            path = f"/api/sessions/{await new_session(client, 'x')}"
            tag = (await client.get(path)).headers["etag"]
            await client.delete(path)
            assert (await client.get(path, headers={"if-none-match": tag})).status_code == 200

    run(work)


@pytest.mark.parametrize(
    ("method", "resource", "body"),
    [
        ("POST", "/edits", {"drop": ["FIRST"]}),
        ("POST", "/prompts", {"prompt": "Hi.", "kind": "ask"}),
        ("POST", "/rewind", {"to": "FIRST"}),
        ("POST", "/fork", {}),
        ("PATCH", "", {"title": "T"}),
        ("DELETE", "", None),
    ],
)
def test_a_change_for_another_head_is_refused_and_changes_nothing(
    folder: Folder, method: str, resource: str, body: dict[str, object] | None
) -> None:
    async def work() -> None:
        with folder.provider(says("Hello."), repeat=True):
            async with folder.serve() as served, served.client() as client:
                session = await new_session(client)
                opened = await served.hub.runtime.session(session)
                first, second = await opened.append(user("a"), user("b"))
                path = f"/api/sessions/{session}"
                given = {
                    key: [first.id] if key == "drop" else first.id if value == "FIRST" else value
                    for key, value in (body or {}).items()
                }
                sent = None if body is None else given
                old = {"if-match": f'"{first.id}"'}
                refused = await client.request(method, path + resource, json=sent, headers=old)
                assert (refused.status_code, refused.json()["code"]) == (412, "head-moved")
                now = (await client.get(path)).json()
                assert (now["head"], now["trashed"]) == (second.id, None)
                new = {"if-match": f'"{second.id}"'}
                done = await client.request(method, path + resource, json=sent, headers=new)
                assert done.status_code < 300, done.text

    run(work)


def test_of_edits_at_the_same_time_for_one_head_exactly_one_is_made(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)
            opened = await served.hub.runtime.session(session)
            added = await opened.append(*(user(f"word {n}") for n in range(8)))
            path, tag = f"/api/sessions/{session}/edits", f'"{added[-1].id}"'
            replies = await asyncio.gather(
                *(
                    client.post(path, json={"drop": [one.id]}, headers={"if-match": tag})
                    for one in added[:6]
                )
            )
            codes = sorted(reply.status_code for reply in replies)
            assert codes == [200, 412, 412, 412, 412, 412]

    run(work)
