"""Earlier prompts: the walk through them, and where they are read from."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Message, Note, Text
from recollect.runtime.project_prompts import project_prompts
from recollect.runtime.runtime import open_runtime
from recollect.terminal.prompt_history import PromptHistory
from recollect.testing import model, user
from tests.terminal.pilot import TerminalPlace

PROMPTS = st.lists(st.text(min_size=1, max_size=5).filter(str.strip), max_size=6)


@given(PROMPTS, st.text(max_size=5), st.integers(0, 8))
def test_walking_back_and_forth_gives_back_what_was_typed(
    older: list[str], draft: str, steps: int
) -> None:
    history = PromptHistory()
    history.extend(older)
    shown, walked = draft, 0
    for _ in range(steps):
        if (found := history.older(shown)) is not None:
            shown, walked = found, walked + 1
    assert walked == min(steps, len(history))
    for _ in range(walked):
        found = history.newer(shown)
        assert found is not None
        shown = found
    assert shown == draft
    assert history.newer(shown) is None


def test_a_prompt_that_is_sent_again_is_the_newest_once() -> None:
    history = PromptHistory()
    history.extend(["b", "a"])
    history.add("a")
    assert [history.older(""), history.older("a")] == ["a", "b"]
    assert len(history) == 2


def test_a_change_to_an_older_prompt_stays_while_one_walks() -> None:
    history = PromptHistory()
    history.extend(["b", "a"])
    assert history.older("draft") == "b"
    assert history.older("b changed") == "a"
    assert history.newer("a") == "b changed"


def test_searching_wants_all_words_and_keeps_the_order() -> None:
    history = PromptHistory()
    history.extend(["fix the parser", "parser", "Fix PARSER tests"])
    assert history.search("parser fix") == ["fix the parser", "Fix PARSER tests"]


def test_prompts_are_read_newest_first_and_none_of_a_subagent(terminal: TerminalPlace) -> None:
    del terminal

    async def use() -> None:
        async with open_runtime() as runtime:
            for words in ("one", "two"):
                session, _ = await runtime.open_session(prompt=words)
                context = Message(role="user", parts=(Text(text="memory"),), context="memory")
                await session.append(context, user(words), model("yes"), user(f"{words} again"))
            parent = session.id
            child, _ = await runtime.open_session()
            link = Note(text="of", extra=f'{{"recollect":{{"parent":"{parent}"}}}}')
            await child.append(link, user("task of a sub-agent"))
            found = [one async for one in project_prompts(runtime.store, runtime.project)]
            assert found == ["two again", "two", "one again", "one"]

    asyncio.run(use())
