"""The delay that a provider requests, however it says it."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.requested_delays import Wait, parse_wait, wait_in_headers, wait_in_words
from tests.growth import is_linear

NOW = 1_800_000_000.0


def seconds(wait: Wait | None) -> float | None:
    return None if wait is None else round(wait.from_now(NOW), 9)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": formatdate(NOW + 30, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(NOW - 30, usegmt=True)}, 0.0),
        ({"retry-after": "Wed, 01 Jan 2025 00:00:00 -0000"}, 0.0),
        ({"retry-after": "20s"}, 20.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-tokens": "7.66s"}, 7.66),
        ({"x-ratelimit-reset": "1800000030"}, 30.0),
        ({"x-ratelimit-reset": "1800000030000"}, 30.0),
        ({"anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:30Z"}, 30.0),
        ({"retry-after": "2", "x-ratelimit-reset-requests": "6m0s"}, 2.0),
        ({}, None),
    ],
)
def test_the_delay_that_headers_request_is_understood(
    headers: dict[str, str], expected: float | None
) -> None:
    assert seconds(wait_in_headers(headers, limited=True)) == expected


def test_only_the_limit_that_has_nothing_left_says_when_to_come_back() -> None:
    openai = {
        "x-ratelimit-remaining-requests": "199",
        "x-ratelimit-reset-requests": "8h0m0s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "12s",
    }
    assert seconds(wait_in_headers(openai, limited=True)) == 12.0
    assert wait_in_headers(openai, limited=False) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Resource exhausted. Please retry in 5s", 5.0),
        ("Please retry in 44.097740004s.", 44.097740004),
        ("Please retry in 900.2ms.", 0.9002),
        ("Please try again in 1m30.5s. Visit https://x", 90.5),
        ("Please retry after 26 seconds.", 26.0),
        ("Please wait for at least 2 minutes and 5 seconds", 125.0),
        ("Your quota will reset after 19h14m47s.", 69_287.0),
        ("Resets in 9h22m20s.", 33_740.0),
        ("TRY AGAIN IN 20 ms", 0.02),
        ("try again in 2 days", 172_800.0),
        ("try again later", None),
        ("retry in 5 apples", None),
        ("retry in 5", None),
        ("within 5s", None),
    ],
)
def test_a_delay_in_words_is_understood(text: str, expected: float | None) -> None:
    assert seconds(wait_in_words(text)) == expected


@given(st.text(max_size=60) | st.from_regex(r"\A[0-9a-z .:+-]{0,40}\Z"))
def test_any_text_is_a_delay_or_none(text: str) -> None:
    for wait in (
        parse_wait(text),
        wait_in_words(f"retry in {text}"),
        wait_in_headers({"retry-after": text, "x-ratelimit-reset": text}, limited=True),
    ):
        assert wait is None or wait.from_now(NOW) >= 0


def test_finding_a_delay_is_linear() -> None:
    def search(size: int) -> Callable[[], object]:
        texts = ["retry in " * size, "retry in " + "1m " * size, "9" * size, "wait " + " " * size]
        return lambda: [wait_in_words(text) for text in texts]

    assert is_linear(search, 10_000, 100_000)
