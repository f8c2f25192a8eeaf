from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.settings import Settings, parse_settings
from recollect.settings.setting_definitions import SETTINGS_SECTIONS
from recollect.settings.settings_listing import list_settings

SECRET = "Zq81xKw7Lm3vRt9PnBc5Yd2Hs6Gf4Ja0"
HOOK = "[[hooks]]\nevent = 'AfterTool'\n"


@pytest.mark.parametrize(
    "text",
    [
        f"[transport.headers]\nx-anything = '{SECRET}'",
        "[transport.headers]\nx-short = 'hunter-2'",
        f"[models.a]\nurl = 'http://a'\n[models.a.headers]\nAuthorization = 'Basic {SECRET}'",
        "[models.a]\nurl = 'http://me:hunter-2@a/v1'",
        f"[models.a]\nurl = 'http://a/v1?key={SECRET}'",
        "[models.a]\nurl = 'http://a/v1?key=hunter-2'",
        "[transport]\nproxy = 'http://me:hunter-2@a:8080'",
        f"{HOOK}command = 'tell --token {SECRET}'",
        f"{HOOK}command = 'tell --password=hunter-2'",
        f"{HOOK}command = 'curl -H \"Authorization: Bearer hunter-2\" a'",
        f"{HOOK}command = 'env API_KEY=hunter-2 a'",
        f"[permissions]\nallow = ['curl http://a/?x={SECRET}']",
        f"model = '{SECRET}'",
        f"model = 'sk-{SECRET[:12]}'",
        f"[routing]\nfallback = ['AIza{SECRET}']",
        f"[routing.choices]\n'{SECRET}' = 'sk-{SECRET[:16]}'",
    ],
)
def test_nothing_that_looks_like_a_secret_is_listed(text: str) -> None:
    shown = repr(list_settings(parse_settings(text).settings))
    assert "…" in shown
    assert not any(part in shown for part in (SECRET, SECRET[:12], "hunter-2"))


@pytest.mark.parametrize(
    "value",
    [
        "openrouter/qwen/qwen3-coder-480b-a35b-instruct-2507",
        "claude-sonnet-5-20260101",
        "anthropic.claude-3-7-sonnet-20250219-v1:0",
    ],
)
def test_names_of_models_are_listed_unchanged(value: str) -> None:
    assert list_settings(parse_settings(f"model = '{value}'").settings)["model"] == value


def test_every_setting_is_listed() -> None:
    known = set(Settings.__struct_fields__) - set(SETTINGS_SECTIONS)
    for name, section in SETTINGS_SECTIONS.items():
        known |= {f"{name}.{field}" for field in section.__struct_fields__}
    assert set(list_settings(Settings())) == known
    text = "[models.a]\nurl = 'http://a'\nwindow = 5\nprice = { input = 1, output = 2 }"
    listed = list_settings(parse_settings(text).settings)
    assert {key for key in listed if key.startswith("models.")} == {
        "models.a.url",
        "models.a.window",
        "models.a.price",
    }


@given(st.text(max_size=200))
def test_listing_never_fails_and_hiding_is_idempotent(text: str) -> None:
    once = list_settings(Settings(model=text))["model"]
    assert list_settings(Settings(model=once))["model"] == once
