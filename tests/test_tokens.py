from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import FileRef, InlineData, Message, Text, Thought, ToolCall, ToolResult
from recollect.profiles import PROFILES, find_profile, is_known_model
from recollect.tokens import (
    ESTIMATE,
    PDF_TOKENS,
    Calibration,
    counter_for,
    estimate_tokens,
    find_requested_tokens,
    find_token_limit,
)


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gemini-1.5-pro-002", 2_097_152),
        ("gemini-1.5-flash", 1_048_576),
        ("models/gemini-2.5-pro", 1_048_576),
        ("openai/GPT-4o-mini", 128_000),
        ("gpt-4.1-nano", 1_047_576),
        ("gpt-4-0613", 8_192),
        ("claude-sonnet-4-5", 200_000),
        ("qwen3-coder-plus", 262_144),
        ("smollm2-135m-instruct", 8_192),
        ("nobody-knows-this", 32_768),
        ("", 32_768),
    ],
)
def test_the_longest_prefix_of_a_models_name_tells_its_window(model: str, window: int) -> None:
    assert find_profile(model).window == window
    assert is_known_model(model) == (model not in ("nobody-knows-this", ""))


def test_compaction_begins_at_a_fifth_of_large_windows_and_seven_tenths_of_small_ones() -> None:
    assert find_profile("gemini-2.5-pro").threshold == 209_715
    assert find_profile("gpt-4o").threshold == 89_600


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.prefix)
def test_every_public_vocabulary_is_there_and_counts(profile: object) -> None:
    prefix = profile.prefix  # type: ignore[attr-defined]
    counter = counter_for(prefix)
    assert 1 <= counter.text("hello") <= 5
    assert counter.text("") == 0
    assert counter.text("lone \ud800 and \x00 and <|endoftext|>") > 3


def test_exact_counts_are_those_of_the_vocabulary() -> None:
    count = counter_for("gpt-4o")
    assert count.exact
    assert count.text("hello world") == 2
    assert count.text("def f(x):\n    return x") == 7  # def| f|(x|):\n|   | return| x


@given(st.text(st.characters(exclude_categories=())))
def test_an_estimate_is_a_quarter_for_ascii_and_more_for_the_rest(text: str) -> None:
    plain = sum(c.isascii() for c in text)
    expected = plain * 0.25 + (len(text) - plain) * 1.5
    assert expected <= estimate_tokens(text) < expected + 1


def test_media_are_counted_by_what_they_are() -> None:
    image = InlineData(mime="image/png", data=b"\0" * 5_000_000)
    assert ESTIMATE.part(image) == 3_000
    assert counter_for("gemini-2.5-pro").part(image) == 258
    assert ESTIMATE.part(InlineData(mime="application/pdf", data=b"x")) == PDF_TOKENS
    assert ESTIMATE.part(FileRef(mime="image/png", uri="file:///a.png")) < 3_100


def test_calls_and_results_count_by_name_and_content() -> None:
    call = ToolCall(id="1", name="read", arguments='{"path":"a.py"}')
    result = ToolResult(call_id="1", name="read", content=(Text(text="x" * 40),))
    message = Message(role="model", parts=(Thought(text="hm hm hm"), call, result))
    assert ESTIMATE.message(message) == 2 + (1 + 4) + (1 + 10)


@given(st.lists(st.tuples(st.integers(-5, 10_000), st.integers(-5, 10_000)), max_size=60))
def test_calibration_moves_slowly_and_stays_within_bounds(replies: list[tuple[int, int]]) -> None:
    calibration = Calibration()
    for estimated, reported in replies:
        before, calibration = calibration, calibration.learn(estimated, reported)
        assert abs(calibration.factor - before.factor) <= 0.15 + 1e-9
        assert 0.5 <= calibration.factor <= 2.0


def test_calibration_learns_the_truth_and_shows_its_error() -> None:
    calibration = Calibration()
    for _ in range(40):
        calibration = calibration.learn(1_000, 1_300)
    assert calibration.apply(1_000) == pytest.approx(1_300, rel=0.01)
    assert calibration.error < 0.05
    assert Calibration().learn(0, 5) == Calibration()


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        (
            "This model's maximum context length is 128000 tokens. However, you requested 130000",
            128_000,
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        (
            "The input token count (1200000) exceeds the maximum number of tokens (1048576).",
            1_048_576,
        ),
        ("exceeds the model's maximum context length of 8,192 tokens", 8_192),
        ("Input tokens exceed the configured limit of 272000 tokens.", 272_000),
        ("rate limit reached, retry in 20s", None),
        ("", None),
    ],
)
def test_a_limit_that_an_error_names_is_understood(error: str, limit: int | None) -> None:
    assert find_token_limit(error) == limit


@pytest.mark.parametrize(
    ("error", "limit", "requested"),
    [
        ("request (11412 tokens) exceeds the available context size (8192 tokens)", 8_192, 11_412),
        (
            "maximum context length is 128000 tokens. However, you requested 130,004",
            128_000,
            130_004,
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000),
        ("exceeds the model's maximum context length of 8,192 tokens", 8_192, None),
    ],
)
def test_the_requested_tokens_are_read_from_the_error_too(
    error: str, limit: int, requested: int | None
) -> None:
    assert find_token_limit(error) == limit
    assert find_requested_tokens(error, limit) == requested
