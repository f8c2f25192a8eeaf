"""Going to what a search found: the entry is loaded, marked and in sight, or it is said where it
is."""

from __future__ import annotations

import asyncio

from recollect.entries import Body, Message, Note, Text, ToolCall, ToolResult
from recollect.store.contract import SearchQuery
from recollect.store.sqlite import SqliteStore
from recollect.terminal.resume_screen import ResumeScreen
from recollect.terminal.search_screen import SearchScreen
from recollect.terminal.start_options import StartOptions
from recollect.terminal.transcript_view import TranscriptView
from tests.terminal.pilot import DrivenTerminal, TerminalPlace
from tests.terminal.stored_sessions import add_session, exchange, in_store, run_command

PICKER = StartOptions(initial_screen="resume")
LINES = "\n".join(f"line {number} of the build" for number in range(300))
OUTPUT = f"{LINES[:4_000]}\nthe zeppelin was not found\n{LINES[4_000:]}"
BURIED: list[Body] = [
    *exchange("where is the walrus kept", "in the arctic"),
    Message(role="user", parts=(Text("build it"),)),
    Message(
        role="model",
        parts=(
            Text("I will."),
            ToolCall(id="c1", name="make", arguments="{}"),
            ToolCall(id="c2", name="sh", arguments="{}"),
        ),
    ),
    Message(
        role="user", parts=(ToolResult(call_id="c1", name="make", content=(Text("all well"),)),)
    ),
    Message(
        role="user",
        parts=(ToolResult(call_id="c2", name="sh", content=(Text(OUTPUT),), is_error=True),),
    ),
    *(body for number in range(250) for body in exchange(f"prompt {number}", f"answer {number}")),
    Note(text="the last note, about an ocelot"),
]


def view_of(driven: DrivenTerminal) -> TranscriptView:
    return driven.app.chat.query_one(TranscriptView)


async def pick(driven: DrivenTerminal, words: str) -> None:
    """Open the only passage with these words in the picker."""
    await driven.wait(lambda: isinstance(driven.app.screen, ResumeScreen), "the picker")
    await driven.type(words)
    await driven.wait_shown("⌕")
    await driven.press("enter")
    await driven.wait(lambda: driven.app.screen is driven.app.chat, "the conversation")


async def wait_marked(driven: DrivenTerminal, text: str) -> None:
    """Until the block with this text has the mark, and its text is in sight."""

    def is_marked() -> bool:
        block = view_of(driven).chosen
        return block is not None and text in (block.text + block.output)

    await driven.wait(is_marked, f"the mark at {text!r}")
    await driven.wait_shown(text)


def test_what_was_found_long_ago_is_loaded_marked_and_in_sight(terminal: TerminalPlace) -> None:
    async def use() -> None:
        await add_session(terminal, "old things", BURIED)
        async with terminal.open(options=PICKER) as driven:
            await pick(driven, "walrus")
            await wait_marked(driven, "where is the walrus kept")
            assert driven.app.chat.prompt.input.has_focus  # one can go on typing
            await run_command(driven, "/resume")
            await pick(driven, "ocelot")  # a session that is open, without a block of a message
            await wait_marked(driven, "the last note, about an ocelot")
            await driven.press("ctrl+up", "up")
            await wait_marked(driven, "answer 249")

    asyncio.run(use())


def test_the_call_whose_result_was_found_is_unfolded_at_the_line(terminal: TerminalPlace) -> None:
    async def use() -> None:
        await add_session(terminal, "old things", BURIED)
        async with terminal.open(options=PICKER) as driven:
            await pick(driven, "zeppelin")
            await wait_marked(driven, "the zeppelin was not found")
            chosen = view_of(driven).chosen
            assert chosen is not None
            assert chosen.name == "sh"

    asyncio.run(use())


def test_what_search_finds_in_this_session_is_gone_to(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session = await add_session(terminal, "old things", BURIED)
        async with terminal.open(options=StartOptions(session=session.id)) as driven:
            await driven.wait_shown("ocelot")
            await run_command(driven, "/search walrus")
            await driven.wait(lambda: isinstance(driven.app.screen, SearchScreen), "what was found")
            await driven.press("o")
            await wait_marked(driven, "where is the walrus kept")

    asyncio.run(use())


def test_what_is_on_another_branch_is_said_to_be_there(terminal: TerminalPlace) -> None:
    async def use() -> None:
        session = await add_session(terminal, "two ways", exchange("look for a walrus", "none"))

        async def leave(store: SqliteStore) -> None:
            other = exchange("look for an ocelot", "one")
            await store.append(session.id, other, parent=session.head)
            await store.rewind(session.id, session.head)
            await store.append(session.id, exchange("and a zebra", "two"), parent=session.head)
            assert (await store.rank(SearchQuery("ocelot"))).hits

        await in_store(terminal, leave)
        async with terminal.open(options=PICKER) as driven:
            await pick(driven, "ocelot")
            await driven.wait_shown("is on another branch")
            shown = driven.app.chat.transcript.blocks[-1].text
            assert "below the prompt 'look for an ocelot'" in shown
            assert "/tree shows the branches" in shown
            await run_command(
                driven, shown[shown.index("/rewind to") :].removesuffix(" goes there")
            )
            await driven.wait_shown("nothing was changed yet")

    asyncio.run(use())
