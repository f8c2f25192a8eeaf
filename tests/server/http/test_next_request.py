"""The next request is shown over HTTP byte for byte as it is then sent."""

from __future__ import annotations

import json

from recollect.testing import says
from tests.server.http.face import Folder, ask, new_session, run


def test_the_next_request_is_the_one_that_is_sent(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says("North."), repeat=True) as provider:
            (folder.project / "plan.txt").write_text("go south\n")
            async with folder.serve() as served, served.client("ann-chat") as client:
                session = await new_session(client)
                await ask(client, session, "Where?")
                for kind in ("agent", "ask"):
                    given = {"prompt": "And @plan.txt?", "kind": kind}
                    path = f"/api/sessions/{session}/requests"
                    shown = await client.post(path, json=given)
                    assert shown.status_code == 200, shown.text
                    assert shown.json()["entry"] is None
                    head = (await client.get(f"/api/sessions/{session}")).json()["head"]
                    assert shown.headers["etag"] == f'"{head}"'
                    await ask(client, session, "And @plan.txt?", kind=kind)
                    assert shown.json()["body"] == json.loads(provider.requests[-1].body)
                    assert "go south" in json.dumps(shown.json()["body"])

    run(work)


def test_a_reader_sees_the_next_request_but_reads_no_files_with_a_prompt(folder: Folder) -> None:
    async def work() -> None:
        with folder.provider(says("North."), repeat=True):
            (folder.project / "plan.txt").write_text("go south\n")
            async with folder.serve() as served, served.client("root") as root:
                session = await new_session(root)
                await ask(root, session, "Where?")
                path = f"/api/sessions/{session}/requests"
                gemini = await root.post(path, json={"to": "gemini"})
                assert gemini.json()["format"] == "gemini"
                assert "contents" in gemini.json()["body"]
                unknown = await root.post(path, json={"model": "mine", "to": "anthropic"})
                assert unknown.json()["body"]["model"] == "mine"
            async with folder.serve() as served, served.client("ann-read") as reader:
                info = await served.hub.store.create(owner="ann-read")
                path = f"/api/sessions/{info.id}/requests"
                assert (await reader.post(path, json={})).status_code == 200
                refused = await reader.post(path, json={"prompt": "@plan.txt"})
                assert (refused.status_code, refused.json()["code"]) == (403, "access-denied")
                assert "go south" not in refused.text

    run(work)
