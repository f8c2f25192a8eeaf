"""Going back on the screen: prompts and calls to go back to, what it would change, and doing it."""

from __future__ import annotations

import asyncio

from recollect.entries import Note
from recollect.terminal.command_table import run_command
from recollect.terminal.prompt_input import PromptInput
from recollect.terminal.rewind_preview_screen import RewindPreviewScreen
from recollect.terminal.rewind_screen import RewindScreen
from recollect.testing import ProviderLine, call, model, says, user
from recollect.testing.request_checks import find_violation
from tests.terminal.history_story import Story, choose, notices, open_preview, run_story
from tests.terminal.pilot import DrivenTerminal, TerminalPlace

SCRIPT: list[ProviderLine] = [
    says(
        "both",
        call("write_file", "c1", file_path="made", content="by a tool\n"),
        call("replace", "c2", file_path="f", old_string="old", new_string="new"),
    ),
    "one is done",
    says("more", call("write_file", "c3", file_path="g", content="more\n")),
    "two is done",
    "three is done",
    "four is done",
]


async def play(driven: DrivenTerminal) -> None:
    """Two prompts for which tools change three files."""
    await driven.say("first")
    await driven.say("second")


async def open_points(driven: DrivenTerminal) -> RewindScreen:
    await driven.type("/rewind")
    await driven.press("enter")
    await driven.wait(lambda: isinstance(driven.app.screen, RewindScreen), "the screen")
    screen = driven.app.screen
    assert isinstance(screen, RewindScreen)
    await driven.wait(lambda: screen.points, "the points")
    return screen


async def look_at(driven: DrivenTerminal, text: str) -> None:
    """Open the preview of the point with this text."""
    screen = driven.app.screen
    assert isinstance(screen, RewindScreen)
    while screen.point is None or screen.point.text != text:
        await driven.press("down")
    await open_preview(driven)


def way_back(driven: DrivenTerminal) -> str:
    """The arguments of the command that the last notice names."""
    return notices(driven)[-1].split("`/rewind ")[1].split("`")[0]


def run(terminal: TerminalPlace, story: Story) -> None:
    terminal.write("f", "old\n")
    run_story(terminal, SCRIPT, play, story)


def files(terminal: TerminalPlace) -> dict[str, str]:
    return {path.name: path.read_text() for path in terminal.project.iterdir()}


OLD = {"f": "old\n"}
NEW = {"f": "new\n", "made": "by a tool\n", "g": "more\n"}


def test_a_prompt_is_gone_back_to_with_files_and_can_be_edited_and_it_can_be_undone(
    terminal: TerminalPlace,
) -> None:
    async def story(driven: DrivenTerminal) -> None:
        session = driven.session
        end = session.view().head
        screen = await open_points(driven)
        assert [point.text for point in screen.points] == ["second", "first"]
        assert "3 files changed since" in driven.shown()
        await look_at(driven, "first")
        shown = driven.shown()
        assert "9 messages leave it\n" in shown
        assert "    -new\n" in shown
        assert "    +old\n" in shown
        assert "  removed       made\n" in shown
        assert (files(terminal), session.view().head) == (NEW, end)  # nothing was changed yet
        await choose(driven, "b")
        assert files(terminal) == OLD
        assert driven.app.chat.query_one(PromptInput).text == "first"
        assert "first" not in [b.text for b in driven.app.chat.transcript.blocks]
        back = way_back(driven)
        driven.app.chat.query_one(PromptInput).clear()
        await run_command(driven.app.runner, "rewind", back)
        assert (files(terminal), session.view().head) == (NEW, end)

    run(terminal, story)


def test_before_a_call_what_a_provider_is_sent_stays_paired(terminal: TerminalPlace) -> None:
    async def story(driven: DrivenTerminal) -> None:
        await open_points(driven)
        await driven.press("a")
        await look_at(driven, "replace f")
        await choose(driven, "b")
        # what its reply had done before it stays
        assert files(terminal) == {"f": "old\n", "made": "by a tool\n"}
        assert driven.app.chat.query_one(PromptInput).text == ""
        await driven.say("third")
        sent = driven.server.requests[-1].json
        assert find_violation("openai", sent) == ""
        assert "by a tool" in str(sent)
        assert "one is done" not in str(sent)
        await open_points(driven)
        await driven.press("a")
        await look_at(driven, "write_file made")
        await choose(driven, "c")
        await driven.say("fourth")
        sent = driven.server.requests[-1].json
        assert find_violation("openai", sent) == ""
        assert "tool_calls" not in str(sent["messages"])

    run(terminal, story)


def test_what_someone_else_changed_stays_and_its_old_content_can_be_beside_it(
    terminal: TerminalPlace,
) -> None:
    async def story(driven: DrivenTerminal) -> None:
        terminal.write("f", "mine\n")
        await open_points(driven)
        await look_at(driven, "first")
        shown = driven.shown()
        assert "conflict      f: it was changed since the last tool wrote it; left" in shown
        assert "o both, old content beside what stays" in shown
        await choose(driven, "o")
        assert files(terminal) == {"f": "mine\n", "f.recollect-old": "old\n"}
        assert "its old content is in f.recollect-old" in notices(driven)[-1]

    run(terminal, story)


def test_files_alone_go_back_and_forth_while_the_conversation_stays(
    terminal: TerminalPlace,
) -> None:
    async def story(driven: DrivenTerminal) -> None:
        session = driven.session
        said = session.view().messages
        await open_points(driven)
        await look_at(driven, "second")
        await choose(driven, "f")
        assert files(terminal) == {"f": "new\n", "made": "by a tool\n"}
        assert driven.app.chat.query_one(PromptInput).text == ""
        assert session.view().messages == said
        await run_command(driven.app.runner, "rewind", way_back(driven))
        assert files(terminal) == NEW
        assert session.view().messages == said

    run(terminal, story)


def test_points_before_a_compaction_are_offered_and_lead_to_the_view_before_it(
    terminal: TerminalPlace,
) -> None:
    async def story(driven: DrivenTerminal) -> None:
        session, runner = driven.session, driven.app.runner
        long = [message for n in range(6) for message in (user(f"{n}?"), model("word " * 2_000))]
        await runner.edit(lambda s: s.append(*long), "grow")
        await runner.edit(lambda s: s.compact(budget=2_000), "compact")
        assert session.view().compaction is not None
        compacted = session.view().head
        await open_points(driven)
        await look_at(driven, "second")
        await choose(driven, "c")
        assert session.view().compaction is None
        assert "one is done" in str(session.messages())
        assert files(terminal) == NEW
        assert "stayed as they are" in notices(driven)[-1]
        await run_command(runner, "rewind", way_back(driven))
        assert session.view().head == compacted
        assert session.view().compaction is not None

    run(terminal, story)


def test_a_session_that_moved_meanwhile_is_one_line_and_is_read_again(
    terminal: TerminalPlace,
) -> None:
    async def story(driven: DrivenTerminal) -> None:
        session = driven.session
        screen = await open_points(driven)
        await look_at(driven, "first")
        head = session.view().head
        await session.store.append(session.id, [Note(text="from elsewhere")], parent=head)
        await driven.press("b")
        await driven.wait_shown("the session was continued elsewhere meanwhile")
        assert driven.app.screen is screen
        assert files(terminal) == NEW
        await look_at(driven, "first")  # as it is now
        await choose(driven, "b")
        assert files(terminal) == OLD

    run(terminal, story)


def test_in_text_a_rewind_is_listed_shown_and_then_made(terminal: TerminalPlace) -> None:
    async def story(driven: DrivenTerminal) -> None:
        runner = driven.app.runner
        listed = await run_command(runner, "rewind", "")
        assert "   1  second" in listed
        assert "2.1  replace f" in listed
        shown = await run_command(runner, "undo", "2")
        assert "before: first; nothing was changed yet" in shown
        assert "`/rewind 2 yes` does it; `files yes` or `both yes` restores files" in shown
        assert files(terminal) == NEW
        done = await run_command(runner, "rewind", "2 both yes")
        assert "the prompt was: first" in done
        assert files(terminal) == OLD
        for given, complaint in (
            ("9", "there is no point '9'"),
            ("2 now", "does not know 'now'"),
            ("to", "say where to"),
        ):
            await _refused(driven, given, complaint)

    run(terminal, story)


async def _refused(driven: DrivenTerminal, given: str, complaint: str) -> None:
    driven.app.chat.query_one(PromptInput).text = f"/rewind {given}"
    await driven.press("enter")
    await driven.wait_shown(complaint)


def test_hostile_text_and_small_terminals(terminal: TerminalPlace) -> None:
    hostile = "\x1b[31mred\x1b]0;t\x07 \u202eright to left 你好 👩‍👩‍👧 " + "x" * 5_000

    async def use() -> None:
        async with terminal.open(["fine"], size=(40, 12)) as driven:
            driven.app.runner.send(hostile)
            await driven.wait(lambda: driven.server.requests)
            await driven.wait_idle()
            screen = await open_points(driven)
            assert len(screen.points) == 1
            for size in ((20, 5), (120, 40), (40, 12)):
                await driven.pilot.resize_terminal(*size)
                await driven.press("a", "end", "right", "left", "enter")
                await driven.wait(lambda: isinstance(driven.app.screen, RewindPreviewScreen))
                assert "\x1b" not in driven.shown()
                assert "\u202e" not in driven.shown()
                await driven.press("down", "pagedown", "end", "escape")
                await driven.wait(lambda: driven.app.screen is screen)
            await driven.press("q")
            await driven.wait(lambda: driven.app.screen is driven.app.chat)

    asyncio.run(use())


def test_there_is_nothing_to_go_back_to_in_a_new_session(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open() as driven:
            await driven.type("/undo")
            await driven.press("enter")
            await driven.wait_shown("there is nothing to go back to yet")
            await driven.press("enter", "right", "left", "a", "escape")
            await driven.wait(lambda: driven.app.screen is driven.app.chat)

    asyncio.run(use())


def test_a_key_can_open_it_without_waiting_until_it_is_closed(terminal: TerminalPlace) -> None:
    async def story(driven: DrivenTerminal) -> None:
        driven.app.chat.call_later(driven.app.run_screen_command, "rewind", "")
        await driven.wait(lambda: isinstance(driven.app.screen, RewindScreen), "the screen")
        screen = driven.app.screen
        assert isinstance(screen, RewindScreen)
        await driven.wait(lambda: screen.points, "the points")
        await look_at(driven, "second")
        await choose(driven, "c")
        assert driven.app.chat.query_one(PromptInput).text == "second"

    run(terminal, story)
