"""Calls that Google's SDK ran by itself are recorded, each once, whatever the session holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic.types.beta import BetaMessage
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.codecs.automatic_calls import unrecorded_calls
from recollect.entries import Message, Text, ToolCall, ToolResult
from recollect.testing import user
from tests.codecs.gemini.sdk_oracle import SdkContent, SdkReply
from tests.session.test_session import in_store

Content = dict[str, Any]


def asks(name: str = "weather", **more: Any) -> Content:
    call = {"name": name, "args": {"city": "B"}, **more}
    return {"role": "model", "parts": [{"functionCall": call}]}


def gives(name: str = "weather", text: str = "rain", **more: Any) -> Content:
    response = {"name": name, "response": {"result": text}, **more}
    return {"role": "user", "parts": [{"functionResponse": response}]}


def says(text: str, role: str = "user") -> Content:
    return {"role": role, "parts": [{"text": text}]}


def reply(text: str, *history: Content, finish: str | None = "STOP") -> Any:
    """As the SDK returns it: it sets the history on the reply of the last request."""
    candidate = {"content": says(text, "model"), "finishReason": finish}
    made = SdkReply.model_validate({"modelVersion": "gemini-2.5-pro", "candidates": [candidate]})
    if history:
        contents = [SdkContent.model_validate(each) for each in history]
        made.automatic_function_calling_history = contents
    return made


def shape(messages: Any) -> list[str]:
    """Each part of a session in a word."""
    found = []
    for message in messages:
        for part in message.parts:
            match part:
                case Text(text=text):
                    found.append(f"{message.role}:{text}")
                case ToolCall(name=name):
                    found.append(f"call:{name}")
                case ToolResult(name=name):
                    found.append(f"result:{name}")
    return found


def paired(messages: Any) -> None:
    calls = [p for m in messages for p in m.parts if isinstance(p, ToolCall)]
    results = [p for m in messages for p in m.parts if isinstance(p, ToolResult)]
    assert [call.id for call in calls] == [result.call_id for result in results]
    assert all(call.id for call in calls)
    assert len({call.id for call in calls}) == len(calls)


TURN = (says("Umbrella?"), asks(), gives(), asks("time"), gives("time", "noon"))
RECORDED = ["user:Umbrella?", "call:weather", "result:weather", "call:time", "result:time"]


@pytest.mark.parametrize("as_dict", [False, True])
def test_calls_and_results_are_recorded_before_the_reply(tmp_path: Path, as_dict: bool) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        await session.append(recollect.user("Umbrella?"))
        answer = reply("Yes.", *TURN)
        await session.append_gemini(answer.model_dump() if as_dict else answer)
        messages = session.view().messages
        assert shape(messages) == [*RECORDED, "model:Yes."]
        paired(messages)
        sent = session.messages("gemini")
        assert [each["role"] for each in sent] == [
            "user",
            "model",
            "user",
            "model",
            "user",
            "model",
        ]
        assert sent[2]["parts"][0]["functionResponse"]["name"] == "weather"

    in_store(tmp_path, story)


def test_the_same_reply_is_not_recorded_twice_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        await session.append(recollect.user("Umbrella?"))
        answer = reply("Yes.", *TURN)
        await session.append_gemini(answer)
        assert await session.append_gemini(answer) == ()
        await session.append_gemini(answer, answer)
        assert shape(session.view().messages) == [*RECORDED, "model:Yes."]
        await session.append(recollect.user("Really?"))
        await session.append_gemini(reply("Yes."))  # another one that says the same
        assert len(session.view().messages) == 8

    in_store(tmp_path, story)
    assert "not appended again" in caplog.text


def test_only_this_turns_calls_are_new_however_alike_earlier_ones_are(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        await session.append(recollect.user("Umbrella?"))
        await session.append_gemini(reply("Yes.", says("Umbrella?"), asks(), gives()))
        await session.append(recollect.user("And now?"))
        contents = session.messages("gemini")
        await session.append_gemini(reply("Still.", *contents, asks(), gives()))
        messages = session.view().messages
        once = ["call:weather", "result:weather"]
        assert shape(messages) == [
            "user:Umbrella?",
            *once,
            "model:Yes.",
            "user:And now?",
            *once,
            "model:Still.",
        ]
        paired(messages)

    in_store(tmp_path, story)


def test_a_stream_brings_the_calls_first_and_the_history_with_each_later_piece(
    tmp_path: Path,
) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        await session.append(recollect.user("Umbrella?"))
        first = SdkReply.model_validate({"candidates": [{"content": asks()}]})
        await session.append_gemini(first)
        history = (says("Umbrella?"), asks(), gives())
        await session.append_gemini(reply("Take ", *history, finish=None))
        await session.append_gemini(reply("one.", *history))
        messages = session.view().messages
        assert shape(messages)[:3] == ["user:Umbrella?", "call:weather", "result:weather"]
        assert "".join(shape(messages)[3:]).replace("model:", "") == "Take one."
        paired(messages)

    in_store(tmp_path, story)


def test_what_was_sent_with_a_budget_or_never_recorded_is_not_taken_for_new(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        for number in range(30):
            await session.append(recollect.user(f"question {number} " + "x" * 400))
            await session.append(recollect.assistant(f"answer {number}"))
        await session.append(recollect.user("Umbrella?"))
        sent = session.messages("gemini", budget=1_500)
        before = len(session.view().messages)
        await session.append_gemini(reply("Yes.", *sent, asks(id="w1"), gives(id="w1")))
        assert len(session.view().messages) == before + 3
        other = await store.create()  # its program sent a prompt that it never appended
        await other.append_gemini(reply("Yes.", *TURN))
        assert shape(other.view().messages) == [*RECORDED[1:], "model:Yes."]

    in_store(tmp_path, story)


def test_results_that_the_program_gave_itself_are_not_repeated(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        await session.append(recollect.user("Umbrella?"))
        manual = {"candidates": [{"content": asks(), "finishReason": "STOP"}]}
        await session.append_gemini(SdkReply.model_validate(manual))
        await session.append_gemini(gives())
        sent = session.messages("gemini")
        await session.append_gemini(reply("Yes.", *sent, asks("time"), gives("time", "noon")))
        assert shape(session.view().messages) == [*RECORDED, "model:Yes."]

    in_store(tmp_path, story)


def test_what_anthropics_tool_runner_gives_is_taken_message_by_message(tmp_path: Path) -> None:
    """Its replies carry no history: it yields each reply, and the results as a message."""
    used = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "B"}}
    asked = BetaMessage.model_validate(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5",
            "content": [used],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 3, "output_tokens": 4},
        }
    )

    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        await session.append(recollect.user("Umbrella?"))
        gave = {"type": "tool_result", "tool_use_id": "c1", "content": "rain"}
        await session.append_anthropic(asked, {"role": "user", "content": [gave]})
        assert shape(session.view().messages) == RECORDED[:3]

    in_store(tmp_path, story)


def test_a_name_that_was_sent_as_another_comes_back_as_it_was(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        odd = ToolCall(id="a", name="server.tool/x", arguments="{}")
        await session.append(recollect.user("Go."), Message(role="model", parts=(odd,)))
        await session.append(recollect.tool_result(odd, "fine"))
        for form, answer in (
            ("openai", "append_openai"),
            ("anthropic", "append_anthropic"),
        ):
            sent = json.loads(json.dumps(session.messages(form)))  # type: ignore[arg-type]
            copied = next(m for m in sent if m["role"] == "assistant")
            await getattr(session, answer)(copied)
            newest = session.view().messages[-1].parts[0]
            assert isinstance(newest, ToolCall)
            assert newest.name == "server.tool/x"

    in_store(tmp_path, story)


turns = st.lists(st.sampled_from(["a", "b"]), max_size=5)


@given(turns, st.integers(0, 10), st.booleans())
def test_however_much_is_recorded_the_rest_is_new(
    names: list[str], known: int, with_ids: bool
) -> None:
    """Whatever beginning of a turn the session has, it gets the rest, and then nothing more."""
    whole: list[Message] = [user("go")]
    for number, name in enumerate(names):
        id_ = f"id-{number}" if with_ids else ""
        whole.append(Message(role="model", parts=(ToolCall(id=id_, name=name, arguments="{}"),)))
        told = (Text(text="ok"),)
        given_ = ToolResult(call_id=id_, name=name, content=told)
        whole.append(Message(role="user", parts=(given_,)))
    recorded = whole[: known + 1]
    new = unrecorded_calls(recorded, whole).messages
    assert shape(new) == shape(whole[known + 1 :])
    assert unrecorded_calls([*recorded, *new], whole) == ((), 0)
