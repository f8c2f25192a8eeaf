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
