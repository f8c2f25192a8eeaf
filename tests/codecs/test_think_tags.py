"""Thoughts in the text of a reply, and the switches that turn them off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.openai import OpenAIWire
from recollect.codecs.think_tags import ThinkingOffText, ThinkTagSplitter, ThinkTagsWire
from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.entries import Message, Text, Thought
from recollect.testing import user

_TOKENS = st.sampled_from(
    [
        *("<think>", "</think>", "<thinking>", "</thinking>", "<THINK>", "</Think>", "<", "think>"),
        *('{"tool_call": "', '{"name": ', '"', "}", "\\", "<parameter=a>", "</parameter>"),
        *("`", "``", "```", "```py\n", "```\n", "~~~\n", "~~~", "\n", " ", "word", "`" * 63, "</"),
    ]
)
texts = st.lists(_TOKENS, max_size=25).map("".join)


def split(text: str, *cuts: int, inside: bool = False) -> tuple[Delta, ...]:
    splitter = ThinkTagSplitter(starts_inside=inside)
    edges = [0, *sorted(cuts), len(text)]
    for start, end in zip(edges, edges[1:], strict=False):  # noqa: RUF007
        splitter.feed(text[start:end])
    splitter.close()
    return splitter.pieces()


def thought(text: str) -> Delta:
    return Delta("thought", text)


def said(text: str) -> Delta:
    return Delta("text", text)


@pytest.mark.parametrize("tag", ["think", "thinking", "THINK", "Think"])
def test_a_thought_is_taken_out_of_the_text(tag: str) -> None:
    assert split(f"<{tag}>hm</{tag}>So.") == (thought("hm"), said("So."))


def test_several_thoughts_stay_in_their_places() -> None:
    assert split("a<think>b</think>c<think>d</think>") == (
        said("a"),
        thought("b"),
        said("c"),
        thought("d"),
    )


def test_a_missing_closing_tag_makes_the_rest_a_thought() -> None:
    assert split("a<think>b\nc") == (said("a"), thought("b\nc"))


def test_a_missing_opening_tag_makes_everything_before_the_closing_tag_a_thought() -> None:
    assert split("hm, well\n</think>\nSo.") == (thought("hm, well\n"), said("\nSo."))


def test_a_reply_can_begin_inside_a_thought() -> None:
    assert split("hm", inside=True) == (thought("hm"),)
    assert split("hm</think>So.", inside=True) == (thought("hm"), said("So."))
    assert split("<think>\nhm</think>So.", inside=True) == (thought("\nhm"), said("So."))


def test_a_second_closing_tag_is_text() -> None:
    assert split("<think>a</think>b</think>c") == (thought("a"), said("b</think>c"))


@pytest.mark.parametrize(
    "text",
    [
        "Write `<think>` first.",
        "Write ``a ` <think>`` first.",
        "```\n<think>\n</think>\n```\n",
        "  ~~~ html\n<think>\n~~~\n",
        "````\n```\n<think>\n```\n````\n",
        "a < think > b <thinker> </thinks>",
    ],
)
def test_literal_tags_inside_code_stay_text(text: str) -> None:
    assert split(text) == (said(text),)


@pytest.mark.parametrize(
    "text",
    [
        '{"tool_call": {"name": "w", "arguments": {"content": "a <think>b</think> c"}}}',
        '{"tool_call": {\n "name": "w",\n "arguments": {"content": "</think> \\"<think>"}}}\nSo.',
        'I write {"name": "w", "arguments": {"a": ["}", "<think>"]}} now',
        '<tool_call>{"name": "w", "arguments": {"a": "</think>"}}</tool_call>',
        "<function=w>\n<parameter=a>\n<think>\n</think>\n</parameter>\n</function>",
        'TOOL: w\nARGS: {"a": "x<think>"}\n',
    ],
)
def test_literal_tags_inside_the_arguments_of_a_call_stay_text(text: str) -> None:
    assert split(text) == (said(text),)
    after = f"{text}\n<think>hm</think>So."
    assert split(after) == (said(f"{text}\n"), thought("hm"), said("So."))
    assert split(after, *range(len(after))) == split(after)


@pytest.mark.parametrize(
    "text",
    [
        'He said "I {"name": 3} ',
        '{"tool_call": {"name": "w", \n',
        '{"tool_call": {"name": "w", "a": "open\n',
        '```json\n{"tool_call": {"name": "no end}}}\n```\n',
        '<tool_call>{"name": "no end}}</tool_call>',
    ],
)
def test_a_call_that_is_over_or_broken_hides_no_thought_after_it(text: str) -> None:
    assert split(f"{text}<think>hm</think>So.") == (said(text), thought("hm"), said("So."))


def test_literal_tags_inside_the_code_of_a_thought_do_not_end_it() -> None:
    inner = "use `</think>` here\n```\n</think>\n```\nok"
    assert split(f"<think>{inner}</think>So.") == (thought(inner), said("So."))


def test_a_stray_backtick_hides_no_tag() -> None:
    assert split("<think>a ` b</think>So.") == (thought("a ` b"), said("So."))
    assert split("<think>a ` b</think>\nSo `x`.") == (thought("a ` b"), said("\nSo `x`."))


def test_a_fence_that_the_thought_leaves_open_does_not_swallow_the_answer() -> None:
    assert split("<think>a\n```py\nb\n</think>\nSo.") == (thought("a\n```py\nb\n"), said("\nSo."))


@given(texts, st.lists(st.integers(0, 200), max_size=6), st.booleans())
def test_any_chunking_gives_the_same_pieces(text: str, cuts: list[int], inside: bool) -> None:
    assert split(text, *(min(c, len(text)) for c in cuts), inside=inside) == split(
        text, inside=inside
    )


@given(texts)
def test_one_character_at_a_time_gives_the_same_pieces(text: str) -> None:
    assert split(text, *range(len(text))) == split(text)


@given(texts, st.booleans())
def test_only_tags_are_lost(text: str, inside: bool) -> None:
    kept = "".join(piece.text for piece in split(text, inside=inside))
    assert without_tags(kept) == without_tags(text)


def without_tags(text: str) -> str:
    """Also without those that appear where another was taken out."""
    before = None
    while text != before:
        before = text
        for tag in ("<think>", "</think>", "<thinking>", "</thinking>", "<THINK>", "</Think>"):
            text = text.replace(tag, "")
    return text


def test_a_streamed_reply_is_split_also_when_tags_are_cut() -> None:
    inner = OpenAIWire(model="qwq")
    wire = ThinkTagsWire(wire=inner)
    reply = Message(role="model", parts=(Text(text="<think>\nhm\n</think>\n\nSo."),), finish="stop")
    stream = b"".join(inner.encode_stream(reply))
    for size in (1, 7, len(stream)):
        decoder = wire.stream_decoder()
        shown: list[Delta] = []
        for at in range(0, len(stream), size):
            shown += decoder.feed(stream[at : at + size])
        shown += decoder.close()
        assert decoder.message().parts == (Thought(text="hm"), Text(text="So."))
        assert "".join(d.text for d in shown if d.kind == "thought") == "\nhm\n"
        assert "".join(d.text for d in shown if d.kind == "text") == "\n\nSo."


def test_a_reply_with_a_thought_is_written_and_read_again() -> None:
    wire = ThinkTagsWire(wire=OpenAIWire(model="qwq"))
    reply = Message(role="model", parts=(Thought(text="hm"), Text(text="So.")), finish="stop")
    assert wire.decode_reply(wire.encode_reply(reply)).parts == reply.parts
    decoder = wire.stream_decoder()
    decoder.feed(b"".join(wire.encode_stream(reply)))
    decoder.close()
    assert decoder.message().parts == reply.parts


@pytest.mark.parametrize(
    ("switch", "expected"),
    [("no_think_tag", "<no_think>\n\nhi"), ("slash_no_think", "hi /no_think"), ("", "hi")],
)
def test_with_thinking_off_the_models_own_switch_is_in_each_user_message(
    switch: ThinkingOffText, expected: str
) -> None:
    inner = OpenAIWire(model="qwen")
    wire = ThinkTagsWire(wire=inner, switch=switch, off=True)
    assert wire.encode_message(user("hi")).data == inner.encode_message(user(expected)).data
    assert ThinkTagsWire(wire=inner, switch=switch).encode_message(
        user("hi")
    ) == inner.encode_message(user("hi"))
    answer = Message(role="model", parts=(Text(text="yes"),))
    assert wire.encode_message(answer) == inner.encode_message(answer)
    frame = wire.encode_options(RequestOptions(model="qwen"), ())
    body = frame.before + wire.encode_message(user("hi")).data + frame.after
    assert wire.decode_request(body).messages == (user("hi"),)
