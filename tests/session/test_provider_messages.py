"""Sessions beside a program's own calls of a provider: real SDK objects in, messages out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from openai.types.chat import ChatCompletion, ChatCompletionMessage

import recollect
from recollect.testing import call
from tests.codecs.gemini.sdk_oracle import SdkReply
from tests.session.test_session import in_store, long_session

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city":"B"}'},
}
OPENAI = ChatCompletion.model_validate(
    {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }
)
ANTHROPIC = AnthropicMessage.model_validate(
    {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "B"}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
)
GEMINI_PARTS = [{"text": "I look."}, {"functionCall": {"name": "weather", "args": {"city": "B"}}}]
GEMINI = SdkReply.model_validate(
    {
        "modelVersion": "gemini-2.5-pro",
        "candidates": [
            {"content": {"role": "model", "parts": GEMINI_PARTS}, "finishReason": "STOP"}
        ],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7},
    }
)


def test_what_openais_sdk_returned_is_sent_back_as_it_came(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create(model="gpt-5")
        await session.append(recollect.system("Be brief."), recollect.user("Umbrella?"))
        await session.append_openai(OPENAI)
        await session.append_openai({"role": "tool", "tool_call_id": "c1", "content": "rain"})
        await session.append_openai(ChatCompletionMessage(role="assistant", content="Yes."))
        sent = session.messages("openai")
        assert [m["role"] for m in sent] == ["developer", "user", "assistant", "tool", "assistant"]
        assert sent[2]["tool_calls"] == [CALL]
        assert (await session.usage()).total == 7
        (result,) = session.view().messages[3].parts
        assert isinstance(result, recollect.ToolResult)
        assert result.name == "weather"
        same = await store.create()
        await same.append_openai(OPENAI.model_dump())
        assert same.view().messages[0] == session.view().messages[2]

    in_store(tmp_path, story)


def test_anthropic_gets_its_own_thoughts_back_and_the_instructions_apart(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        await session.append(recollect.system("Be brief."), recollect.user("Umbrella?"))
        await session.append_anthropic(ANTHROPIC)
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": "c1", "content": "rain"}
        await session.append_anthropic({"role": "user", "content": [result]})
        sent = session.messages("anthropic")
        assert [m["role"] for m in sent] == ["user", "assistant", "user"]
        kinds = [block["type"] for block in sent[1]["content"]]
        assert kinds == ["thinking", "text", "tool_use"]
        body = session.request("anthropic", model="claude-sonnet-5")
        assert (body["messages"], body["model"]) == (sent, "claude-sonnet-5")
        assert "Be brief." in json.dumps(body["system"])
        other = session.messages("openai")  # another provider is not sent those thoughts
        assert "hm" not in json.dumps(other)

    in_store(tmp_path, story)


def test_geminis_sdk_objects_are_taken_too(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        await session.append_gemini({"role": "user", "parts": [{"text": "Umbrella?"}]})
        await session.append_gemini(GEMINI)
        sent = session.messages("gemini")
        assert [content["role"] for content in sent] == ["user", "model", "user"]
        assert sent[1]["parts"][1]["functionCall"]["args"] == {"city": "B"}
        assert "functionResponse" in sent[2]["parts"][0]  # a call without a result is repaired

    in_store(tmp_path, story)


@pytest.mark.parametrize("form", ["openai", "anthropic", "gemini"])
def test_a_budget_holds_and_stores_nothing(tmp_path: Path, form: Any) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await long_session(store)
        entries, everything = session.view().n, session.messages(form)
        some = session.messages(form, budget=1_500)
        assert len(some) < len(everything)
        assert len(json.dumps(some)) < 1_500 * 5
        assert "question 29" in json.dumps(some)
        assert session.view().n == entries
        assert session.messages(form) == everything
        with pytest.raises(recollect.errors.BadInput, match="it must be positive"):
            session.messages(form, budget=0)

    in_store(tmp_path, story)


def test_repeated_reads_are_left_out_of_a_request_with_a_budget(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        for number in range(9):
            read = call("read_file", id=f"r{number}", path="limiter.py")
            result = recollect.tool_result(read, "code " * 900)
            await session.append(recollect.user("again"), recollect.assistant("", read), result)
        outputs = [m for m in session.messages(budget=100_000) if m["role"] == "tool"]
        assert ["earlier read of" in str(m["content"]) for m in outputs] == [True] * 4 + [False] * 5

    in_store(tmp_path, story)


def test_anything_else_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        for wrong, why in (
            (42, "a reply of type int; give the SDK's response object"),
            ({"error": "no"}, "neither a reply nor a message of openai"),
            ({"choices": {1}}, "the reply is not plain JSON"),
            ("[]", "a JSON list; a reply or message is an object"),
            ("no json", "not the JSON of a reply or message"),
        ):
            with pytest.raises(recollect.errors.BadInput, match=why):
                await session.append_openai(wrong)
        with pytest.raises(recollect.RecollectError):
            await session.append_openai({"choices": []})
        with pytest.raises(recollect.errors.BadInput, match="there is no format 'cohere'"):
            session.messages("cohere")  # type: ignore[arg-type]
        assert session.view().n == 0

    in_store(tmp_path, story)
