"""`Session.explain` after real requests: what the last one cost, what broke the prompt cache."""

from __future__ import annotations

from pathlib import Path

import recollect
from recollect.codecs.openai import OpenAIWire
from recollect.entries import Elide, Elided, Message, Text, Usage
from recollect.models.http_model import HttpModel
from tests.models.server import QUICK, chosen, http, serving
from tests.session.test_session import in_store

REPLY = Message(
    role="model",
    parts=(Text(text="Hello."),),
    finish="stop",
    usage=Usage(input=900, cached=700, output=3, total=903),
)
HELLO = http(b"".join(OpenAIWire(model="m").encode_stream(REPLY)))


def test_the_last_request_is_explained_with_its_cost_and_its_cache(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create(title="limiter")
        assert (await session.explain()).last_request is None
        async with serving(HELLO) as on, HttpModel(chosen(on.url), QUICK) as model:
            agent = recollect.Agent(model)
            for prompt in ("One?", "Two?"):
                session = (await agent.run(prompt, session)).session
            held = (await session.explain()).last_request
            assert held is not None
            assert held.cache is not None
            assert (held.usage, held.cache.held) == (REPLY.usage, True)
            assert on.asked[1].body[: held.cache.at] == on.asked[0].body[: held.cache.at]
            first = session.view().items[0].entry
            what = (Elided(entry=first.id, placeholder="[gone]"),)
            edit = Elide(rule="stale-shell", items=what, reason="over budget")
            (elide,) = await session.append(edit)
            session = (await agent.run("Three?", session)).session
            explained = await session.explain()
        broken = explained.last_request
        assert broken is not None
        assert broken.cache is not None
        assert (broken.cache.entry, broken.cache.edit) == (first.id, elide.id)
        (gone,) = explained.left_out
        assert gone.why_now == "over budget"
        lines = str(explained).splitlines()
        assert lines[1].startswith("last request: 900 tokens (700 cached, 200 fresh), we count ")
        assert lines[2].startswith(f"prompt cache: broken at byte {broken.cache.at:,} of ")
        assert lines[2].endswith(": left out by stale-shell: over budget")
        assert "(over budget): One?" in lines[-1]

    in_store(tmp_path, story)
