"""The official SDKs can talk to the local provider, whole and streamed."""

from __future__ import annotations

import warnings
from typing import Any

import anthropic
import openai
import pytest

with warnings.catch_warnings():  # google-genai warns about itself when it is imported
    warnings.simplefilter("ignore")
    from google import genai
    from google.genai import types

from recollect.entries import Thought, Usage
from recollect.testing import ProviderServer, call, provider_error, says

ANSWER = says(
    Thought(text="hm", signature="c2ln"), "I look", call("grep", pattern="é"), usage=Usage(3, 4)
)


@pytest.mark.parametrize("stream", [True, False])
def test_openai(stream: bool) -> None:
    with ProviderServer("openai", [ANSWER]) as server:
        client = openai.OpenAI(base_url=server.url, api_key="any", max_retries=0)
        with client:
            asked: Any = client.chat.completions
            messages = [{"role": "user", "content": "hi"}]
            if stream:
                events = list(asked.create(model="m", messages=messages, stream=True))
                deltas = [event.choices[0].delta for event in events if event.choices]
                text = "".join(delta.content or "" for delta in deltas)
                calls = [found for delta in deltas for found in delta.tool_calls or ()]
                name = calls[0].function.name
                arguments = "".join(found.function.arguments for found in calls)
                finish = [e.choices[0].finish_reason for e in events if e.choices][-1]
            else:
                done = asked.create(model="m", messages=messages)
                text, finish = done.choices[0].message.content, done.choices[0].finish_reason
                (found,) = done.choices[0].message.tool_calls
                name, arguments = found.function.name, found.function.arguments
    assert (text, name, arguments, finish) == ("I look", "grep", '{"pattern":"é"}', "tool_calls")
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer any"
    assert request.decoded is not None
    assert request.decoded.options.stream is stream


@pytest.mark.parametrize("stream", [True, False])
def test_anthropic(stream: bool) -> None:
    with ProviderServer("anthropic", [ANSWER]) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="any", max_retries=0)
        with client:
            done: Any
            asked: dict[str, Any] = {
                "model": "m",
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "hi"}],
            }
            if stream:
                with client.messages.stream(**asked) as events:
                    done = events.get_final_message()
            else:
                done = client.messages.create(**asked)
    thought, text, use = done.content
    assert (thought.type, thought.thinking) == ("thinking", "hm")
    assert (text.text, use.name, use.input) == ("I look", "grep", {"pattern": "é"})
    assert (done.stop_reason, done.usage.output_tokens) == ("tool_use", 4)


@pytest.mark.parametrize("stream", [True, False])
def test_google(stream: bool) -> None:
    with ProviderServer("gemini", [ANSWER]) as server:
        options = types.HttpOptions(base_url=server.url)
        with genai.Client(api_key="any", http_options=options) as client:
            found: list[Any]
            if stream:
                found = list(client.models.generate_content_stream(model="m", contents="hi"))
            else:
                found = [client.models.generate_content(model="m", contents="hi")]
    parts = [part for reply in found for part in reply.candidates[0].content.parts]
    assert "".join(part.text for part in parts if part.text and not part.thought) == "I look"
    (called,) = [part.function_call for part in parts if part.function_call]
    assert (called.name, called.args) == ("grep", {"pattern": "é"})
    assert found[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert found[-1].usage_metadata.prompt_token_count == 3
    decoded = server.requests[0].decoded
    assert decoded is not None
    assert decoded.options.stream is stream


def test_an_error_is_an_error_of_theirs() -> None:
    with (
        ProviderServer("openai", [provider_error("openai", 429, "slow")]) as server,
        openai.OpenAI(base_url=server.url, api_key="any", max_retries=0) as client,
        pytest.raises(openai.RateLimitError, match="slow"),
    ):
        client.chat.completions.create(model="m", messages=[])
