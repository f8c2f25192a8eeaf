"""Approvals over HTTP: a tool that changes files waits for a client's yes; silence is a no."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from recollect.server.session_hub import HubLimits
from recollect.testing import call, says
from tests.server.http.face import Folder, SseEvent, ask, new_session, run, streaming

WRITE = call("write_file", path="made.txt", content="made by a tool\n")


async def answered(
    client: httpx2.AsyncClient, session: str, *, allow: bool | None
) -> tuple[list[SseEvent], dict[str, Any]]:
    """The events of a prompt whose approval request gets this answer, and the last answer."""
    events, last = list[SseEvent](), dict[str, Any]()
    given = {"prompt": "Write it.", "approve": True, "stream": True}
    path = f"/api/sessions/{session}/prompts"
    async with streaming(client, path, "POST", json=given) as stream:
        async for event in stream:
            events.append(event)
            if event.name == "approval_requested" and allow is not None:
                runs = (await client.get(f"/api/sessions/{session}/runs")).json()["runs"]
                last["path"] = f"/api/runs/{runs[0]['run']}/approvals/{event.data['approval']}"
                reply = await client.post(last["path"], json={"allow": allow})
                assert reply.status_code == 200, reply.text
    return events, last


@pytest.mark.parametrize("allow", [True, False])
def test_a_client_decides_whether_a_file_is_written(folder: Folder, allow: bool) -> None:
    async def work() -> None:
        with folder.provider(says(WRITE), says("Done.")):
            async with folder.serve(mode="ask") as served, served.client() as client:
                session = await new_session(client)
                events, last = await answered(client, session, allow=allow)
                (asked,) = [event for event in events if event.name == "approval_requested"]
                assert asked.data["tool_name"] == "write_file"
                assert asked.data["tool_input"]["content"] == "made by a tool\n"
                (decided,) = [event for event in events if event.name == "approval_decided"]
                assert decided.data["allowed"] is allow
                assert decided.data["by"] == "ann-admin"
                assert (folder.project / "made.txt").exists() is allow
                again = await client.post(last["path"], json={"allow": True})
                assert again.status_code == 404

    run(work)


def test_without_an_answer_in_time_the_answer_is_no(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says(WRITE), says("I may not.")):
            limits = HubLimits(approval_seconds=0.2)
            async with folder.serve(limits=limits, mode="ask") as served, served.client() as client:
                session = await new_session(client)
                events, _ = await answered(client, session, allow=None)
                (decided,) = [event for event in events if event.name == "approval_decided"]
                assert (decided.data["allowed"], decided.data["by"]) == (False, "timeout")
                assert not (folder.project / "made.txt").exists()
                assert events[-1].data["permission_denials"]

    run(work)


def test_a_client_that_cannot_be_asked_is_not_waited_for(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says(WRITE), says("I may not.")):
            async with folder.serve(mode="ask") as served, served.client() as client:
                session = await new_session(client)
                events = await ask(client, session, "Write it.")
                assert "approval_requested" not in {event.name for event in events}
                assert not (folder.project / "made.txt").exists()

    run(work)


def test_nobody_else_can_answer_or_cancel(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says(WRITE), says("Done.")):
            async with (
                folder.serve(mode="ask") as served,
                served.client("ann-admin") as ann,
                served.client("bob-admin") as bob,
                served.client("ann-read") as reader,
            ):
                session = await new_session(ann)
                given = {"prompt": "Write it.", "approve": True}
                sent = await ann.post(f"/api/sessions/{session}/prompts", json=given)
                path = sent.headers["location"]
                async with streaming(ann, f"{path}/events") as events:
                    async for event in events:
                        if event.name == "approval_requested":
                            approval = f"{path}/approvals/{event.data['approval']}"
                            stolen = await bob.post(approval, json={"allow": True})
                            assert stolen.status_code == 404
                            assert (await bob.post(f"{path}/cancel")).status_code == 404
                            assert (await bob.get(f"{path}/events")).status_code == 404
                            weak = await reader.post(approval, json={"allow": True})
                            assert weak.status_code == 403
                            await ann.post(approval, json={"allow": False})
                assert not (folder.project / "made.txt").exists()

    run(work)


def test_a_cancelled_run_ends_interrupted(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says("late", delay=60)):
            async with folder.serve() as served, served.client() as client:
                session = await new_session(client)
                given = {"prompt": "Think.", "kind": "ask"}
                sent = await client.post(f"/api/sessions/{session}/prompts", json=given)
                path = sent.headers["location"]
                async with streaming(client, f"{path}/events") as events:
                    async for event in events:
                        if event.name == "init":
                            assert (await client.post(f"{path}/cancel")).status_code == 202
                assert event.data["is_error"]
                assert "interrupted" in event.data["subtype"]
                assert (await client.get(path)).json()["state"] == "done"

    run(work)


def test_a_token_that_only_chats_cannot_approve(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says(WRITE), says("I may not.")):
            async with folder.serve(mode="ask") as served, served.client("ann-chat") as ann:
                session = await new_session(ann)
                events = await ask(ann, session, "Write it.", approve=True)
                assert "approval_requested" not in {event.name for event in events}
                assert not (folder.project / "made.txt").exists()
                run_id = "0" * 32
                refused = await ann.post(f"/api/runs/{run_id}/approvals/0", json={"allow": True})
                assert refused.json()["code"] == "access-denied"

    run(work)
