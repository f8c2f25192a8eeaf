"""A client's sessions are the client's alone, for its model too; and the user's things stay theirs.

A model that a client prompts must not find for it what the client could not read itself: other
clients' sessions, the user's own memory, the data directory, secrets in the home.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.server.session_hub import HubLimits
from recollect.testing import call, says, user
from tests.server.http.face import Folder, Served, ask, new_session, run

SECRET, HIDDEN = "xylophone", "buried-key"


async def say_in(served: Served, name: str, text: str) -> str:
    """A session of a client, or of the user, in which this was said."""
    async with served.client(name) as client:
        session = await new_session(client)
    await (await served.hub.runtime.session(session)).append(user(text))
    return session


@pytest.mark.parametrize("scope", ["project", "session"])
def test_a_model_finds_only_what_its_sessions_owner_said(folder: Folder, scope: str) -> None:
    async def work() -> None:
        search = call("search_history", words=SECRET, scope=scope)
        with folder.provider(says(search), says("I looked.")) as provider:
            async with folder.serve() as served, served.client("ann-chat") as ann:
                await say_in(served, "bob-chat", f"bob's {SECRET} is in the cellar")
                own = await served.hub.store.create(project=served.hub.runtime.project)
                await (await served.hub.runtime.session(own.id)).append(user(f"my {SECRET}"))
                await say_in(served, "ann-chat", f"ann's {SECRET} is on the roof")
                await ask(ann, await new_session(ann), "Where is it?")
            seen = json.dumps([request.json for request in provider.requests])
            assert "cellar" not in seen
            assert f"my {SECRET}" not in seen
            assert ("on the roof" in seen) is (scope == "project")

    run(work)


def test_a_sub_agents_session_belongs_to_the_owner_of_its_callers(folder: Folder) -> None:
    async def work() -> None:
        task = call("task", description="look", prompt="Look around.")
        with folder.provider(says(task), says("Nothing there."), says("Done.")):
            async with folder.serve() as served, served.client("ann-chat") as ann:
                await ask(ann, await new_session(ann), "Look.")
                sessions = await served.hub.store.sessions()
                assert [one.owner for one in sessions] == ["ann-chat", "ann-chat"]

    run(work)


def test_the_users_own_memory_is_not_for_clients(folder: Folder) -> None:
    async def work() -> None:
        save = call("save_memory", fact="ann was here")
        with folder.provider(says(save), says("No."), says("Hello.")) as provider:
            memory = folder.root / "home" / "AGENTS.md"
            memory.write_text(f"The user's {SECRET} is in the attic.\n")
            async with folder.serve(mode="free") as served, served.client("ann-admin") as ann:
                await ask(ann, await new_session(ann), "What do you know?")
                sent = [json.dumps(request.json) for request in provider.requests]
                assert not any("attic" in body for body in sent)
                assert not any('"name": "save_memory", "desc' in body for body in sent)
                assert "ann was here" not in memory.read_text()
                own = await served.hub.store.create(project=served.hub.runtime.project)
                async with served.client("root") as root:
                    await ask(root, own.id, "And now?")
                assert "attic" in json.dumps(provider.requests[-1].json)

    run(work)


@pytest.mark.parametrize("path", ["home/server-token", "home", ".ssh/id_rsa", "key"])
def test_no_prompt_reads_secrets_or_recollects_own_data(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("HOME", str(folder.root))

    async def work() -> None:
        script = (
            says(call("read_file", path=path)),
            says(call("list_directory", path=path)),
            says(call("search_file_content", pattern="buried", path=".")),
            says("I could not."),
        )
        with folder.provider(*script) as provider:
            _put(folder.root / ".ssh" / "id_rsa", HIDDEN)
            _put(folder.root / "home" / "server-token", HIDDEN)
            (folder.root / "key").symlink_to(folder.root / ".ssh" / "id_rsa")
            async with (
                folder.serve(mode="free", project=folder.root) as served,
                served.client("ann-chat") as ann,
            ):
                await ask(ann, await new_session(ann), f"Read @{path} and @{folder.root / path}.")
            results = json.dumps(provider.requests[-1].json["messages"])
            assert HIDDEN not in results
            assert "is private" in results

    run(work)


def _put(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


def test_a_token_that_makes_sessions_without_end_is_told_to_wait_and_others_are_not(
    folder: Folder,
) -> None:
    async def work() -> None:
        limits = HubLimits(session_burst=3, sessions_per_second=0.001)
        async with (
            folder.serve(limits=limits) as served,
            served.client("ann-chat") as ann,
            served.client("bob-chat") as bob,
        ):
            session = await new_session(ann)
            for _ in range(2):
                forked = await ann.post(f"/api/sessions/{session}/fork", json={})
                assert forked.status_code == 201
            octets = {"content-type": "application/octet-stream"}
            for again in (
                await ann.post("/api/sessions", json={}),
                await ann.post(f"/api/sessions/{session}/fork", json={}),
                await ann.post("/api/imports", content=b"{}", headers=octets),
            ):
                assert (again.status_code, again.json()["code"]) == (503, "server-busy")
                assert "ann-chat has made 3 sessions in a short time" in again.json()["detail"]
                assert again.headers["retry-after"]
            listed = (await ann.get("/api/sessions")).json()["sessions"]
            assert len(listed) == 3
            await new_session(bob)

    run(work)
