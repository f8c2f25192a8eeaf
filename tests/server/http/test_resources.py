"""Our own face over a real server: what each route does."""

from __future__ import annotations

import json

import pytest

from recollect.testing import call, model, says, user
from tests.server.http.face import Folder, ask, kinds, new_session, run


def test_a_session_is_created_listed_renamed_trashed_and_restored(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            made = await client.post("/api/sessions", json={"title": "First"})
            assert made.status_code == 201
            session = made.json()["id"]
            assert made.headers["location"] == f"/api/sessions/{session}"
            assert made.json()["owner"] == "ann-admin"
            listed = (await client.get("/api/sessions")).json()
            assert [one["title"] for one in listed["sessions"]] == ["First"]
            path = f"/api/sessions/{session}"
            renamed = await client.patch(path, json={"title": "Second"})
            assert renamed.json()["title"] == "Second"
            assert (await client.delete(path)).json()["trashed"]
            assert (await client.get("/api/sessions")).json()["sessions"] == []
            trash = (await client.get("/api/sessions?trashed=true")).json()["sessions"]
            assert [one["id"] for one in trash] == [session]
            refused = await client.patch(path, json={"title": "Third"})
            assert (refused.status_code, refused.json()["code"]) == (409, "session-trashed")
            assert (await client.post(f"{path}/restore")).json()["trashed"] is None

    run(work)


def test_sessions_are_listed_page_by_page(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            made = [await new_session(client, f"number {n}") for n in range(7)]
            found: list[str] = []
            cursor = ""
            while True:
                page = (await client.get(f"/api/sessions?limit=3&cursor={cursor}")).json()
                found += [one["id"] for one in page["sessions"]]
                cursor = page["next"]
                if cursor is None:
                    break
            assert found == made[::-1]
            wrong = await client.get("/api/sessions?cursor=nonsense")
            assert (wrong.status_code, wrong.json()["code"]) == (400, "bad-input")

    run(work)


def test_a_prompt_is_answered_and_everything_of_it_can_be_read(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says("Hello there.")) as provider:
            async with folder.serve() as served, served.client() as client:
                session = await new_session(client)
                events = await ask(client, session, "Hi.", kind="ask")
                assert events[0].name == "init"
                assert events[-1].name == "result"
                assert events[-1].data["result"] == "Hello there."
                ids = [int(event.id) for event in events]
                assert ids == sorted(set(ids))
                path = f"/api/sessions/{session}"
                page = (await client.get(f"{path}/entries")).json()
                assert page["next"] is None
                assert "request" in kinds(page["entries"])
                replies = (await client.get(f"{path}/entries?kind=message&role=model")).json()
                (reply,) = replies["entries"]
                text = reply["entry"]["body"]["parts"][0]["text"]
                assert text == "Hello there."
                view = (await client.get(f"{path}/view")).json()
                assert view["items"][-1]["message"]["parts"][0]["text"] == text
                assert view["tokens"] == sum(item["tokens"] for item in view["items"])
                explained = (await client.get(f"{path}/explain")).json()
                assert explained["tokens"] == view["tokens"]
                (asked,) = (await client.get(f"{path}/entries?kind=request")).json()["entries"]
                sent = await client.get(f"{path}/requests/{asked['entry']['id']}")
                assert "the very bytes" in sent.json()["verdict"]
                body = sent.content.split(b'"body":', 1)[1][:-1]
                assert body == provider.requests[0].body

    run(work)


def test_entries_are_read_by_position_from_both_ends_and_as_of_an_earlier_one(
    folder: Folder,
) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)
            opened = await served.hub.runtime.session(session)
            added = await opened.append(*(user(f"word {n}") for n in range(10)))
            path = f"/api/sessions/{session}/entries"
            page = (await client.get(f"{path}?start=2&limit=3")).json()
            assert [one["position"] for one in page["entries"]] == [2, 3, 4]
            assert page["next"] == 5
            page = (await client.get(f"{path}?start=-2")).json()
            assert [one["position"] for one in page["entries"]] == [8, 9]
            assert page["next"] is None
            page = (await client.get(f"{path}?at={added[3].id}")).json()
            assert [one["entry"]["id"] for one in page["entries"]] == [e.id for e in added[:4]]
            page = (await client.get(f"{path}?role=user&limit=4&start=3")).json()
            assert page["next"] == 7
            page = (await client.get(f"{path}?role=model")).json()
            assert (page["entries"], page["next"]) == ([], None)
            detail = (await client.get(f"{path}/{added[5].id}")).json()
            assert detail["entry"]["id"] == added[5].id

    run(work)


def test_pins_drops_and_their_undoing_are_edits(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)
            opened = await served.hub.runtime.session(session)
            added = await opened.append(*(user(f"word {n} " * 30) for n in range(4)))
            path = f"/api/sessions/{session}"
            edited = await client.post(
                f"{path}/edits", json={"drop": [added[1].id], "pin": [added[0].id]}
            )
            assert edited.status_code == 200
            assert edited.json()["tokens_after"] < edited.json()["tokens_before"]
            view = (await client.get(f"{path}/view")).json()
            assert [gone["entry"] for gone in view["left_out"]] == [added[1].id]
            assert view["items"][0]["pinned"]
            await client.post(f"{path}/edits", json={"restore": [added[1].id]})
            assert (await client.get(f"{path}/view")).json()["left_out"] == []
            empty = await client.post(f"{path}/edits", json={})
            assert empty.status_code == 400

    run(work)


def test_a_compaction_is_previewed_applied_and_undone(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says("unused")):
            async with folder.serve() as served, served.client() as client:
                session = await new_session(client)
                opened = await served.hub.runtime.session(session)
                await opened.append(
                    *(
                        m
                        for n in range(30)
                        for m in (user(f"do {n} " * 60), model(f"did {n} " * 60))
                    )
                )
                path = f"/api/sessions/{session}/compaction"
                body = {"use_model": False, "budget": 2000, "instructions": "keep names"}
                shown = await client.post(path, json={**body, "preview": True})
                assert shown.status_code == 200, shown.text
                assert shown.json()["entry"] is None
                assert shown.json()["snapshot"]
                head = (await client.get(f"/api/sessions/{session}")).json()["head"]
                done = (await client.post(path, json=body)).json()
                assert done["entry"] not in (None, head)
                assert done["tokens_after"] < done["tokens_before"]
                undone = await client.delete(path)
                assert undone.json()["tokens_after"] > undone.json()["tokens_before"]
                again = await client.delete(path)
                assert (again.status_code, again.json()["code"]) == (409, "cannot-edit")

    run(work)


def test_a_session_is_forked_and_rewound(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client, "Trunk")
            opened = await served.hub.runtime.session(session)
            added = await opened.append(*(user(f"word {n}") for n in range(4)))
            path = f"/api/sessions/{session}"
            forked = await client.post(f"{path}/fork", json={"at": added[1].id})
            assert forked.status_code == 201
            assert forked.json()["head"] == added[1].id
            assert forked.json()["owner"] == "ann-admin"
            rewound = await client.post(f"{path}/rewind", json={"to": added[2].id})
            assert rewound.json()["entries"] == 3
            assert (await client.post(f"{path}/rewind", json={"to": None})).json()["entries"] == 0
            wrong = await client.post(f"{path}/rewind", json={"to": "0" * 32})
            assert (wrong.status_code, wrong.json()["code"]) == (404, "unknown-entry")
            missing = await client.post(f"{path}/rewind", json={})
            assert missing.status_code == 422

    run(work)


def test_words_are_found(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)
            opened = await served.hub.runtime.session(session)
            await opened.append(user("the token bucket limiter"), model("速率限制 is here"))
            found = (await client.get("/api/search", params={"q": "token bucket"})).json()
            assert [hit["session"]["id"] for hit in found["hits"]] == [session]
            found = (await client.get("/api/search", params={"q": "速率限制"})).json()
            assert len(found["hits"]) == 1
            found = (
                await client.get("/api/search", params={"q": "bucket", "session": session[-8:]})
            ).json()
            assert len(found["hits"]) == 1
            assert (await client.get("/api/search")).status_code == 422

    run(work)


def test_a_session_is_exported_and_imported_again(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client, "Out")
            opened = await served.hub.runtime.session(session)
            await opened.append(user("what is up?"), model("not much"))
            path = f"/api/sessions/{session}/export"
            exported = await client.get(path, params={"format": "gemini"})
            assert exported.status_code == 200
            assert "attachment" in exported.headers["content-disposition"]
            async with served.client("bob-chat") as bob:
                octets = {"content-type": "application/octet-stream"}
                made = await bob.post(
                    "/api/imports?name=../../x.json", content=exported.content, headers=octets
                )
                assert made.status_code == 201, made.text
                other = made.json()["session"]
                assert other != session
                words = (await bob.get(f"/api/sessions/{other}/entries?role=user")).json()
                assert words["entries"][0]["entry"]["body"]["parts"][0]["text"] == "what is up?"
                again = await bob.post(
                    "/api/imports?name=x.json", content=exported.content, headers=octets
                )
                assert (again.status_code, again.json()["added"]) == (200, 0)
                assert again.json()["session"] == other
                strange = await bob.post("/api/imports", content=b"\0\1", headers=octets)
                assert (strange.status_code, strange.json()["code"]) == (415, "unknown-format")
            unknown = await client.get(path, params={"format": "word"})
            assert unknown.status_code == 422

    run(work)


def test_an_import_cannot_reach_a_session_of_somebody_else(folder: Folder) -> None:
    """Both import the same file; each has one session, and neither grows."""

    async def work() -> None:
        record = {
            "sessionId": "11111111-2222-3333-4444-555555555555",
            "projectHash": "0" * 64,
            "startTime": "2026-11-01T10:00:00.000Z",
            "lastUpdated": "2026-11-01T10:00:00.000Z",
            "messages": [
                {
                    "id": "a",
                    "timestamp": "2026-11-01T10:00:00.000Z",
                    "type": "user",
                    "content": "mine",
                }
            ],
        }
        longer = {
            **record,
            "messages": [*record["messages"], {**record["messages"][0], "id": "b"}],  # type: ignore[dict-item]
        }
        octets = {"content-type": "application/octet-stream"}
        async with (
            folder.serve() as served,
            served.client("ann-chat") as ann,
            served.client("bob-chat") as bob,
        ):
            first = await ann.post(
                "/api/imports?name=session-x.json",
                content=json.dumps(record).encode(),
                headers=octets,
            )
            assert first.status_code == 201, first.text
            before = (await ann.get(f"/api/sessions/{first.json()['session']}")).json()
            second = await bob.post(
                "/api/imports?name=session-x.json",
                content=json.dumps(longer).encode(),
                headers=octets,
            )
            assert second.status_code == 201, second.text
            assert second.json()["session"] != first.json()["session"]
            after = (await ann.get(f"/api/sessions/{first.json()['session']}")).json()
            assert after == before

    run(work)


def test_a_download_works_once(folder: Folder) -> None:
    async def work() -> None:
        async with folder.serve() as served:
            token = served.downloads.register("a “b”.txt", b"content").token
            async with served.client() as client:
                del client.headers["authorization"]
                got = await client.get(f"/downloads/{token}")
                assert got.content == b"content"
                assert got.headers["content-type"] == "application/octet-stream"
                assert (await client.get(f"/downloads/{token}")).status_code == 404

    run(work)


def test_models_are_listed_without_their_keys(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says("x")):
            async with folder.serve() as served, served.client("ann-read") as client:
                listed = await client.get("/api/models")
                mine = next(one for one in listed.json()["models"] if one["name"] == "mine")
                assert mine["ready"]
                assert mine["default"]
                assert "sk-fake" not in listed.text

    run(work)


def test_metrics_count_requests_and_prompts(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says("Hello.")):
            async with folder.serve() as served, served.client() as client:
                session = await new_session(client)
                await ask(client, session, "Hi.", kind="ask")
                text = (await client.get("/metrics")).text
                assert "recollect_prompts_total 1.0" in text
                assert 'route="/api/sessions",status="201"} 1.0' in text
                assert session not in text

    run(work)


@pytest.mark.parametrize("model", ["no-such-model", "openai/gpt-5"])
def test_a_model_that_cannot_be_called_is_refused_before_anything_is_stored(
    folder: Folder, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        async with folder.serve() as served, served.client() as client:
            session = await new_session(client)
            refused = await client.post(
                f"/api/sessions/{session}/prompts", json={"prompt": "Hi.", "model": model}
            )
            assert refused.status_code == 422
            assert refused.json()["code"] in ("unknown-model", "no-api-key")
            assert (await client.get(f"/api/sessions/{session}")).json()["entries"] == 0

    run(work)


def test_a_tool_call_is_shown_in_the_events(folder: Folder) -> None:
    async def work() -> None:
        (folder.project / "a.txt").write_text("forty-two\n")
        with folder.provider(says(call("read_file", path="a.txt")), says("It says 42.")):
            async with folder.serve() as served, served.client() as client:
                session = await new_session(client)
                events = await ask(client, session, "What is in a.txt?")
                (used,) = [event for event in events if event.name == "tool_use"]
                assert used.data["tool_name"] == "read_file"
                (got,) = [event for event in events if event.name == "tool_result"]
                assert "forty-two" in got.data["content"]
                entries = (await client.get(f"/api/sessions/{session}/entries")).json()["entries"]
                asked = next(
                    one["entry"]
                    for one in entries
                    if any(p["type"] == "call" for p in one["entry"]["body"].get("parts", ()))
                )
                detail = await client.get(f"/api/sessions/{session}/entries/{asked['id']}")
                assert len(detail.json()["beside"]) == 1

    run(work)
