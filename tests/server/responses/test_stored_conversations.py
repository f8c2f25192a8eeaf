"""Conversations of the official client: what they hold, what is deleted of them, and compacting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from tests.server.responses.harness import stage
from tests.server.responses.test_conversation import sent


def test_a_conversation_holds_what_was_said_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["One.", "Two."]) as of:
        client = of.serve().client()
        talk = client.conversations.create(
            metadata={"topic": "x"}, items=[{"role": "user", "content": "before"}]
        )
        response = client.responses.create(model="mine", input="a", conversation=talk.id)
        assert response.conversation is not None
        assert response.conversation.id == talk.id
        client.responses.create(model="mine", input="b", conversation=talk.id)
        assert [text for _, text in sent(of)] == ["before", "a", "One.", "b"]
        listed: Any = list(client.conversations.items.list(talk.id, order="asc", limit=2))
        assert [item.content[0].text for item in listed] == ["before", "a", "One.", "b", "Two."]
        assert (
            client.conversations.items.retrieve(listed[2].id, conversation_id=talk.id).id
            == listed[2].id
        )
        changed = client.conversations.update(talk.id, metadata={"topic": "y"})
        assert changed.metadata == {"topic": "y"}
        assert client.conversations.retrieve(talk.id) == changed


def test_a_deleted_item_is_neither_listed_nor_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["One.", "Two."]) as of:
        client = of.serve().client()
        talk = client.conversations.create()
        client.responses.create(model="mine", input="secret", conversation=talk.id)
        first: Any = next(iter(client.conversations.items.list(talk.id, order="asc")))
        client.conversations.items.delete(first.id, conversation_id=talk.id)
        listed: Any = client.conversations.items.list(talk.id)
        assert [item.content[0].text for item in listed] == ["One."]
        with pytest.raises(openai.NotFoundError):
            client.conversations.items.retrieve(first.id, conversation_id=talk.id)
        client.responses.create(model="mine", input="b", conversation=talk.id)
        assert "secret" not in str(sent(of))


def test_a_deleted_conversation_is_in_the_trash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["One."]) as of:
        client = of.serve().client()
        talk = client.conversations.create()
        response = client.responses.create(model="mine", input="a", conversation=talk.id)
        assert client.conversations.delete(talk.id).deleted
        for gone in (
            lambda: client.conversations.retrieve(talk.id),
            lambda: client.conversations.items.list(talk.id),
            lambda: client.responses.retrieve(response.id),
            lambda: client.responses.create(model="mine", input="b", conversation=talk.id),
        ):
            with pytest.raises(openai.NotFoundError):
                gone()


def test_a_conversation_is_compacted_into_items_that_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["Fine."], repeat=True) as of:
        client = of.serve().client()
        long: Any = []
        for number in range(30):
            long.append({"role": "user", "content": f"Step {number}: " + "look at this. " * 60})
            long.append({"role": "assistant", "content": f"Done {number}. " + "It is so. " * 60})
        made = client.responses.compact(model="mine", input=long)
        assert made.object == "response.compaction"
        assert made.output[0].type == "compaction"
        assert len(made.output) < len(long)
        again: Any = [i.model_dump(exclude_unset=True, warnings=False) for i in made.output]
        response = client.responses.create(
            model="mine", input=[*again, {"role": "user", "content": "Go on"}]
        )
        assert response.output_text == "Fine."
        assert sent(of)[-1] == ("user", "Go on")
        assert of.sessions() == 1
