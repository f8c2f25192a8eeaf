"""The table of endings: what the providers' words mean, and what follows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recollect.codecs.endings import (
    FINISH_WORDS,
    OUTCOMES,
    content_of,
    cut_call,
    judge_reply,
    read_finish,
)
from recollect.entries import FileRef, InlineData, Message, Part, Text, Thought, ToolCall, Unknown

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## How a reply ends")[1].split("\n## ")[0]
PROVIDERS = ("openai", "gemini", "anthropic")
CONTENTS = ("calls", "text", "thoughts", "nothing")


def rows(header: str) -> list[list[str]]:
    """The cells of the table whose header begins like this."""
    table = SECTION.split(header)[1].split("\n\n")[0].split("\n")[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_every_word_is_documented_as_what_it_means() -> None:
    shown = {
        (provider, word): "" if row[0] == "none" else row[0].strip("`")
        for row in rows("| end | OpenAI")
        for provider, cell in zip(PROVIDERS, row[1:], strict=True)
        for word in re.findall(r"`([^`]+)`", cell)
    }
    assert shown == {
        (provider, word): finish
        for provider, words in FINISH_WORDS.items()
        for word, finish in words.items()
    }


def test_every_outcome_is_documented() -> None:
    shown = {
        "" if row[0] == "none" else row[0].strip("`"): dict(
            zip(CONTENTS, (cell.replace(" ", "_") for cell in row[1:]), strict=True)
        )
        for row in rows("| end | calls")
    }
    assert shown == OUTCOMES


@pytest.mark.parametrize(
    ("parts", "content"),
    [
        ((), "nothing"),
        ((Text(text=""),), "nothing"),
        ((Text(text=" \n\t\u200b\u2060\ufeff\u00ad\u3164\u2800\U000e0041"),), "nothing"),
        ((Thought(text=""),), "nothing"),
        ((Thought(text="", signature="x"), Text(text=" ")), "nothing"),
        ((Thought(text="Hm."),), "thoughts"),
        ((Thought(text="Hm."), Text(text="\u200b")), "thoughts"),
        ((Thought(text="Hm."), Text(text="好")), "text"),
        ((Text(text="0"),), "text"),
        ((InlineData(mime="image/png", data=b"x"),), "text"),
        ((InlineData(mime="image/png", data=b""),), "nothing"),
        ((FileRef(mime="image/png", uri="gs://x"),), "text"),
        ((Unknown(data='{"executableCode":{}}'),), "nothing"),
        ((Text(text="so"), ToolCall(id="a", name="b", arguments="{}")), "calls"),
    ],
)
def test_invisible_characters_say_nothing(parts: tuple[Part, ...], content: str) -> None:
    assert content_of(Message(role="model", parts=parts)) == content


@pytest.mark.parametrize(
    ("provider", "word", "has_calls", "means"),
    [
        ("gemini", "STOP", True, ("calls", "")),
        ("gemini", "RECITATION", False, ("safety", "RECITATION")),
        ("gemini", "SAFETY", False, ("safety", "")),
        ("openai", "tool_calls", False, ("malformed_call", "tool_calls")),
        ("openai", "abort", False, ("", "abort")),
        ("openai", "done", False, ("stop", "")),
        ("openai", "stop_token", True, ("calls", "")),
        ("anthropic", "pause_turn", False, ("pause", "")),
        ("anthropic", "tired", False, ("other", "tired")),
        ("anthropic", "max_tokens", True, ("length", "")),
        ("anthropic", "", True, ("", "")),
    ],
)
def test_a_word_means_one_end_and_stays_where_it_says_more(
    provider: str, word: str, has_calls: bool, means: tuple[str, str]
) -> None:
    assert read_finish(provider, word, has_calls=has_calls) == means


@pytest.mark.parametrize(
    ("arguments", "is_cut"),
    [('{"a": 1}', False), ('{"a": 1', True), ("{}", True), ("", True), ('{"a": "', True)],
)
def test_the_last_call_of_a_reply_at_its_limit_is_cut_unless_it_is_complete(
    arguments: str, is_cut: bool
) -> None:
    call = ToolCall(id="a", name="b", arguments=arguments)
    reply = Message(role="model", parts=(call,), finish="length")
    assert (cut_call(reply) is call) is is_cut
    assert cut_call(Message(role="model", parts=(call,), finish="calls")) is None
    assert cut_call(Message(role="model", parts=(call, Text(text="x")), finish="length")) is None


def test_a_stored_interruption_is_no_end() -> None:
    reply = Message(role="model", parts=(Text(text="half"),), finish="interrupted")
    assert judge_reply(reply).outcome == "interrupted"
