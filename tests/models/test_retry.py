from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import ApiKeyRefused, ContextOverflow, ProviderBusy, ProviderFailed
from recollect.models.http_errors import read_error_body, response_error
from recollect.models.retry import judge_error, refuses_tools, retry_delay

NOW = 1_800_000_000.0


delays = st.floats(0, 1e9) | st.none()


@given(st.integers(1, 10_000), delays, st.floats(0.001, 3_600), st.floats(0, 1))
def test_a_delay_is_never_below_the_requested_one_nor_above_the_limit_without_one(
    attempt: int, requested: float | None, longest: float, dice: float
) -> None:
    delay = retry_delay(attempt, requested, longest, dice)
    assert 0 <= delay <= max(longest, requested or 0.0)
    assert delay >= (requested or 0.0)


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
    report = read_error_body(body)
    assert report.said == said[0]
    assert not said[1] or said[1].lower() in report.kinds


def test_a_web_page_is_named_and_not_quoted() -> None:
    report = read_error_body(b"<html><head><title>502 Bad Gateway</title>" + b"x" * 5_000)
    assert report.said.startswith("a web page (<html>")
    assert (len(report.said) < 100, report.kinds) == (True, ())


@given(st.binary(max_size=200), st.integers(300, 599))
def test_any_body_is_one_short_sentence(body: bytes, status: int) -> None:
    error = response_error(status, {}, body, variable="A_KEY")
    assert len(str(error)) < 1_000
    assert str(error).isprintable()
    assert judge_error(error, 60.0, NOW).retryable <= isinstance(error, ProviderBusy)


def test_endless_nesting_is_no_problem() -> None:
    assert "JSON" in str(response_error(400, {}, b"[" * 60_000, variable=""))


def test_each_status_means_its_error() -> None:
    def error_of(status: int, said: str = "no") -> ProviderFailed:
        body = b'{"error":{"message":"%s"}}' % said.encode()
        return response_error(status, {}, body, variable="A_KEY")

    refused = error_of(403)
    assert isinstance(refused, ApiKeyRefused)
    assert refused.variable == "A_KEY"
    assert isinstance(error_of(503), ProviderBusy)
    assert isinstance(
        error_of(400, "prompt is too long: 9000 tokens > 8192 maximum"), ContextOverflow
    )
    assert type(error_of(404)) is ProviderFailed
