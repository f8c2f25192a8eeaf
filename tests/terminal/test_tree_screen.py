"""The tree on the screen: every branch can be opened again, here or in a fork."""

from __future__ import annotations

from recollect.terminal.command_table import run_command
from recollect.terminal.text_screen import TextScreen
from recollect.terminal.tree_screen import TreeScreen
from recollect.testing import ProviderLine, call, says, user
from tests.terminal.history_story import Story, choose, open_preview, run_story
from tests.terminal.pilot import DrivenTerminal, TerminalPlace

SCRIPT: list[ProviderLine] = [
    "one is done",
    says("more", call("write_file", "c3", file_path="g", content="more\n")),
    "two is done",
    "another is done",
]


async def open_tree(driven: DrivenTerminal) -> TreeScreen:
    await driven.type("/tree")
    await driven.press("enter")
    await driven.wait(lambda: isinstance(driven.app.screen, TreeScreen), "the screen")
    screen = driven.app.screen
    assert isinstance(screen, TreeScreen)
    await driven.wait(lambda: screen.rows, "the rows")
    await driven.pilot.pause()
    return screen


async def move_to(driven: DrivenTerminal, text: str) -> None:
    screen = driven.app.screen
    assert isinstance(screen, TreeScreen)
    tree = screen.tree_shown
    assert tree is not None
    await driven.press("home")
    while screen.row is None or tree.text(screen.row) != text:
        await driven.press("down")


async def go(driven: DrivenTerminal, key: str) -> None:
    await open_preview(driven)
    await choose(driven, key)


def said(driven: DrivenTerminal, text: str) -> bool:
    blocks = driven.app.chat.transcript.blocks
    return any(text in block.text for block in blocks if block.kind == "notice")


async def branch(driven: DrivenTerminal) -> None:
    """Two prompts, then back to before the second, with files, and another prompt."""
    await driven.say("first")
    await driven.say("second")
    await run_command(driven.app.runner, "rewind", "1 both yes")
    await driven.say("instead")


def run(terminal: TerminalPlace, story: Story, size: tuple[int, int] = (80, 24)) -> None:
    run_story(terminal, SCRIPT, branch, story, size)


def test_the_old_branch_is_folded_beside_the_path_and_can_be_opened_again(
    terminal: TerminalPlace,
) -> None:
    async def story(driven: DrivenTerminal) -> None:
        session, file = driven.session, terminal.project / "g"
        assert not file.exists()
        await open_tree(driven)
        lines = [line.strip() for line in driven.shown().splitlines()]
        beside = next(n for n, line in enumerate(lines) if line.startswith("├─▸ second"))
        assert lines[beside - 1].startswith("● first")
        assert lines[beside + 1].startswith("● instead")
        assert lines[beside + 1].endswith("← here")
        await move_to(driven, "second")
        await go(driven, "b")
        assert "two is done" in str(session.messages())
        assert file.read_text() == "more\n"
        await open_tree(driven)
        assert "├─▸ instead" in driven.shown()
        await move_to(driven, "instead")
        await go(driven, "c")
        assert "another is done" in str(session.messages())
        assert "two is done" not in str(session.messages())
        assert file.exists()

    run(terminal, story)


def test_a_turn_is_read_and_a_fork_of_it_is_shown_in_the_tree_of_both(
    terminal: TerminalPlace,
) -> None:
    async def story(driven: DrivenTerminal) -> None:
        session, runner = driven.session, driven.app.runner
        await open_tree(driven)
        await move_to(driven, "second")
        await driven.press("v")
        await driven.wait(lambda: isinstance(driven.app.screen, TextScreen))
        await driven.wait_shown("[a call of write_file]")
        await driven.press("down", "end", "escape", "f")
        await driven.wait(lambda: driven.app.screen is driven.app.chat, "the conversation")
        fork = driven.session
        assert fork.id != session.id
        assert "two is done" in str(fork.messages())
        assert "another is done" in str(session.messages())
        await driven.wait(lambda: said(driven, "returns to the original"))
        await open_tree(driven)
        assert "forked from: first" in driven.shown()
        await move_to(driven, "forked from: first")
        await driven.press("enter")
        await driven.wait(lambda: driven.app.screen is driven.app.chat)
        assert driven.session.id == session.id
        assert "fork: first" in await run_command(runner, "tree", "")

    run(terminal, story)


def test_fork_and_rename_in_words(terminal: TerminalPlace) -> None:
    async def story(driven: DrivenTerminal) -> None:
        session, store = driven.session, driven.app.runner.runtime.store
        await driven.type("/fork Another try")
        await driven.press("enter")
        await driven.wait(lambda: said(driven, "returns to the original"))
        fork = driven.session
        assert fork.view().head == session.view().head
        assert (await store.session(fork.id)).title == "Another try"
        await driven.type("/rename A better name")
        await driven.press("enter")
        await driven.wait(lambda: said(driven, "is now called 'A better name'"))
        assert (await store.session(fork.id)).title == "A better name"
        assert (await store.session(session.id)).title == "first"

    run(terminal, story)


def test_a_large_tree_in_a_small_terminal(terminal: TerminalPlace) -> None:
    async def story(driven: DrivenTerminal) -> None:
        session = driven.session
        hostile = [user(f"\x1b[31m\u202e你好 {n}") for n in range(2_000)]
        await driven.app.runner.edit(lambda s: s.append(*hostile), "grow")
        screen = await open_tree(driven)
        assert len(screen.rows) > 2_000
        shown = driven.shown()
        assert "1999" in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        await driven.press("home", "a", "left", "right", "pagedown", "end", "up")
        for size in ((20, 5), (120, 40)):
            await driven.pilot.resize_terminal(*size)
        await driven.press("q")
        await driven.wait(lambda: driven.app.screen is driven.app.chat)
        assert "1,8" in await run_command(driven.app.runner, "tree", "")
        assert session.view().head is not None

    run(terminal, story, (40, 12))
