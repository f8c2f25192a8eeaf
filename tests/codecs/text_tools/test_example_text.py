"""Calls that the model only shows are text, and no problem either."""

from __future__ import annotations

import pytest

from recollect.codecs.wire_protocol import Delta
from tests.codecs.text_tools.replies import calls, fenced, inline, pieces, scanned

CALL = inline("glob", pattern="*")
FENCE = fenced("glob", pattern="*")
ONE = [("glob", '{"pattern":"*"}')]


@pytest.mark.parametrize(
    "text",
    [
        f"    {CALL}\n",
        f"\t{CALL}\n",
        f"So:\n\n    {CALL}\n\nThat is all.",
        f"So:\n\n  \t{CALL}\n",
        f"So:\n\n    first\n    {CALL}\n\n    {CALL}\n",
        "So:\n\n    " + FENCE.replace("\n", "\n    ") + "\n",
        '    TOOL: glob\n    ARGS: {"pattern": "*"}\n',
        '\n\n    <tool_call>{"name": "rm", "arguments": {}}</tool_call>\n',
        "    <function=glob>\n    <parameter=pattern>x</parameter>\n    </function>",
        f"- a list\n\nAnd it ended.\n\n    {CALL}\n",
    ],
)
def test_an_indented_code_block_is_text(text: str) -> None:
    assert pieces(text) == (Delta("text", text),)
    assert scanned(text)[1] == ()
    assert scanned(text, *range(len(text))) == scanned(text)


@pytest.mark.parametrize(
    "text",
    [
        f"I look\n    {CALL}\n",  # a line of the paragraph
        f"1. I look\n\n    {CALL}\n",
        f"- I look\n    {CALL}\n",
        f"* I look:\n\n  more\n\n      {CALL}\n",
        "2) I look\n\n   " + FENCE.replace("\n", "\n   ") + "\n",
        f"   {CALL}\n",
    ],
)
def test_indented_calls_in_paragraphs_and_lists_run(text: str) -> None:
    assert calls(text) == ONE
    assert scanned(text, *range(len(text))) == scanned(text)


@pytest.mark.parametrize(
    "words",
    [
        *("For example:", "For example, to list the files:", "You could write, for instance:"),
        *(
            "You call a tool, e.g.",
            "You call tools such as:",
            "Here is an example:",
            "**Example:**",
        ),
        *("This is an example of a tool call:", "Another example:", "Some examples:", "e.g.:"),
        *("Zum Beispiel:", "Ein Beispiel:", "Man schreibt z. B.", "例如：", "比如:", "示例："),
        *("Par exemple :", "Por ejemplo:", "Например:", "例えば："),
    ],
)
def test_a_fence_that_the_text_announces_as_an_example_is_text(words: str) -> None:
    for gap in ("\n", "\n\n", "\n \n"):
        text = f"Well.\n{words}{gap}{FENCE}\nThat is all."
        assert pieces(text) == (Delta("text", text),)
        assert scanned(text.replace("glob", "rm"))[1] == ()
        assert scanned(text, *range(len(text))) == scanned(text)
    assert calls(f"{words}\n{FENCE}\nNow I do it.\n{FENCE}") == ONE


@pytest.mark.parametrize(
    "words",
    [
        *("I look:", "Let me read the example file:", "I will write an example file:", "Sample:"),
        *("That was for example one. Now I look:", "Look at examples/a.py:", "Let me exemplify:"),
        *("For example, glob would do.\nI try it:", "I run it as such:", "比例:"),
    ],
)
def test_other_words_before_a_fence_announce_no_example(words: str) -> None:
    assert calls(f"{words}\n\n{FENCE}\n") == ONE


@pytest.mark.parametrize(
    "words", ["For example: ", "e.g. ", "tools such as ", "例如：", "For example:\n"]
)
def test_a_call_directly_after_such_words_is_text(words: str) -> None:
    for call in (
        CALL,
        '{"tool_call":\n {"name": "glob", "arguments": {"pattern": "*"}}}',
        '<tool_call>{"name": "glob", "arguments": {"pattern": "*"}}</tool_call>',
        "<function=glob><parameter=pattern>*</parameter></function>",
    ):
        text = f"{words}{call} and so on.\n"
        assert pieces(text) == (Delta("text", text),)
        assert scanned(text)[1] == ()
    assert calls(f"For example, I look: {CALL}") == ONE
    assert calls(f"{words}{CALL}\nNow I do it.\n{CALL}") == ONE
