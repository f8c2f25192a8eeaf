"""The official client holds a conversation: it continues, branches, lists, streams, and forgets."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from recollect.entries import InlineData, Message, Text, Thought
from recollect.testing import Turn, says
from tests.server.responses.harness import Stage, stage

MEDIA = 'media = ["image/", "application/pdf"]\n'
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()


def sent(of: Stage, number: int = -1) -> list[tuple[str, str]]:
    """The roles and texts that the provider was sent."""
    decoded = of.provider.requests[number].decoded
    assert decoded is not None
    return [
        (message.role, "".join(p.text for p in message.parts if isinstance(p, Text)))
        for message in decoded.messages
    ]


def test_a_response_is_the_models_answer_to_exactly_what_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["Hello."]) as of:
        client = of.serve().client()
        response = client.responses.create(
            model="mine", input="Hi", instructions="Be brief.", metadata={"a": "b"}, temperature=0.5
        )
        assert response.output_text == "Hello."
        assert response.status == "completed"
        assert response.model == "mine"
        assert response.metadata == {"a": "b"}
        assert response.usage is not None
        assert response.usage.total_tokens == (
            response.usage.input_tokens + response.usage.output_tokens
        )
        assert sent(of) == [("system", "Be brief."), ("user", "Hi")]
        assert of.provider.requests[0].json["temperature"] == 0.5


def test_a_stream_has_the_events_of_the_standard_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = Message(role="model", parts=(Thought(text="Hm."), Text(text="One two.")))
    with stage(tmp_path, monkeypatch, [reply]) as of:
        client = of.serve().client()
        events = list(client.responses.create(model="mine", input="Count", stream=True))
        names = [event.type for event in events]
        assert names[:2] == ["response.created", "response.in_progress"]
        assert names[-1] == "response.completed"
        assert [event.sequence_number for event in events] == list(range(len(events)))
        without_deltas = [name for name in names if not name.endswith(".delta")]
        assert without_deltas[2:-1] == [
            "response.output_item.added",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
        ]
        text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
        assert text == "One two."
        final: Any = events[-1]
        assert final.response == client.responses.retrieve(final.response.id)


def test_continuing_from_the_newest_response_goes_on_in_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["One.", "Two."]) as of:
        client = of.serve().client()
        first = client.responses.create(model="mine", input="a", instructions="Old.")
        second = client.responses.create(model="mine", input="b", previous_response_id=first.id)
        assert second.previous_response_id == first.id
        # the instructions of a request are its own
        assert sent(of) == [("user", "a"), ("model", "One."), ("user", "b")]
        assert of.sessions() == 1


def test_the_same_instructions_keep_the_prefix_and_others_take_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["1", "2", "3"]) as of:
        client = of.serve().client()
        last = None
        for words, instructions in (("a", "Same."), ("b", "Same."), ("c", "Other.")):
            last = client.responses.create(
                model="mine",
                input=words,
                instructions=instructions,
                previous_response_id=last.id if last is not None else openai.omit,
            )
        assert sent(of, 1)[0] == ("system", "Same.")
        assert of.provider.requests[1].body.startswith(of.provider.requests[0].body[:-2])
        assert sent(of, 2) == [
            ("system", "Other."),
            ("user", "a"),
            ("model", "1"),
            ("user", "b"),
            ("model", "2"),
            ("user", "c"),
        ]


def test_continuing_from_an_older_response_branches_and_copies_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["One.", "Two.", "Other two.", "Three."]) as of:
        client = of.serve().client()
        first = client.responses.create(model="mine", input="a")
        second = client.responses.create(model="mine", input="b", previous_response_id=first.id)
        other = client.responses.create(model="mine", input="c", previous_response_id=first.id)
        assert sent(of) == [("user", "a"), ("model", "One."), ("user", "c")]
        third = client.responses.create(model="mine", input="d", previous_response_id=second.id)
        assert [role for role, _ in sent(of)] == ["user", "model", "user", "model", "user"]
        assert of.sessions() == 2
        for response in (first, second, other, third):
            assert client.responses.retrieve(response.id) == response


def test_two_clients_that_continue_from_one_response_get_a_branch_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: Any) -> str:
        return "to " + "".join(p.text for p in request.messages[-1].parts if isinstance(p, Text))

    with stage(tmp_path, monkeypatch, [answer], repeat=True) as of:
        server = of.serve()
        first = server.client().responses.create(model="mine", input="a")

        async def both() -> list[str]:
            async with server.async_client() as client:
                made = [
                    client.responses.create(model="mine", input=w, previous_response_id=first.id)
                    for w in ("b", "c", "d")
                ]
                return [one.output_text for one in await asyncio.gather(*made)]

        assert asyncio.run(both()) == ["to b", "to c", "to d"]
        for number in (1, 2, 3):
            assert len(sent(of, number)) == 3


def test_a_response_can_be_read_and_continued_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["One.", "Two."]) as of:
        server = of.serve()
        first = server.client().responses.create(model="mine", input="a", metadata={"k": "v"})
        server.stop()
        client = of.serve().client()
        assert client.responses.retrieve(first.id) == first
        client.responses.create(model="mine", input="b", previous_response_id=first.id)
        assert sent(of) == [("user", "a"), ("model", "One."), ("user", "b")]


def test_two_servers_on_one_store_continue_each_others_responses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["1", "2", "3", "4"]) as of:
        one, other = of.serve().client(), of.serve().client()
        first = one.responses.create(model="mine", input="a")
        second = other.responses.create(model="mine", input="b", previous_response_id=first.id)
        third = one.responses.create(model="mine", input="c", previous_response_id=second.id)
        assert [text for _, text in sent(of)] == ["a", "1", "b", "2", "c"]
        branch = other.responses.create(model="mine", input="d", previous_response_id=first.id)
        assert [text for _, text in sent(of)] == ["a", "1", "d"]
        assert one.responses.retrieve(branch.id).output_text == "4"
        assert other.responses.retrieve(third.id).output_text == "3"


def test_input_items_are_listed_as_they_were_sent_in_both_orders_and_in_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["ok"]) as of:
        client = of.serve().client()
        given: Any = [
            {"role": "user", "content": "one"},
            {"type": "message", "role": "assistant", "content": "two"},
            {"role": "user", "content": [{"type": "input_text", "text": "three"}]},
        ]
        response = client.responses.create(model="mine", input=given)
        order: Any
        for order, texts in (("asc", ["one", "two", "three"]), ("desc", ["three", "two", "one"])):
            listed: Any = client.responses.input_items.list(response.id, order=order, limit=2)
            assert [item.content[0].text for item in listed] == texts
        assert len({item.id for item in client.responses.input_items.list(response.id)}) == 3


def test_a_deleted_response_is_gone_for_clients_and_stays_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["One.", "Two.", "Three."]) as of:
        client = of.serve().client()
        first = client.responses.create(model="mine", input="secret a")
        second = client.responses.create(model="mine", input="b", previous_response_id=first.id)
        client.responses.delete(first.id)
        for gone in (
            lambda: client.responses.retrieve(first.id),
            lambda: client.responses.delete(first.id),
            lambda: client.responses.input_items.list(first.id),
            lambda: client.responses.create(model="mine", input="c", previous_response_id=first.id),
        ):
            with pytest.raises(openai.NotFoundError):
                gone()
        assert client.responses.retrieve(second.id) == second
        client.responses.create(model="mine", input="c", previous_response_id=second.id)
        assert sent(of) == [("user", "b"), ("model", "Two."), ("user", "c")]


def test_what_is_not_to_be_stored_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["One.", "Two.", "Three."]) as of:
        client = of.serve().client()
        loose = client.responses.create(model="mine", input="a", store=False)
        assert (loose.output_text, of.sessions()) == ("One.", 0)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(loose.id)
        kept = client.responses.create(model="mine", input="b")
        with client.responses.stream(
            model="mine", input="c", previous_response_id=kept.id, store=False
        ) as events:
            assert events.get_final_response().output_text == "Three."
        assert sent(of) == [("user", "b"), ("model", "Two."), ("user", "c")]
        assert of.sessions() == 1
        assert client.responses.retrieve(kept.id) == kept


def test_an_answer_can_follow_a_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Person(BaseModel):
        name: str
        age: int

    with stage(tmp_path, monkeypatch, ['{"name":"Ann","age":3}']) as of:
        parsed = of.serve().client().responses.parse(model="mine", input="Who?", text_format=Person)
        assert parsed.output_parsed == Person(name="Ann", age=3)
        decoded = of.provider.requests[0].decoded
        assert decoded is not None
        assert '"age"' in decoded.options.generation.schema


@pytest.mark.parametrize("wire", ["openai", "anthropic", "gemini"])
def test_images_and_files_reach_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: Any
) -> None:
    with stage(tmp_path, monkeypatch, ["A heart."], wire, MEDIA, 200_000) as of:
        pdf = base64.b64encode(b"%PDF-1.1 x").decode()
        content: Any = [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "low"},
            {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": f"data:application/pdf;base64,{pdf}",
            },
        ]
        response = (
            of.serve()
            .client()
            .responses.create(model="mine", input=[{"role": "user", "content": content}])
        )
        assert response.output_text == "A heart."
        decoded = of.provider.requests[0].decoded
        assert decoded is not None
        found = [part for part in decoded.messages[-1].parts if isinstance(part, InlineData)]
        assert [part.mime for part in found] == ["image/png", "application/pdf"]


def test_an_item_reference_stands_for_the_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["One.", "Two."]) as of:
        client = of.serve().client()
        first = client.responses.create(model="mine", input="a")
        reference: Any = {"type": "item_reference", "id": first.output[0].id}
        again: Any = [{"role": "user", "content": "a"}, reference, {"role": "user", "content": "b"}]
        client.responses.create(model="mine", input=again)
        assert sent(of) == [("user", "a"), ("model", "One."), ("user", "b")]


def test_a_reply_that_was_cut_off_is_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = Turn(steps=(Text(text="Half an ans"),), finish="length")
    with stage(tmp_path, monkeypatch, [cut]) as of:
        client = of.serve().client()
        response = client.responses.create(model="mine", input="a", max_output_tokens=16)
        assert response.status == "incomplete"
        assert response.incomplete_details is not None
        assert response.incomplete_details.reason == "max_output_tokens"
        assert response.output_text == "Half an ans"
        assert client.responses.retrieve(response.id) == response


def test_models_are_those_that_can_be_called_and_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, [says("x")]) as of:
        client = of.serve().client()
        names = {model.id for model in client.models.list()}
        assert {"recollect", "recollect-agent", "mine"} <= names
        assert client.models.retrieve("mine").id == "mine"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("no-such-model")
