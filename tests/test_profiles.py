from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Usage
from recollect.profiles import (
    EMBEDDED_MODEL,
    ENDPOINTS,
    PRICES,
    PROFILES,
    Endpoint,
    compute_cost,
    find_endpoint,
    find_profile,
    is_known_model,
)
from recollect.settings import ModelPrice

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"


def test_a_profile_applies_to_every_name_with_its_prefix() -> None:
    assert find_profile("gpt-4o-mini-2024-07-18").output == 16_384
    assert find_profile("o3-mini").system_role == "developer"
    assert find_profile("claude-opus-5-5").window == 1_000_000
    assert find_profile("ollama/qwen3:8b").thinks == "text"
    assert find_profile("deepseek-r1:14b").tools == "text"
    assert find_profile("deepseek-chat").reasoning == "reasoning_content"


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("gemma-2b", 8_192),
        ("gemma:7b", 8_192),
        ("gemma-2-9b-it", 8_192),
        ("gemma2:27b", 8_192),
        ("gemma-3-27b-it", 131_072),
        ("gemma3:1b", 32_768),
        ("gemma-3-1b-it", 32_768),
        ("gemma-3n-e4b-it", 32_768),
        ("gemma-4", 262_144),
        ("gemma-4-31b-it", 262_144),
        ("google/gemma-4-26B-A4B-it", 262_144),
        ("gemma-4-E4B-it", 131_072),
        ("gemma4:e2b", 131_072),
        ("gpt-4", 8_192),
        ("gpt-4-0613", 8_192),
        ("gpt-4-1106-preview", 128_000),
        ("gpt-4.5-preview", 128_000),
        ("gpt-4.1-mini", 1_047_576),
        ("claude-3-7-sonnet-latest", 200_000),
        ("claude-sonnet-4-5", 200_000),
        ("llama2:13b", 4_096),
        ("llama-3-8b", 8_192),
        ("llama-3.3-70b", 131_072),
        ("llama4:scout", 1_048_576),
        ("qwen3.5-397b-a17b", 262_144),
        ("glm-4.5-air", 131_072),
        ("kimi-k2.5", 262_144),
        ("mistral:7b", 32_768),
        ("mistral-medium-latest", 131_072),
    ],
)
def test_each_version_of_a_family_has_its_own_window(name: str, window: int) -> None:
    assert find_profile(name).window == window


@pytest.mark.parametrize(
    ("new", "newest"),
    [
        ("gemma-5-40b-it", "gemma-4-31b-it"),
        ("gemma5:40b", "gemma-4-31b-it"),
        ("gpt-6", "gpt-5"),
        ("gemini-4-pro", "gemini-3-pro"),
        ("claude-opus-6", "claude-opus-5"),
        ("claude-sonnet-7-2", "claude-sonnet-5"),
        ("claude-somebody-6", "claude-fable-5"),
        ("qwen4:30b", "qwen3.5"),
        ("glm-6", "glm-4.7"),
        ("kimi-k4", "kimi-k2"),
        ("llama-5-maverick", "llama-4-maverick"),
        ("llama5", "llama4"),
        ("llama-3.9", "llama-3.3"),
        ("o5-mini", "o4-mini"),
    ],
)
def test_a_version_that_is_not_known_is_taken_for_the_newest(new: str, newest: str) -> None:
    found, known = find_profile(new), find_profile(newest)
    same = [
        field
        for field in found.__struct_fields__
        if field not in ("prefix", "price") and getattr(found, field) != getattr(known, field)
    ]
    assert same == []


def test_the_embedded_model_writes_at_a_temperature_at_which_it_does_not_repeat_itself() -> None:
    profile = find_profile(EMBEDDED_MODEL)
    assert (profile.endpoint, profile.tools, profile.generation.temperature) == (
        "embedded",
        "text",
        0.2,
    )


def test_no_prefix_stands_twice() -> None:
    prefixes = sorted(profile.prefix for profile in PROFILES)
    assert all(one != other for one, other in pairwise(prefixes))
    assert all(prefix == prefix.lower().strip() for prefix in prefixes)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.prefix)
def test_every_profile_makes_sense(profile: object) -> None:
    found = find_profile(profile.prefix)  # type: ignore[attr-defined]
    assert 0 < found.output <= found.window
    assert found.endpoint == "" or find_endpoint(found.endpoint) is not None
    assert all(mime == mime.lower() and "/" in mime for mime in found.media)


def test_a_price_holds_for_the_name_and_its_dated_forms_but_for_no_sibling() -> None:
    assert find_profile("gpt-5").price == PRICES["gpt-5"]
    assert find_profile("openai/gpt-5-2025-08-07").price == PRICES["gpt-5"]
    assert find_profile("claude-haiku-4-5-20251001").price == PRICES["claude-haiku-4-5"]
    assert find_profile("gpt-5.4").price is None
    assert find_profile("gpt-5-codex").price is None
    assert find_profile("claude-opus-5-9").price is None


@pytest.mark.parametrize("name", PRICES)
def test_every_price_belongs_to_a_known_model_and_cached_input_is_cheapest(name: str) -> None:
    price = PRICES[name]
    assert is_known_model(name)
    assert price.cached is not None
    assert price.cached < price.input < price.output


def test_a_reply_costs_what_its_tokens_cost() -> None:
    price = ModelPrice(2.0, 10.0, 0.5)
    told = Usage(input=1_000_000, cached=400_000, output=100_000, total=1_100_000)
    assert compute_cost(told, price) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 10)
    assert compute_cost(told, ModelPrice(2.0, 10.0)) == pytest.approx(2 + 1)
    assert compute_cost(told, None) is None
    written = Usage(input=1_000_000, cached=400_000, written=200_000)
    assert compute_cost(written, price) == pytest.approx(0.4 * 2 + 0.2 * 2 * 1.25 + 0.4 * 0.5)


def test_thoughts_are_billed_once_whether_or_not_the_output_counts_them() -> None:
    price = ModelPrice(0.0, 10.0)
    apart = Usage(input=50, output=100, thoughts=900, tool=7, total=1_057)
    within = Usage(input=50, output=1_000, thoughts=900, total=1_050)
    assert compute_cost(apart, price) == compute_cost(within, price) == pytest.approx(0.01)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: e.name)
def test_every_endpoint_makes_sense(endpoint: object) -> None:
    assert isinstance(endpoint, Endpoint)
    found = endpoint
    assert find_endpoint(found.name) is found
    if found.url:
        parts = urlsplit(found.url)
        here = parts.hostname == "localhost"
        assert parts.scheme == ("http" if here else "https")
        assert bool(found.keys) == (not here)
        assert not found.url.endswith("/")
    if found.default:
        assert is_known_model(found.default) or found.name == "openrouter"


def test_every_endpoint_and_every_variable_is_documented() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for endpoint in ENDPOINTS:
        assert f"`{endpoint.name}`" in page
        for variable in endpoint.keys:
            assert f"`{variable}`" in page


def test_no_name_means_two_endpoints() -> None:
    names = [name for endpoint in ENDPOINTS for name in (endpoint.name, *endpoint.aliases)]
    assert len(names) == len(set(names))


@given(st.text(max_size=40))
def test_any_name_has_a_profile(name: str) -> None:
    profile = find_profile(name)
    assert profile.window > 0
    assert is_known_model(name) == (profile.prefix != "")
    assert find_profile("somewhere/" + name.rsplit("/", 1)[-1]) == profile
