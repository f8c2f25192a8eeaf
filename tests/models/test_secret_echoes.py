"""A provider that echoes parts of a key gets none of them shown, and its words stay readable."""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.models.api_keys import MASK, ApiKey, redact
from recollect.models.secret_echoes import LONG, SHORT
from tests.growth import is_linear

KEY = "sk-proj-Ab3dEf9hIj2lMnOpQr5tUv8xYz1BcD4wxyz"
prefixes = st.sampled_from(["", "sk-", "sk-proj-", "sk-ant-api03-", "AIza", "gsk_", "xai-"])
bodies = st.text(string.ascii_letters + string.digits + "-_", min_size=20, max_size=80)
keys = st.builds(lambda prefix, body: prefix + body, prefixes, bodies)
WORDS = st.sampled_from(
    ["Incorrect API key provided: ", "invalid x-api-key (", "the project has no access, ", "", "'"]
)


def shown(text: str, key: str = KEY) -> str:
    return redact(text, [ApiKey(key)])


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"Incorrect API key provided: {KEY}.", f"Incorrect API key provided: {MASK}."),
        ("Incorrect API key provided: sk-proj-Ab3d****wxyz.",
         f"Incorrect API key provided: {MASK}."),
        ("key sk-proj-…wxyz is wrong", f"key {MASK} is wrong"),
        ("the key ending in wxyz", f"the key ending in {MASK}"),
        ("the key 'Ab3d...'", f"the key '{MASK}...'"),
        ("your key Ab3dEf9h was revoked", f"your key {MASK} was revoked"),
        ("sk-proj-Ab3d Ef9h Ij2l", MASK),
        ("sk-pr\noj-Ab3\ndEf9h", MASK),
        ("SK-PROJ-AB3DEF9H", MASK),
        ("Your project may not use x-api-key: try again", None),
        ("keys that start with sk- are proxied", None),
        ("Rate limit of 12345 tokens per minute, 8192 left", None),
    ],
)  # fmt: skip
def test_what_is_echoed_of_a_key_is_masked_and_nothing_else(text: str, clean: str | None) -> None:
    assert shown(text) == (text if clean is None else clean)


def test_the_words_of_providers_stay_readable() -> None:
    key = "sk-ant-api03-" + KEY[8:]
    said = "invalid x-api-key: the anthropic api project expects an api-key header"
    assert shown(said, key) == said


def survives(key: str, text: str, size: int) -> bool:
    """Whether so many consecutive characters of the key stand in the text."""
    text = text.replace(MASK, "\0")
    return any(key[at : at + size] in text for at in range(len(key) - size + 1))


def pieces(key: str, data: st.DataObject) -> str:
    start = data.draw(st.sampled_from([0, 0, len(key) - 9, len(key) // 2]) | st.integers(0, 20))
    return key[start : start + data.draw(st.integers(4, 40))]


ECHOES: dict[str, Callable[[str, str], str]] = {
    "plain": lambda part, _: part,
    "masked": lambda part, key: f"{part}{'*' * 20}{key[-4:]}",
    "dots": lambda part, key: f"{key[:6]}...{part}",
    "ellipsis": lambda part, key: f"{key[:8]}…{part}",
    "quoted": lambda part, _: "".join(f"%{ord(c):02X}" if c in "-_" else c for c in part),
    "blanks": lambda part, _: " ".join(re.findall(".{1,3}", part)),
    "lines": lambda part, _: "\n".join(re.findall(".{1,5}", part)),
}


@given(keys, WORDS, WORDS, st.sampled_from(sorted(ECHOES)), st.data())
@example("abcdefghij" * 3, "", "", "masked", None)
def test_no_part_of_a_key_survives(
    key: str, before: str, after: str, form: str, data: st.DataObject | None
) -> None:
    part = pieces(key, data) if data is not None else key[:12]
    said = shown(before + ECHOES[form](part, key) + after, key)
    assert not survives(key, said, LONG)
    own = re.sub(r"\A(?:[a-z]{2,8}[0-9]{0,2}[-_]){1,4}", "", key)
    for run in re.findall(r"[A-Za-z0-9_-]+", said.replace(MASK, "\0")):  # as a word of its own
        assert not (len(run) >= SHORT and run in own)


@given(keys, st.binary(max_size=3), st.integers(0, 40))
def test_no_base64_of_a_key_survives(key: str, before: bytes, cut: int) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        form = encode(before + key.encode()).decode()
        said = shown(f"bad header {form[cut:]}", key).replace(MASK, "\0")
        assert not any(form[at : at + 12] in said for at in range(4, len(form) - 15))
    assert key.encode().hex()[4:20] not in shown(key.encode().hex(), key)


@given(keys, st.text(max_size=200), st.text(max_size=50))
def test_any_text_is_redacted(key: str, before: str, after: str) -> None:
    assert not survives(key, shown(before + key + after, key), LONG)


def test_finding_echoes_is_linear() -> None:
    def search(size: int) -> Callable[[], object]:
        texts = [KEY[:5] * size, "* " * size, (KEY[:6] + "*") * size, (KEY[:6] + " ") * size]
        return lambda: [shown(text) for text in texts]

    assert is_linear(search, 2_000, 20_000)
