"""What is offered at the cursor: commands, arguments, paths; and that no key waits for it."""

from __future__ import annotations

import asyncio
import time
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.terminal.prompt_completion import (
    complete_command,
    find_target,
    write_mention,
)
from recollect.terminal.slash_commands import COMMANDS
from recollect.tools.path_index import IndexedPath, match_paths
from recollect.workspace.untrusted_text import find_mentions
from tests.terminal.pilot import DrivenTerminal, TerminalPlace


def offered(driven: DrivenTerminal) -> list[str]:
    return [one.label for one in driven.app.chat.prompt.offered.candidates]


@pytest.mark.parametrize(
    ("before", "kind", "typed"),
    [
        ("/", "command", ""),
        ("/re", "command", "re"),
        ("/model gp", "argument", "gp"),
        ("/memory ", "argument", ""),
        ("see @src/a", "path", "src/a"),
        ('see @"my f', "path", "my f"),
        (r"see @my\ f", "path", "my f"),
        ("a\n@", "path", ""),
    ],
)
def test_what_is_being_typed_is_found(before: str, kind: str, typed: str) -> None:
    target = find_target(before)
    assert target is not None
    assert (target.kind, target.typed) == (kind, typed)


@pytest.mark.parametrize(
    "before", ["", "a/b", "me@example", "/etc/hosts", "say /re", "@a b", "\n/"]
)
def test_other_text_offers_nothing(before: str) -> None:
    assert find_target(before) is None


@given(st.text(min_size=1, max_size=30).filter(lambda path: path.strip() == path))
def test_a_path_that_is_offered_is_read_as_this_path(path: str) -> None:
    mention = write_mention(path)
    if mention:
        assert [one.path for one in find_mentions(f"see {mention} ")] == [path]


def test_commands_are_found_by_name_by_alias_and_by_letters() -> None:
    def names(typed: str) -> list[str]:
        return [one.text.strip() for one in complete_command(typed, COMMANDS)]

    assert names("comp")[0] == "/compact"
    assert names("clear") == ["/new"]
    assert names("cost") == ["/stats"]
    assert "/permissions" in names("prm")
    assert len(names("")) == len(COMMANDS)


PATHS = st.lists(st.text("ab/.", min_size=1, max_size=8), max_size=20)


@given(PATHS, st.text("ab/", max_size=4), st.text("ab/", max_size=2))
def test_a_longer_query_finds_the_same_with_and_without_the_shorter_one(
    paths: list[str], query: str, more: str
) -> None:
    indexed = tuple(IndexedPath(path, number) for number, path in enumerate(paths))
    first = match_paths(indexed, query, Event())
    assert first is not None
    again = match_paths(indexed, query + more, Event(), before=first)
    assert again == match_paths(indexed, query + more, Event())


def test_a_file_whose_name_begins_like_the_query_comes_first() -> None:
    paths = tuple(IndexedPath(path, 0) for path in ("x/t/e/s/t", "latest.py", "src/test.py"))
    found = match_paths(paths, "test", Event())
    assert found is not None
    assert found.best == ("src/test.py", "latest.py", "x/t/e/s/t")


def test_commands_and_arguments_are_offered_and_put_in(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open(["hi"]) as driven:
            await driven.say("the first prompt")
            await driven.type("/mem")
            await driven.wait(lambda: offered(driven)[:1] == ["/memory show|list|add TEXT|refresh"])
            await driven.press("tab")
            await driven.wait(lambda: offered(driven) == ["show", "list", "add", "refresh"])
            prompt = driven.app.chat.prompt.input
            assert prompt.text == "/memory "
            await driven.type("re")
            await driven.wait(lambda: offered(driven) == ["refresh"])
            await driven.press("escape")
            assert offered(driven) == []
            await driven.press("ctrl+c")
            await driven.type("/resume ")
            await driven.wait(lambda: len(offered(driven)) == 1)
            assert "the first prompt" in driven.shown()
            await driven.press("ctrl+c")
            await driven.type("/help")
            await driven.wait(lambda: offered(driven) != [])
            await driven.press("enter")  # it stands there already: sent
            await driven.wait_shown("what the model may call")

    asyncio.run(use())


def test_paths_are_offered_as_tools_may_see_them(terminal: TerminalPlace) -> None:
    terminal.write("src/parser.py", "x")
    terminal.write("my notes.md", "x")
    terminal.write("secret.txt", "x")
    terminal.write(".recollectignore", "secret.txt\n")

    async def use() -> None:
        async with terminal.open(["read"]) as driven:
            await driven.type("see @my")
            await driven.wait(lambda: offered(driven) == ["my notes.md"])
            await driven.press("enter")
            prompt = driven.app.chat.prompt.input
            assert prompt.text == 'see @"my notes.md" '
            await driven.type("@sec")
            await driven.wait(lambda: driven.app.chat.prompt.completer.target is not None)
            await driven.pilot.pause()
            assert offered(driven) == []
            await driven.press("backspace", "backspace", "backspace")
            await driven.type("sr")
            await driven.wait(lambda: "src/" in offered(driven))
            assert "src/parser.py" in offered(driven)
            await driven.press("tab")
            await driven.wait(lambda: prompt.text.endswith("@src/"))
            await driven.wait(lambda: offered(driven) == ["src/", "src/parser.py"])
            await driven.press("tab")
            assert prompt.text.endswith("@src/parser.py ")

    asyncio.run(use())


def test_a_hundred_thousand_files_do_not_stall_a_key(terminal: TerminalPlace) -> None:
    paths = tuple(IndexedPath(f"folder{n % 300}/module_{n}.py", n) for n in range(100_000))

    async def use() -> None:
        async with terminal.open() as driven:
            await driven.wait(lambda: driven.app.chat.prompt.is_mounted)
            source = driven.app.chat.prompt.sources.paths
            runtime = await driven.app.runner.opened()
            source.use((runtime.folders.cwd, *runtime.folders.roots), paths)
            slowest = 0.0
            for key in "@mdl_99999":
                began = time.monotonic()
                await driven.type(key)
                slowest = max(slowest, time.monotonic() - began)
            await driven.wait(lambda: offered(driven) == ["folder99/module_99999.py"])
            assert slowest < 1.0  # a busy machine; each of ten searches alone takes that long

    asyncio.run(use())
