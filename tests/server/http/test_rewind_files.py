"""A rewind over HTTP takes the files along: with the right that needs, and conflicts are shown."""

from __future__ import annotations

from typing import Any

import httpx2

from recollect.testing import call, says
from tests.server.http.face import Folder, Served, ask, new_session, run

WRITES = says(call("write_file", path="plan.txt", content="north\n"))
MAKES = says(call("write_file", path="notes/new.txt", content="made\n"))


async def after_two_writes(served: Served, client: httpx2.AsyncClient) -> tuple[str, str]:
    """A session whose agent changed one file and made another; and where it was before."""
    session = await new_session(client)
    await ask(client, session, "Say hello.")
    before = (await client.get(f"/api/sessions/{session}")).json()["head"]
    await ask(client, session, "Change the plan.")
    await ask(client, session, "Make a note.")
    return session, before


def script(folder: Folder) -> Any:
    lines = (says("Hello."), WRITES, says("Changed."), MAKES, says("Made."))
    provider = folder.provider(*lines)
    (folder.project / "plan.txt").write_text("south\n")
    return provider


def test_files_go_back_with_the_session_and_forth_again(folder: Folder) -> None:
    async def work() -> None:
        with script(folder):
            async with folder.serve(mode="edit") as served, served.client() as client:
                session, before = await after_two_writes(served, client)
                plan, made = folder.project / "plan.txt", folder.project / "notes" / "new.txt"
                assert (plan.read_text(), made.read_text()) == ("north\n", "made\n")
                path = f"/api/sessions/{session}/rewind"
                shown = await client.post(path, json={"to": before, "preview": True})
                assert shown.json()["files"]["restored"] == ["plan.txt"]
                assert shown.json()["files"]["removed"] == ["notes/new.txt"]
                assert (plan.read_text(), made.exists()) == ("north\n", True)
                done = await client.post(path, json={"to": before, "files": True})
                assert done.status_code == 200, done.text
                assert done.json()["head"] == before
                assert done.json()["files"] == shown.json()["files"]
                assert (plan.read_text(), made.exists()) == ("south\n", False)
                back = {"to": done.json()["back"], "files": True}
                assert (await client.post(path, json=back)).json()["files"]["conflicts"] == []
                assert (plan.read_text(), made.read_text()) == ("north\n", "made\n")

    run(work)


def test_a_file_that_somebody_else_changed_is_left_alone_and_named(folder: Folder) -> None:
    async def work() -> None:
        with script(folder):
            async with folder.serve(mode="edit") as served, served.client() as client:
                session, before = await after_two_writes(served, client)
                plan = folder.project / "plan.txt"
                plan.write_text("mine\n")
                path = f"/api/sessions/{session}/rewind"
                body = {"to": before, "files": True, "beside": True}
                (conflict,) = (await client.post(path, json=body)).json()["files"]["conflicts"]
                assert conflict["path"] == "plan.txt"
                assert conflict["why"]
                assert str(folder.root) not in conflict["why"]
                assert plan.read_text() == "mine\n"
                assert (folder.project / conflict["beside"]).read_text() == "south\n"

    run(work)


def test_restoring_files_needs_the_right_to_approve_and_showing_them_does_not(
    folder: Folder,
) -> None:
    async def work() -> None:
        with script(folder):
            async with folder.serve(mode="edit") as served, served.client("ann-chat") as client:
                session, before = await after_two_writes(served, client)
                path = f"/api/sessions/{session}/rewind"
                refused = await client.post(path, json={"to": before, "files": True})
                assert (refused.status_code, refused.json()["code"]) == (403, "access-denied")
                assert (folder.project / "plan.txt").read_text() == "north\n"
                shown = await client.post(path, json={"to": before, "preview": True})
                assert shown.json()["files"]["restored"] == ["plan.txt"]
                alone = await client.post(path, json={"to": before})
                assert (alone.status_code, alone.json()["files"]) == (200, None)
                assert (folder.project / "plan.txt").read_text() == "north\n"

    run(work)


def test_no_file_changes_when_another_writer_was_first(folder: Folder) -> None:
    async def work() -> None:
        with script(folder):
            async with folder.serve(mode="edit") as served, served.client() as client:
                session, before = await after_two_writes(served, client)
                path = f"/api/sessions/{session}/rewind"
                stale = {"if-match": f'"{before}"'}
                body = {"to": before, "files": True}
                refused = await client.post(path, json=body, headers=stale)
                assert (refused.status_code, refused.json()["code"]) == (412, "head-moved")
                assert (folder.project / "plan.txt").read_text() == "north\n"

    run(work)


def test_files_of_another_folder_are_not_the_servers(folder: Folder) -> None:
    async def work() -> None:
        with script(folder):
            async with folder.serve(mode="edit") as served, served.client("root") as client:
                session, before = await after_two_writes(served, client)
            other = folder.root / "other"
            other.mkdir()
            async with folder.serve(project=other) as served, served.client("root") as client:
                path = f"/api/sessions/{session}/rewind"
                refused = await client.post(path, json={"to": before, "files": True})
                assert (refused.status_code, refused.json()["code"]) == (409, "cannot-edit")
                assert "another folder" in refused.json()["detail"]
            assert (folder.project / "plan.txt").read_text() == "north\n"

    run(work)
