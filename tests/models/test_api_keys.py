from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from recollect.errors import ApiKeyRefused, ModelError
from recollect.models.api_keys import MASK, ApiKey, find_api_key, redact, redact_error
from tests.growth import is_linear

SECRET = "sk-fake-0123456789abcdef/+secret"
secrets = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6, max_size=60)


def nowhere(_: str) -> str | None:
    return None


def test_a_key_does_not_show_itself() -> None:
    key = ApiKey(SECRET, "A_KEY")
    shown = [repr(key), str(key), f"{key}", f"{key!r}", repr([key]), f"{key:>40}".strip()]
    assert shown == [MASK] * 4 + [f"[{MASK}]", MASK]
    assert key.reveal() == SECRET
    with pytest.raises(TypeError):
        pickle.dumps(key)
    with pytest.raises(TypeError):
        copy.deepcopy(key)
    with pytest.raises(TypeError):
        msgspec.json.encode(key)


def test_the_first_variable_that_is_set_wins() -> None:
    found = find_api_key(("A", "B"), {"A": "  ", "B": f" {SECRET}\n"}, nowhere)
    assert found is not None
    assert (found.reveal(), found.variable) == (SECRET, "B")


def test_the_environment_wins_over_the_keyring() -> None:
    ring = {"A": "from-the-ring"}.get
    for environment, expected in (({"B": SECRET}, SECRET), ({}, "from-the-ring")):
        found = find_api_key(("A", "B"), environment, ring)
        assert found is not None
        assert found.reveal() == expected


def test_no_key_is_no_key() -> None:
    assert find_api_key(("A",), {}, nowhere) is None
    assert find_api_key((), {"A": SECRET}, nowhere) is None


@pytest.mark.parametrize("secret", ["two words", "line\nbreak", "schlüssel-0123", "nul\x00nul"])
def test_what_no_header_can_carry_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(ModelError, match="the API key in A has characters") as caught:
        find_api_key(("A",), {"A": secret}, nowhere)
    assert secret not in str(caught.value)


@given(secrets, st.text(max_size=30), st.text(max_size=30))
def test_no_key_is_left_in_any_text(secret: str, before: str, after: str) -> None:
    assume(secret not in MASK * 3)
    keys = [ApiKey(secret)]
    for form in (secret, quote(secret, safe="")):
        said = redact(before + form + after, keys)
        assert secret not in said.replace(MASK, "\n")
        assert form not in said.replace(MASK, "\n")


@given(secrets, st.text(max_size=30), st.integers(6, 60))
@example("." * 7, "", 6)
@example("aaaaaa.b", "", 7)
def test_a_key_that_was_cut_off_is_recognised(secret: str, before: str, length: int) -> None:
    said = redact(before + secret[:length] + "…", [ApiKey(secret)])
    assert not said.rstrip("…").endswith(secret[:length])


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc123def", "Authorization: Bearer [key]"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [key]"),
        ("sent Bearer abc123def to it", "sent Bearer [key] to it"),
        ('{"x-api-key": "abc123def"}', '{"x-api-key": "[key]"}'),
        ("x-goog-api-key: abc123def, more", "x-goog-api-key: [key], more"),
        ("api_key=abc123def&x=1", "api_key=[key]&x=1"),
        ("https://h/p?alt=sse&key=abc&x=1", "https://h/p?alt=sse&key=[key]&x=1"),
        ("use Bearer authentication here", "use Bearer authentication here"),
        ("a basic understanding", "a basic understanding"),
        ("no API key was given", "no API key was given"),
    ],
)
def test_a_key_that_nobody_knows_is_recognised_by_what_stands_before_it(
    text: str, clean: str
) -> None:
    assert redact(text) == clean
    assert redact(clean) == clean


@given(st.text(max_size=60))
def test_text_without_keys_and_their_marks_is_left_alone(text: str) -> None:
    assume(not any(mark in text for mark in ":=&?;"))
    assume(not any(SECRET[at : at + 4] in text for at in range(len(SECRET))))
    assert redact(text, [ApiKey(SECRET)]) == text


def test_a_short_secret_does_not_spoil_every_word() -> None:
    assert redact("an error", [ApiKey("e")]) == "an error"


def test_redacting_is_linear() -> None:
    def redact_all(size: int) -> Callable[[], object]:
        texts = ["bearer " * size, "api_key=" * size, "?key=" * size, "Bearer " + "x" * size * 7]
        return lambda: [redact(text, [ApiKey(SECRET)]) for text in texts]

    assert is_linear(redact_all, 10_000, 100_000)


def test_an_error_loses_its_keys_in_words_and_in_attributes() -> None:
    error = ApiKeyRefused(f"wrong key {SECRET}", 401, "A_KEY")
    assert redact_error(error, [ApiKey(SECRET)]) is error
    assert SECRET not in str(error) + repr(error) + repr(vars(error))
    assert (error.status, error.variable) == (401, "A_KEY")
    assert "check the key in A_KEY" in str(error)
