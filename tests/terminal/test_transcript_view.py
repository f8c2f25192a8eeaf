"""The conversation on a screen: keys, the mouse, what is copied, and how often it is painted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection
from textual.widgets import Input

from recollect.entries import Entry
from recollect.store.ids import new_id
from recollect.terminal.transcript_blocks import BlockList
from recollect.terminal.transcript_view import TranscriptView
from recollect.testing import call, model, result, user


class TranscriptApp(App[None]):
    def __init__(self, blocks: BlockList, *, ascii_only: bool = False) -> None:
        super().__init__()
        self.view = TranscriptView(blocks, ascii_only=ascii_only)
        self.typed: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.view
        yield Input()

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_transcript_view_typed(self, event: TranscriptView.Typed) -> None:
        self.typed.append(event.character)


def some_blocks(count: int = 30) -> BlockList:
    blocks, bodies = BlockList(), []
    for number in range(count):
        read = call("read_file", id=f"c{number}", file_path=f"{number}.py")
        bodies += [user(f"prompt {number}"), model(f"reply **{number}**", read), result(read, "x")]
    blocks.add_entries(Entry(new_id(), None, 0, body) for body in bodies)
    return blocks


async def settled(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.01)
        await pilot.pause()
    await pilot.pause()


def run(
    blocks: BlockList,
    story: Callable[[TranscriptApp, Pilot[None]], Awaitable[None]],
    size: tuple[int, int] = (60, 16),
    *,
    ascii_only: bool = False,
) -> None:
    async def play() -> None:
        app = TranscriptApp(blocks, ascii_only=ascii_only)
        async with app.run_test(size=size) as pilot:
            await settled(pilot, lambda: app.view.paints or not blocks.blocks)
            await story(app, pilot)

    asyncio.run(play())


def text(view: TranscriptView) -> list[str]:
    return [row.strip.text.rstrip() for row in view.shown.rows]


def test_keys_go_from_block_to_block_unfold_copy_and_go_back_to_the_prompt() -> None:
    async def story(app: TranscriptApp, pilot: Pilot[None]) -> None:
        view = app.view
        assert "reply 29" in "\n".join(text(view))
        await pilot.press("shift+tab")
        assert view.has_focus
        assert view.chosen is not None
        assert view.chosen.kind == "tool"
        await pilot.press("enter")
        assert "    x" in text(view)
        await pilot.press("enter")
        assert "    x" not in text(view)
        await pilot.press("up", "c")
        assert app.clipboard == "reply **29**"
        for _ in range(20):
            await pilot.press("up")
        assert not view.shown.following
        assert view.chosen in [
            view.transcript.blocks[row.number - view.transcript.first] for row in view.shown.rows
        ]
        await pilot.press("home")
        assert text(view)[0] == "▌ prompt 0"
        await pilot.press("end")
        assert view.shown.following
        await pilot.press("pageup")
        assert not view.shown.following
        view.unfold_all()
        assert "    x" in text(view)
        await pilot.press("x")
        assert app.typed == ["x"]

    run(some_blocks(), story)


def test_selected_text_is_copied_without_the_marks() -> None:
    async def story(app: TranscriptApp, pilot: Pilot[None]) -> None:
        await pilot.pause()
        view = app.view
        await pilot.press("shift+tab", "home")
        start = text(view).index("▌ prompt 0")
        selection = Selection(Offset(0, start), Offset(9, start + 2))
        assert view.get_selection(selection) == ("prompt 0\n\nreply 0", "\n")
        app.screen.selections = {view: selection}
        await pilot.pause()
        assert any(
            segment.style and segment.style.meta.get("offset") == (0, start)
            for segment in view.render_line(start)
        )

    run(some_blocks(), story)


def test_a_click_unfolds_a_call() -> None:
    async def story(app: TranscriptApp, pilot: Pilot[None]) -> None:
        y = next(n for n, line in enumerate(text(app.view)) if line.startswith("●"))
        await pilot.click(TranscriptView, offset=(4, y))
        assert "    x" in text(app.view)

    run(some_blocks(), story)


def test_what_arrives_below_is_said_and_nothing_moves() -> None:
    async def story(app: TranscriptApp, pilot: Pilot[None]) -> None:
        view, blocks = app.view, app.view.transcript
        await pilot.press("shift+tab", "pageup", "pageup")
        before, paints = text(view), view.paints
        for number in range(300):
            blocks.add_piece("reply", f"word {number}\n\n" if number % 9 == 8 else "word ")
            if number % 50 == 0:
                await pilot.resize_terminal(60, 16 + number // 50 % 2)
        await settled(pilot, lambda: view.new_below)
        assert text(view)[:13] == before[:13]
        assert "new below" in view._lines[-1].text
        assert view.paints - paints < 60
        await pilot.press("end")
        assert not view.new_below

    run(some_blocks(), story)


def test_the_end_stays_in_sight_when_the_view_grows_while_something_arrives() -> None:
    """As when a question below goes away and the call's result comes at the same moment."""
    blocks = some_blocks()

    async def story(app: TranscriptApp, pilot: Pilot[None]) -> None:
        view = app.view
        before = view.paints
        blocks.add_notice("painted at once")
        while view.paints == before:
            await asyncio.sleep(0)
        for number in range(20):
            blocks.add_notice(f"notice {number}")  # painted later, when the size is another one
        await pilot.resize_terminal(60, 30)
        assert view.shown.following
        await settled(pilot, lambda: "notice 19" in "\n".join(text(view)))

    run(blocks, story)


def test_pieces_are_painted_together_and_nothing_is_painted_when_nothing_comes() -> None:
    async def story(app: TranscriptApp, pilot: Pilot[None]) -> None:
        view, blocks = app.view, app.view.transcript
        began, paints = time.monotonic(), view.paints
        for number in range(200):
            blocks.add_piece("reply", f"word {number} ")
            await asyncio.sleep(0.001)
        await settled(pilot, lambda: "word 199" in "\n".join(text(view)))
        assert view.paints - paints <= 3 + 31 * (time.monotonic() - began)
        blocks.end_pieces("done")
        await pilot.pause(0.1)
        paints = view.paints
        await pilot.pause(0.2)
        assert view.paints == paints

    run(some_blocks(3), story)


def test_ten_thousand_entries_are_prepended_while_the_end_stays() -> None:
    async def story(app: TranscriptApp, pilot: Pilot[None]) -> None:
        view, blocks = app.view, app.view.transcript
        before = text(view)
        longest = 0.0
        for _ in range(100):
            entries = [Entry(new_id(), None, 0, user("older words " * 9)) for _ in range(100)]
            began = time.thread_time()
            blocks.prepend_entries(entries)
            longest = max(longest, time.thread_time() - began)
        await settled(pilot, lambda: view.shown.total > 20_000)
        assert text(view) == before
        assert longest < 0.05
        await pilot.press("shift+tab", "home")
        assert text(view)[0].startswith("▌ older")

    run(some_blocks(), story)


def test_a_tiny_terminal_and_an_empty_session_are_no_problem() -> None:
    async def story(app: TranscriptApp, pilot: Pilot[None]) -> None:
        await pilot.press("shift+tab", "up", "down", "enter", "c", "home", "end")
        app.view.transcript.add_notice("hello")
        await settled(pilot, lambda: app.view.shown.rows)
        for size in ((20, 5), (3, 4), (120, 40)):
            await pilot.resize_terminal(*size)
            await pilot.pause()

    run(BlockList(), story, (20, 5))


def test_a_terminal_without_unicode_gets_ascii() -> None:
    async def story(app: TranscriptApp, pilot: Pilot[None]) -> None:
        await pilot.press("shift+tab")
        assert all(strip.text.isascii() for strip in app.view._lines)

    run(some_blocks(), story, ascii_only=True)
