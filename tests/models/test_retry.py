from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import ApiKeyRefused, ContextOverflow, ProviderBusy, ProviderFailed
from recollect.models.http_errors import classify_response, provider_message
from recollect.models.retry import may_recover, refuses_tools, requested_delay, retry_delay

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after": " 0.5 "}, "", 0.5),
        ({"retry-after": formatdate(NOW + 30, usegmt=True)}, "", 30.0),
        ({"retry-after": formatdate(NOW - 30, usegmt=True)}, "", 0.0),
        ({"retry-after": "Wed, 01 Jan 2025 00:00:00 -0000"}, "", 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, "", 0.25),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "-5"}, "", None),
        ({"retry-after": "9" * 400}, "", None),
        ({}, '{"details":[{"retryDelay": "34.5s"}]}', 34.5),
        ({}, "nothing", None),
    ],
)
def test_the_delay_that_a_provider_requests_is_understood(
    headers: dict[str, str], body: str, seconds: float | None
) -> None:
    assert requested_delay(headers, body, NOW) == seconds


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_header_and_body_give_a_delay_or_none(header: str, body: str) -> None:
    delay = requested_delay({"retry-after": header}, body, NOW)
    assert delay is None or delay >= 0


delays = st.floats(0, 1e9) | st.none()


@given(st.integers(1, 10_000), delays, st.floats(0.001, 3_600), st.floats(0, 1))
def test_a_delay_is_never_above_the_limit_nor_below_the_requested_one(
    attempt: int, requested: float | None, longest: float, dice: float
) -> None:
    delay = retry_delay(attempt, requested, longest, dice)
    assert 0 <= delay <= longest
    assert delay >= min(requested or 0.0, longest)


@given(st.integers(1, 10), st.floats(0, 1))
def test_delays_grow_and_differ(attempt: int, dice: float) -> None:
    assert retry_delay(attempt + 1, None, 1e9, 0.0) >= retry_delay(attempt, None, 1e9, dice)
    assert retry_delay(attempt, None, 1e9, 1.0) == 2 * retry_delay(attempt, None, 1e9, 0.0)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("registry.ollama.ai/library/gemma:latest does not support tools", 400),
        ("No endpoints found that support tool use.", 404),
        ('"auto" tool choice requires --enable-auto-tool-choice to be set', 400),
        ("Function calling is not enabled for this model", 400),
        ("`tools` is unsupported", 422),
    ],
)
def test_a_refusal_of_tools_is_recognised(said: str, status: int) -> None:
    assert refuses_tools(said, status)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("the tool call id is missing", 400),
        ("images are not supported", 400),
        ("does not support tools", 500),
        ("", 400),
    ],
)
def test_other_refusals_are_not_taken_for_it(said: str, status: int) -> None:
    assert not refuses_tools(said, status)


def test_an_empty_account_is_of_no_use() -> None:
    assert not may_recover('{"error":{"code":"insufficient_quota"}}')
    assert may_recover("Rate limit reached")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error":{"message":"no","type":"t"}}', ("no", "t")),
        (b'{"error":{"message":"no","code":429,"status":"RESOURCE_EXHAUSTED"}}',
         ("no", "RESOURCE_EXHAUSTED")),
        (b'[{"error":{"message":"no","code":400}}]', ("no", "")),
        (b'{"error":"model not found"}', ("model not found", "")),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
         ("Overloaded", "overloaded_error")),
        (b'{"detail":"Not Found"}', ("Not Found", "")),
        (b'{"object":"error","message":"too long","type":"BadRequestError"}',
         ("too long", "BadRequestError")),
        (b'{"error":{"message":"Provider returned error","metadata":{"raw":"it burns"}}}',
         ("Provider returned error: it burns", "")),
        (b"upstream connect error", ("upstream connect error", "")),
        (b"", ("nothing at all", "")),
    ],
)  # fmt: skip
def test_a_providers_message_is_found(body: bytes, said: tuple[str, str]) -> None:
    assert provider_message(body) == said


def test_a_web_page_is_named_and_not_quoted() -> None:
    said, kind = provider_message(b"<html><head><title>502 Bad Gateway</title>" + b"x" * 5_000)
    assert said.startswith("a web page (<html>")
    assert (len(said) < 100, kind) == (True, "")


@given(st.binary(max_size=200), st.integers(300, 599))
def test_any_body_is_one_short_sentence(body: bytes, status: int) -> None:
    failed = classify_response(status, {}, body, variable="A_KEY", now=NOW)
    assert isinstance(failed.error, ProviderFailed)
    assert len(str(failed.error)) < 1_000
    assert str(failed.error).isprintable()
    assert failed.retryable <= isinstance(failed.error, ProviderBusy)


def test_endless_nesting_is_no_problem() -> None:
    failed = classify_response(400, {}, b"[" * 60_000, variable="", now=NOW)
    assert "JSON" in str(failed.error)


def test_each_status_means_its_error() -> None:
    def error_of(status: int, said: str = "no") -> ProviderFailed:
        body = b'{"error":{"message":"%s"}}' % said.encode()
        error = classify_response(status, {}, body, variable="A_KEY", now=NOW).error
        assert isinstance(error, ProviderFailed)
        return error

    refused = error_of(403)
    assert isinstance(refused, ApiKeyRefused)
    assert refused.variable == "A_KEY"
    assert isinstance(error_of(503), ProviderBusy)
    assert isinstance(
        error_of(400, "prompt is too long: 9000 tokens > 8192 maximum"), ContextOverflow
    )
    assert type(error_of(404)) is ProviderFailed
