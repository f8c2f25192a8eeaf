from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import BadInput
from recollect.terminal.plain_program import read_answer
from recollect.terminal.prompt_lines import MAX_PROMPT, PASTE_BEGIN, PASTE_END, PromptLines

LINE = st.text(st.characters(exclude_characters="\n\r\x1b\\", exclude_categories=["Cs"]))


@given(st.lists(LINE, min_size=1))
def test_lines_that_end_in_a_backslash_go_on(lines: list[str]) -> None:
    prompts = PromptLines()
    *first, last = lines
    assert all(prompts.add(f"{line}\\") is None and prompts.is_open for line in first)
    assert prompts.add(last) == "\n".join(lines)
    assert not prompts.is_open


@given(st.lists(st.one_of(LINE, st.just("ends in \\")), min_size=1), LINE, LINE)
def test_a_marked_block_is_one_prompt_with_what_is_typed_around_it(
    pasted: list[str], before: str, after: str
) -> None:
    prompts = PromptLines()
    block = f"{before}{PASTE_BEGIN}" + "\n".join(pasted) + f"{PASTE_END}{after}"
    *first, last = block.split("\n")
    assert all(prompts.add(line) is None for line in first)
    assert prompts.add(last) == block.replace(PASTE_BEGIN, "").replace(PASTE_END, "")


@given(st.lists(st.lists(st.sampled_from([PASTE_BEGIN, PASTE_END, "\\", "a", "\r"])).map("".join)))
def test_any_lines_give_prompts_without_marks(lines: list[str]) -> None:
    prompts = PromptLines()
    given = [prompts.add(line) for line in lines] + [prompts.finish()]
    assert all(PASTE_BEGIN not in one and PASTE_END not in one for one in given if one is not None)
    assert not prompts.is_open


def test_a_prompt_has_a_limit_and_the_next_one_is_read() -> None:
    prompts = PromptLines()
    prompts.add(PASTE_BEGIN)
    with pytest.raises(BadInput, match="too long"):
        prompts.add("x" * MAX_PROMPT)
    assert prompts.add("next") == "next"


@pytest.mark.parametrize(
    ("line", "allowed", "lasts"),
    [("y", True, "once"), (" YES ", True, "once"), ("s", True, "session"), ("a", True, "always")],
)
def test_a_yes_is_one_of_a_few_words(line: str, allowed: bool, lasts: str) -> None:
    answer = read_answer(line, has_rules=True)
    assert answer is not None
    assert (answer.allowed, answer.lasts) == (allowed, lasts)


@given(st.text())
def test_no_other_text_is_a_yes(text: str) -> None:
    answer = read_answer(text, has_rules=False)
    if answer is not None and answer.allowed:
        assert text.strip().lower() in ("y", "yes", "s", "session")


def test_a_longer_text_is_the_reason_of_a_no_and_a_slip_is_asked_again() -> None:
    answer = read_answer("yes but not now", has_rules=True)
    assert answer is not None
    assert (answer.allowed, answer.reason) == (False, "yes but not now")
    assert read_answer("u", has_rules=True) is None
    assert read_answer("", has_rules=True) is None
    assert read_answer("a", has_rules=False) is None
