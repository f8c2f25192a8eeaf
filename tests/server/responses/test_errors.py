"""What clients do wrong, and what goes wrong: errors in OpenAI's form, and nothing is broken."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from recollect.errors import ProviderBusy
from recollect.testing import breaks_after, fails, says
from tests.server.responses.harness import ServerThread, stage


def post(server: ServerThread, path: str, body: bytes | object, token: str = "token-of-ann") -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    return httpx2.post(f"{server.url}{path}", content=data, headers=headers, timeout=60)


def test_an_unknown_model_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stage(tmp_path, monkeypatch, []) as of:
        with pytest.raises(openai.NotFoundError) as failed:
            of.serve().client().responses.create(model="no-such-model", input="x")
        assert failed.value.code == "model_not_found"
        assert failed.value.param == "model"
        assert of.sessions() == 0


BAD_BODIES: list[tuple[Any, str | None, str]] = [
    ([], None, "invalid_type"),
    ({"model": "mine", "input": 3}, "input", "invalid_type"),
    ({"model": 3, "input": "x"}, "model", "invalid_type"),
    ({"model": "mine", "input": "x", "nonsense": 1}, "nonsense", "unknown_parameter"),
    ({"model": "mine", "input": "x", "temperature": 9}, "temperature", "invalid_value"),
    ({"model": "mine", "input": "x", "top_p": -1}, "top_p", "invalid_value"),
    ({"model": "mine", "input": "x", "background": True}, "background", "unsupported_parameter"),
    ({"model": "mine", "input": "x", "prompt": {"id": "p"}}, "prompt", "unsupported_parameter"),
    ({"model": "mine", "input": "x", "metadata": {"k": "v" * 600}}, "metadata", "invalid_value"),
    (
        {"model": "mine", "input": "x", "tools": [{"type": "function"}]},
        "tools[0].name",
        "invalid_value",
    ),
    (
        {"model": "mine", "input": "x", "tools": [{"type": "web_search"}]},
        "tools[0].type",
        "unsupported_tool",
    ),
    *(
        (
            {"model": "mine", "input": [{"role": "user", "content": [part]}]},
            f"input[0].content[0].{field}",
            "invalid_value",
        )
        for part, field in (
            ({"type": "input_image", "image_url": "data:image/png;base64,no!"}, "image_url"),
            ({"type": "input_image", "image_url": "data:image/png;base64,"}, "image_url"),
            ({"type": "input_image", "image_url": "data:image/png,words"}, "image_url"),
            ({"type": "input_file", "file_data": "data:application/pdf;base64,é"}, "file_data"),
        )
    ),
    ({"model": "mine", "input": "x", "tool_choice": "sometimes"}, "tool_choice", "invalid_value"),
    (
        {"model": "mine", "input": "x", "reasoning": {"effort": "no"}},
        "reasoning.effort",
        "invalid_value",
    ),
    ({"model": "mine", "input": "x", "truncation": "some"}, "truncation", "invalid_type"),
    (
        {"model": "mine", "input": "x", "text": {"format": {"type": "json_schema"}}},
        "text.format.schema",
        "invalid_value",
    ),
    ({"model": "mine", "input": [3]}, "input[0]", "invalid_type"),
    (
        {"model": "mine", "input": [{"role": "king", "content": "x"}]},
        "input[0].role",
        "invalid_value",
    ),
    ({"model": "mine", "input": [{"role": "user"}]}, "input[0].content", "invalid_type"),
    ({"model": "mine", "input": [{"type": "magic"}]}, "input[0].type", "invalid_value"),
    (
        {"model": "mine", "input": [{"role": "user", "content": [{"type": "smell"}]}]},
        "input[0].content[0].type",
        "invalid_value",
    ),
    (
        {"model": "mine", "input": [{"type": "function_call_output", "output": "x"}]},
        "input[0].call_id",
        "invalid_value",
    ),
    (
        {"model": "mine", "input": "x", "previous_response_id": "a", "conversation": "b"},
        "conversation",
        "mutually_exclusive_parameters",
    ),
]


def test_a_bad_body_is_refused_with_the_parameter_and_stores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["fine"]) as of:
        server = of.serve()
        for body, param, code in BAD_BODIES:
            answer = post(server, "/responses", body)
            assert answer.status_code == 400, body
            error = answer.json()["error"]
            assert set(error) == {"message", "type", "param", "code"}
            assert (error["type"], error["param"], error["code"]) == (
                "invalid_request_error",
                param,
                code,
            ), body
        assert of.sessions() == 0
        # the server lives on
        assert server.client().responses.create(model="mine", input="x").output_text == "fine"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"model": "mine", "model": "other"}',
        b'{"model": "mine", "input": "x", "temperature": NaN}',
        b'{"input":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"input": ' + b"9" * 6_000 + b"}",
    ],
)
def test_a_body_that_is_no_json_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    with stage(tmp_path, monkeypatch, []) as of:
        server = of.serve()
        for path in ("/responses", "/responses/compact"):
            answer = post(server, path, body)
            assert answer.status_code == 400
            assert answer.json()["error"]["type"] == "invalid_request_error"


def test_text_that_utf8_cannot_carry_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["ok", "ok"]) as of:
        server = of.serve()
        for stream in (False, True):
            body = b'{"model": "mine", "input": "\\ud800 \\u0000", "stream": %s}'
            answer = post(server, "/responses", body % str(stream).lower().encode())
            assert answer.status_code == 200
            assert "ok" in answer.text


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/responses/resp_" + "0" * 32, "GET"),
        ("/responses/resp_x", "GET"),
        ("/responses/%00", "DELETE"),
        ("/responses/resp_" + "0" * 32 + "/cancel", "POST"),
        ("/responses/resp_" + "0" * 32 + "/input_items", "GET"),
        ("/conversations/conv_" + "0" * 32, "GET"),
        ("/conversations/conv_0", "DELETE"),
        ("/conversations/conv_" + "0" * 32 + "/items", "GET"),
        ("/conversations/nothing/items/msg_1", "GET"),
        ("/models/nothing/at/all", "GET"),
    ],
)
def test_what_does_not_exist_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, method: str
) -> None:
    with stage(tmp_path, monkeypatch, []) as of:
        answer = httpx2.request(
            method,
            f"{of.serve().url}{path}",
            headers={"authorization": "Bearer token-of-ann"},
            timeout=60,
        )
        assert answer.status_code == 404
        assert answer.json()["error"]["message"]


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "order=up", "after=msg_1"])
def test_a_page_that_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    with stage(tmp_path, monkeypatch, []) as of:
        server = of.serve()
        talk = server.client().conversations.create()
        headers = {"authorization": "Bearer token-of-ann"}
        address = f"{server.url}/conversations/{talk.id}/items?{query}"
        answer = httpx2.get(address, headers=headers, timeout=60)
        assert answer.status_code in (400, 404)
        assert answer.json()["error"]["param"] == query.partition("=")[0]


def test_a_provider_that_fails_is_an_error_for_a_whole_answer_and_an_event_in_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, [fails(ProviderBusy("slow down", 429))], repeat=True) as of:
        server = of.serve()
        client = server.client(max_retries=2)
        with pytest.raises(openai.RateLimitError) as failed:
            client.responses.create(model="mine", input="x")
        assert failed.value.code == "rate_limit_exceeded"
        assert len(of.provider.requests) == 2  # ours; the client does not ask again
        body = {"model": "mine", "input": "x", "stream": True}
        events = [
            json.loads(line[6:])
            for line in post(server, "/responses", body).text.splitlines()
            if line.startswith("data: {")
        ]
        assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
        assert events[-2]["error"]["code"] == "rate_limit_exceeded"
        last = events[-1]["response"]
        assert (last["status"], last["error"]["code"]) == ("failed", "rate_limit_exceeded")
        later = client.responses.retrieve(last["id"])
        assert later.status == "failed"
        assert later.error is not None
        with pytest.raises(openai.APIError, match="slow down"):
            list(client.responses.create(model="mine", input="x", stream=True))


def test_a_stream_that_breaks_and_is_asked_for_again_ends_with_the_true_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, [breaks_after("Half"), "Whole."]) as of:
        client = of.serve().client()
        events: list[Any] = list(client.responses.create(model="mine", input="x", stream=True))
        done = [e for e in events if e.type == "response.output_text.done"]
        assert [e.text for e in done] == ["Whole."]
        assert events[-1].response.output_text == "Whole."


def test_a_context_that_does_not_fit_is_an_error_where_nothing_may_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["fits"], window=4_000) as of:
        client = of.serve().client()
        long = "word " * 20_000
        with pytest.raises(openai.BadRequestError) as failed:
            client.responses.create(model="mine", input=long, truncation="disabled")
        assert failed.value.code == "context_length_exceeded"
        assert not of.provider.requests
        assert client.responses.create(model="mine", input=long).output_text == "fits"


def test_another_tokens_responses_and_conversations_do_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["mine", "again"]) as of:
        server = of.serve()
        ann, bob = server.client(), server.client("token-of-bob")
        talk = ann.conversations.create()
        response = ann.responses.create(model="mine", input="secret", conversation=talk.id)
        item: Any = response.output[0]
        reference: Any = [{"type": "item_reference", "id": item.id}]
        attempts: list[Any] = [
            lambda: bob.responses.retrieve(response.id),
            lambda: bob.responses.delete(response.id),
            lambda: bob.responses.cancel(response.id),
            lambda: bob.responses.input_items.list(response.id),
            lambda: bob.responses.create(model="mine", input="x", previous_response_id=response.id),
            lambda: bob.responses.create(
                model="mine", input="x", previous_response_id=response.id, store=False
            ),
            lambda: bob.responses.create(model="mine", input="x", conversation=talk.id),
            lambda: bob.responses.create(model="mine", input=reference),
            lambda: bob.responses.compact(model="mine", previous_response_id=response.id),
            lambda: bob.conversations.retrieve(talk.id),
            lambda: bob.conversations.update(talk.id, metadata={}),
            lambda: bob.conversations.delete(talk.id),
            lambda: bob.conversations.items.list(talk.id),
            lambda: bob.conversations.items.create(
                talk.id, items=[{"role": "user", "content": "x"}]
            ),
            lambda: bob.conversations.items.retrieve(item.id, conversation_id=talk.id),
            lambda: bob.conversations.items.delete(item.id, conversation_id=talk.id),
        ]
        for attempt in attempts:
            with pytest.raises(openai.NotFoundError):
                attempt()
        assert len(of.provider.requests) == 1
        assert server.client("token-of-root").responses.retrieve(response.id) == response


def test_a_token_that_may_only_read_cannot_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, ["mine"]) as of:
        server = of.serve()
        response = server.client().responses.create(model="mine", input="x")
        reader = server.client("token-that-reads")
        assert reader.responses.retrieve(response.id) == response
        attempts: list[Any] = [
            lambda: reader.responses.create(model="mine", input="x"),
            lambda: reader.responses.create(model="mine", input="x", store=False),
            lambda: reader.responses.delete(response.id),
            lambda: reader.responses.compact(model="mine", input="x"),
            reader.conversations.create,
        ]
        for attempt in attempts:
            with pytest.raises(openai.PermissionDeniedError):
                attempt()


def test_a_client_without_a_token_is_refused_in_the_same_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, []) as of, pytest.raises(openai.AuthenticationError):
        of.serve().client("wrong").models.list()


def test_a_client_that_hangs_up_stops_its_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(tmp_path, monkeypatch, [says("slow", delay=30)]) as of:
        server = of.serve()
        body = json.dumps({"model": "mine", "input": "x", "stream": True}).encode()
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            head = (
                f"POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                "Authorization: Bearer token-of-ann\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            raw.sendall(head.encode() + body)
            seen = b""
            while b"response.in_progress" not in seen:
                seen += raw.recv(65_536)
        assert server.hub is not None
        server.wait_until(lambda: server.hub is not None and server.hub.counts.cancelled == 1)


def test_a_websocket_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stage(tmp_path, monkeypatch, ["Hello."]) as of:
        server = of.serve()
        headers = {
            "authorization": "Bearer token-of-ann",
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        }
        refused = httpx2.get(f"{server.url}/responses", headers=headers, timeout=60)
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "websocket_not_supported"
