"""Tools of the client: the model calls them, the client runs them, the next request has results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from recollect.entries import Message, Text, ToolCall, ToolResult
from recollect.testing import ProviderLine, call, says
from tests.server.responses.harness import ServerThread, Stage, stage

WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a place",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    "strict": False,
}
CALL = '{"place": "Paris"}'
WIRES = ["openai", "anthropic", "gemini"]


def sent_results(of: Stage) -> list[ToolResult]:
    decoded = of.provider.requests[-1].decoded
    assert decoded is not None
    parts = [part for message in decoded.messages for part in message.parts]
    return [part for part in parts if isinstance(part, ToolResult)]


def output_of(response: Any, text: str) -> list[Any]:
    return [
        {"type": "function_call_output", "call_id": item.call_id, "output": text}
        for item in response.output
        if item.type == "function_call"
    ]


def approve(server: ServerThread, run: str, approval: str) -> None:
    address = f"{server.url.removesuffix('/v1')}/api/runs/{run}/approvals/{approval}"
    headers = {"authorization": "Bearer token-of-root"}
    answer = httpx2.post(address, json={"allow": True}, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_goes_to_the_client_and_its_output_to_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: Any
) -> None:
    script: list[ProviderLine] = [says(call("get_weather", place="Paris")), "It is 20 degrees."]
    with stage(tmp_path, monkeypatch, script, wire, validate=True) as of:
        client = of.serve().client()
        first = client.responses.create(model="mine", input="Weather?", tools=[WEATHER])
        assert first.status == "completed"
        (item,) = first.output
        assert item.type == "function_call"
        assert (item.name, json.loads(item.arguments)) == ("get_weather", {"place": "Paris"})
        assert client.responses.retrieve(first.id) == first
        second = client.responses.create(
            model="mine",
            input=output_of(first, "20"),
            previous_response_id=first.id,
            tools=[WEATHER],
        )
        assert second.output_text == "It is 20 degrees."
        (result,) = sent_results(of)
        assert (result.name, result.content) == ("get_weather", (Text(text="20"),))


@pytest.mark.parametrize("wire", WIRES)
def test_a_streamed_call_has_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: Any
) -> None:
    two = Message(
        role="model",
        parts=(
            Text(text="Let me see."),
            ToolCall(id="a1", name="get_weather", arguments=CALL),
            ToolCall(id="a2", name="get_weather", arguments="{}"),
        ),
    )
    with stage(tmp_path, monkeypatch, [two], wire) as of:
        client = of.serve().client()
        with client.responses.stream(model="mine", input="Weather?", tools=[WEATHER]) as stream:
            events: list[Any] = list(stream)
            final = stream.get_final_response()
        added = [e for e in events if e.type == "response.output_item.added"]
        done = [e for e in events if e.type == "response.output_item.done"]
        assert [e.item.type for e in added] == ["message", "function_call", "function_call"]
        assert [e.output_index for e in added] == [e.output_index for e in done] == [0, 1, 2]
        pieces = [e for e in events if e.type == "response.function_call_arguments.delta"]
        whole = [e for e in events if e.type == "response.function_call_arguments.done"]
        first = "".join(e.delta for e in pieces if e.output_index == 1)
        assert json.loads(first) == json.loads(whole[0].arguments) == json.loads(CALL)
        items: list[Any] = list(final.output)
        assert [item.id for item in items] == [e.item.id for e in done]
        assert [item.call_id for item in items[1:]] == [e.item.call_id for e in added[1:]]
        assert len({item.call_id for item in items[1:]}) == 2


def test_arguments_are_passed_on_as_the_model_wrote_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = Message(
        role="model",
        parts=(ToolCall(id="x", name="get_weather", arguments='{"nowhere":  [1, 2]}'),),
    )
    with stage(tmp_path, monkeypatch, [odd]) as of:
        response = (
            of.serve().client().responses.create(model="mine", input="Weather?", tools=[WEATHER])
        )
        assert response.output[0].type == "function_call"
        assert response.output[0].arguments == '{"nowhere":  [1, 2]}'


def test_a_call_that_the_client_never_answers_is_repaired_for_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: list[ProviderLine] = [says(call("get_weather", place="Paris")), "Never mind."]
    with stage(tmp_path, monkeypatch, script, validate=True) as of:
        client = of.serve().client()
        first = client.responses.create(model="mine", input="Weather?", tools=[WEATHER])
        second = client.responses.create(
            model="mine", input="Forget it", previous_response_id=first.id, tools=[WEATHER]
        )
        assert second.output_text == "Never mind."
        assert [result.is_error or "interrupted" in str(result) for result in sent_results(of)]


def test_a_client_can_keep_the_history_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: list[ProviderLine] = [says(call("get_weather", place="Paris")), "20 degrees."]
    with stage(tmp_path, monkeypatch, script, validate=True) as of:
        client = of.serve().client()
        history: list[Any] = [{"role": "user", "content": "Weather?"}]
        first = client.responses.create(model="mine", input=history, tools=[WEATHER], store=False)
        history += [item.model_dump(exclude_none=True) for item in first.output]
        history += output_of(first, "20")
        second = client.responses.create(model="mine", input=history, tools=[WEATHER], store=False)
        assert second.output_text == "20 degrees."
        assert [result.name for result in sent_results(of)] == ["get_weather"]
        assert of.sessions() == 0


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "name": "get_weather"}, "get_weather"),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "get_weather"}],
            },
            "required",
        ),
    ],
)
def test_the_choice_of_tools_reaches_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: Any, expected: str
) -> None:
    other = WEATHER | {"name": "other"}
    with stage(tmp_path, monkeypatch, ["ok"]) as of:
        of.serve().client().responses.create(
            model="mine",
            input="x",
            tools=[WEATHER, other],
            tool_choice=choice,
            parallel_tool_calls=False,
        )
        decoded = of.provider.requests[0].decoded
        assert decoded is not None
        assert decoded.options.tool_choice == expected
        names = [tool.name for tool in decoded.options.tools]
        assert names == (["get_weather"] if "allowed" in str(choice) else ["get_weather", "other"])
        assert of.provider.requests[0].json["parallel_tool_calls"] is False


def test_tools_that_the_server_would_have_to_host_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, []) as of:
        client = of.serve().client()
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.create(
                model="mine", input="x", tools=[{"type": "web_search"}], tool_choice="auto"
            )
        assert refused.value.param == "tools[0].type"
        assert of.sessions() == 0


def test_the_servers_agent_runs_its_own_tools_and_leaves_the_clients_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Message(
        role="model",
        parts=(
            ToolCall(id="c1", name="read_file", arguments='{"path": "note.txt"}'),
            ToolCall(id="c2", name="get_weather", arguments=CALL),
        ),
    )
    with stage(tmp_path, monkeypatch, [both, "Done."], validate=True) as of:
        server = of.serve()
        (tmp_path / "work" / "note.txt").write_text("hello from the folder\n")
        client = server.client()
        events: list[Any] = list(
            client.responses.create(
                model="recollect-agent", input="Read it", tools=[WEATHER], stream=True
            )
        )
        first = events[-1].response
        items: list[Any] = [item.model_dump(warnings=False) for item in first.output]
        assert [item["type"] for item in items] == ["recollect:tool_call", "function_call"]
        assert "hello from the folder" in items[0]["output"]
        done = [e.output_index for e in events if e.type == "response.output_item.done"]
        assert sorted(done) == [0, 1]
        second = client.responses.create(
            model="recollect-agent",
            input=output_of(first, "20"),
            previous_response_id=first.id,
            tools=[WEATHER],
        )
        assert second.output_text == "Done."
        assert [result.name for result in sent_results(of)] == ["read_file", "get_weather"]


def test_the_agents_calls_that_need_approval_are_refused_when_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: list[ProviderLine] = [
        says(call("write_file", path="a.txt", content="x")),
        "I could not.",
    ]
    with stage(tmp_path, monkeypatch, script) as of:
        response = of.serve().client().responses.create(model="recollect-agent", input="Write")
        item: Any = response.output[0].model_dump(warnings=False)
        assert item["type"] == "recollect:tool_call"
        assert item["is_error"] is True
        assert not (tmp_path / "work" / "a.txt").exists()


def test_a_client_that_can_approve_is_asked_and_its_yes_lets_the_call_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: list[ProviderLine] = [says(call("write_file", path="a.txt", content="x")), "Written."]
    with stage(tmp_path, monkeypatch, script) as of:
        server = of.serve()
        client = server.client("token-of-root")
        seen: list[Any] = []
        for event in client.responses.create(
            model="recollect-agent",
            input="Write",
            stream=True,
            extra_body={"recollect:can_approve": True},
        ):
            seen.append(event)
            if event.type == "recollect:approval_requested":  # type: ignore[comparison-overlap]
                asked: Any = event
                approve(server, asked.run_id, asked.approval_id)
        assert seen[-1].response.output_text == "Written."
        assert (tmp_path / "work" / "a.txt").read_text() == "x"
