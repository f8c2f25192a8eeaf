"""Errors in the providers' own sentences, and which error of ours each of them is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.error_reports import ErrorReport
from recollect.codecs.provider_errors import (
    MAX_SAID,
    bad_reply_from,
    make_printable,
    provider_error_from,
)
from recollect.errors import ApiKeyRefused, ContextOverflow, ProviderBusy, ProviderFailed
from tests import strategies


def report(said: str, kind: str = "") -> ErrorReport:
    return ErrorReport(said, kinds=(kind.lower(),) if kind else ())


@pytest.mark.parametrize(
    ("said", "status", "kind", "limit"),
    [
        ("This model's maximum context length is 8192 tokens.", 400, "", 8192),
        ("Your input exceeds the context window of this model.", 400, "", None),
        ("no", 400, "context_length_exceeded", None),
        ("prompt is too long: 210000 tokens > 200000 maximum", 400, "", 200_000),
        (
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
            400,
            "",
            200_000,
        ),
        (
            "The input token count (1594712) exceeds the maximum number of tokens (1048576).",
            400,
            "INVALID_ARGUMENT",
            1_048_576,
        ),
        ("request (5000 tokens) exceeds the available context size (4096 tokens)", 500, "", 4096),
        (
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
            400,
            "BadRequestError",
            4096,
        ),
        (
            "'max_tokens' is too large: 2000. This model's maximum context length is 4096 tokens.",
            400,
            "",
            4096,
        ),
        ("prompt too long; exceeded max context length by 1500 tokens", 400, "", None),
        ("maximum prompt length is 131072 but the request contains 537812", 400, "", 131_072),
    ],
)
def test_more_tokens_than_the_window(said: str, status: int, kind: str, limit: int | None) -> None:
    error = provider_error_from(report(said, kind), status)
    assert isinstance(error, ContextOverflow)
    assert (error.limit, error.status, error.said) == (limit, status, said)


@pytest.mark.parametrize(
    ("said", "status", "kind"),
    [
        ("Rate limit reached for gpt-4 on tokens per min (TPM): Limit 10000", 429, "tokens"),
        ("This request would exceed the rate limit of 40,000 input tokens per minute", 0, ""),
        ("Too many tokens, please wait before trying again.", 400, ""),
        ("Overloaded", 529, "overloaded_error"),
        ("Overloaded", 0, ""),
        ("The model is overloaded. Please try again later.", 503, "UNAVAILABLE"),
        ("Loading model", 503, "unavailable_error"),
        ("", 502, ""),
        ("timeout", 408, ""),
        ("conflict", 409, ""),
        ("Internal server error", 0, "api_error"),
    ],
)
def test_too_busy(said: str, status: int, kind: str) -> None:
    assert isinstance(provider_error_from(report(said, kind), status), ProviderBusy)


@pytest.mark.parametrize(
    ("said", "status", "kind"),
    [
        ("Incorrect API key provided: sk-***", 401, "invalid_api_key"),
        ("invalid x-api-key", 0, "authentication_error"),
        ("API key not valid. Please pass a valid API key.", 400, "INVALID_ARGUMENT"),
        ("no", 403, ""),
    ],
)
def test_the_key_is_refused(said: str, status: int, kind: str) -> None:
    error = provider_error_from(report(said, kind), status)
    assert isinstance(error, ApiKeyRefused)
    assert error.variable == ""


def test_any_other_error_keeps_the_providers_words() -> None:
    error = provider_error_from(report("no such model", "model_not_found"), 404)
    assert type(error) is ProviderFailed
    assert (error.said, error.status) == ("no such model", 404)
    assert provider_error_from(report(""), 0).said == "no reason was given"


@given(strategies.text | st.text(min_size=400, max_size=2_000), st.integers(), strategies.text)
def test_a_providers_words_are_short_and_printable_in_an_error(
    said: str, status: int, kind: str
) -> None:
    error = provider_error_from(report(said, kind), status)
    assert 0 < len(error.said) <= MAX_SAID
    assert error.said.isprintable()


@given(st.binary(max_size=300))
def test_anything_but_a_reply_is_named_in_one_short_line(data: bytes) -> None:
    error = bad_reply_from(data)
    assert error.what.isprintable()
    assert len(error.what) < 120


@given(strategies.text, st.integers(1, 60))
def test_foreign_text_is_cut_to_its_limit(text: str, limit: int) -> None:
    assert len(make_printable(text, limit)) <= limit
