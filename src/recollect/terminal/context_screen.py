"""`/context`: what the model sees of the session, what not, and what each change would cost.

The list follows the session, also while a prompt runs; changes wait until it is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Input, Static

from recollect.display.context_loading import add_next, add_replaced, open_report
from recollect.display.context_report import ContextReport
from recollect.display.context_rows import ContextRow, context_rows, find_rows
from recollect.display.display_text import one_line, truncate
from recollect.display.row_edits import (
    RowEdit,
    describe_forecast,
    forecast_row,
    toggle_pin,
    toggle_row,
)
from recollect.entries import Body, Entry
from recollect.errors import RecollectError
from recollect.session import Session
from recollect.session_edits import plan_undo
from recollect.store.ids import now
from recollect.terminal.context_header import header_lines
from recollect.terminal.context_texts import ExactRequestScreen, difference_text, row_text
from recollect.terminal.row_list import Row, RowList
from recollect.terminal.row_rendering import make_row
from recollect.terminal.screen_lines import KeyLine
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.text_screen import TextScreen

FOLLOW_SECONDS = 0.3
GLANCE_SECONDS = 0.05  # for which a row is looked at before its cost is worked out
KEYS = (
    *("Space drop", "p pin", "Enter text", "d diff", "e request", "u undo", "/ find", "s sort"),
    "Esc back",
)
LOADING = "reading the context …"


class ContextScreen(Screen[None]):
    DEFAULT_CSS = """
    ContextScreen.-low #forecast { max-height: 1; }
    ContextScreen #header { height: auto; padding: 0 1; }
    ContextScreen #forecast { height: auto; max-height: 2; padding: 0 1; color: $text-accent; }
    ContextScreen #filter { height: 1; border: none; display: none; }
    ContextScreen #filter.open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "leave", "Close"),
        ("q", "leave", "Close"),
        ("space", "toggle_row", "Drop or restore"),
        ("p", "pin", "Pin"),
        ("d", "difference", "Difference"),
        ("e", "request", "Exact request"),
        ("u", "undo", "Undo"),
        ("slash", "filter", "Filter"),
        ("s", "sort", "Sort"),
    ]

    def __init__(self, runner: SessionRunner) -> None:
        super().__init__()
        self.runner = runner
        self.report: ContextReport | None = None
        self.rows: tuple[ContextRow, ...] = ()  # all of them, in order
        self.arranged: tuple[ContextRow, ...] = ()  # as filtered and sorted
        self.words, self.by_tokens = "", False
        self._most = 1  # tokens of the largest row
        self._head: object = None  # of what is shown
        self._undo: list[tuple[Body, ...]] = []  # what undoes each edit made here
        self._complete = False  # whether the next request is, or will be, in the report
        self._notice = ("", "")  # the row, and what is said of it until another one is looked at

    def compose(self) -> ComposeResult:
        yield Static(LOADING, id="header", markup=False)
        yield RowList(self._make_row)
        yield Input(id="filter", placeholder="filter: who, rule, or words")
        yield Static("", id="forecast", markup=False)
        yield KeyLine(*KEYS)

    def on_mount(self) -> None:
        self.list.focus()
        self.load()
        self.set_interval(FOLLOW_SECONDS, self._follow)

    @property
    def list(self) -> RowList:
        return self.query_one(RowList)

    @property
    def current(self) -> ContextRow | None:
        at = self.list.cursor
        return self.arranged[at] if 0 <= at < len(self.arranged) else None

    def _make_row(self, row: int, width: int) -> Row:
        folder = str(self.runner.runtime.folders.cwd)
        return make_row(self.arranged[row], self._most, width, folder)

    # --- loading ---------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Load again what has changed, and what could not be worked out while a prompt ran."""
        session, report = self.runner.session, self.report
        if session is None:
            return
        moved = (session.id, session.view().head) != self._head
        waits = report is not None and report.next is None and not self._complete
        if moved or (waits and not self.runner.busy):
            self.load()

    @work(exclusive=True, group="context")
    async def load(self) -> None:
        try:
            await self.refresh_rows()
        except RecollectError as error:
            self._notify(str(error))

    async def refresh_rows(self) -> None:
        """The rows of the session as it is now; then what takes longer."""
        session = self.runner.session
        if session is None:
            raise RecollectError("there is no context yet; type a prompt first")
        self._head = session.id, session.view().head
        self._complete = not self.runner.busy  # or another attempt follows
        runtime = self.runner.runtime
        report = await open_report(runtime, session, self.runner.run_options.model)
        replaces = report.view.compaction is not None
        if not (replaces and self.rows):  # or the cursor would leave a row that is replaced
            await self._show(report)
        if replaces:
            report = await add_replaced(runtime, report)
            await self._show(report)
        if self._complete:
            await self._show(await add_next(runtime, report))

    async def _show(self, report: ContextReport) -> None:
        self.rows = await asyncio.to_thread(context_rows, report)
        self.report, self._most = report, max((row.tokens for row in self.rows), default=1)
        self._show_header()
        await self._arrange()

    def _show_header(self) -> None:
        if self.report is not None:
            width = max(10, self.size.width - 2)
            lines = header_lines(self.report, width)
            shown = lines if self.size.height >= 14 else lines[:1]
            self.query_one("#header", Static).update("\n".join(shown))

    def on_resize(self, event: Resize) -> None:
        del event
        self._show_header()

    async def _arrange(self) -> None:
        """Filter and sort; the cursor stays on its row."""
        before = self.current
        fresh = not self.arranged and not self.words
        found = await asyncio.to_thread(find_rows, self.rows, self.words)
        if self.by_tokens:
            found = tuple(sorted(found, key=lambda row: -max(row.tokens, row.hidden)))
        self.arranged = found
        at = self.list.cursor if not fresh else len(found) - 1
        if before is not None:
            at = next((n for n, row in enumerate(found) if row.key == before.key), at)
        self.list.show(len(found), at)

    # --- what a change would cost ----------------------------------------------------------------

    @on(RowList.Moved)
    def _moved(self) -> None:
        self._forecast()

    @work(exclusive=True, group="forecast")
    async def _forecast(self) -> None:
        row, report = self.current, self.report
        if row is None or report is None or self._notice[0] == row.key:
            self._say(self._notice[1])
            return
        self._notice = ("", "")
        await asyncio.sleep(GLANCE_SECONDS)
        parts = [row.reason]
        try:
            edit = toggle_row(row)
            lifetime = self.runner.runtime.settings.context.cache_lifetime
            found = await asyncio.to_thread(forecast_row, report, edit, now(), lifetime)
            parts.append(describe_forecast(edit, found))
        except RecollectError as error:
            parts.append(str(error))
        self._say("; ".join(filter(None, parts)))

    def _notify(self, text: str) -> None:
        """Say it until another row is looked at, or an edit is made."""
        self._notice = (self.current.key if self.current is not None else "", text)
        self._say(text)

    def _say(self, text: str) -> None:
        width = max(10, 2 * (self.size.width - 2))
        self.query_one("#forecast", Static).update(truncate(one_line(text), width))

    # --- edits -----------------------------------------------------------------------------------

    def action_toggle_row(self) -> None:
        if (row := self.current) is not None:
            self._make_edit(lambda: toggle_row(row))

    def action_pin(self) -> None:
        row, report = self.current, self.report
        if row is not None and report is not None:
            self._make_edit(lambda: toggle_pin(row, report.view))

    @work(exclusive=True, group="edit")
    async def _make_edit(self, choose: Callable[[], RowEdit]) -> None:
        async def edit(session: Session) -> tuple[Entry, ...]:
            before = session.view()
            made = await session.edit(**choose().as_arguments())
            self._undo.append(plan_undo(before, made))
            return made

        await self._change(edit)

    @work(exclusive=True, group="edit")
    async def action_undo(self) -> None:
        if not self._undo:
            self._notify("nothing was changed here that could be undone")
            return
        bodies = self._undo[-1]
        if await self._change(lambda session: session.append(*bodies)):
            self._undo.pop()

    async def _change(self, work: Callable[[Session], Awaitable[object]]) -> bool:
        """Whether it was done; if not, the footer says why."""
        try:
            await self.runner.edit(work, "change the context")
        except RecollectError as error:
            self._notify(str(error))
            return False
        self._notice = ("", "")
        self.load()
        return True

    # --- other keys ------------------------------------------------------------------------------

    @on(RowList.Chosen)
    @work(exclusive=True, group="text")
    async def _show_text(self) -> None:
        row = self.current
        if row is not None:
            title = f"{row.who} {row.entry.id[-8:] if row.entry is not None else ''}"
            self.app.push_screen(TextScreen(title, await row_text(self.runner, row)))

    @work(exclusive=True, group="text")
    async def action_difference(self) -> None:
        if self.report is None:
            return
        try:
            text = await difference_text(self.runner.runtime, self.report)
        except RecollectError as error:
            self._notify(str(error))
            return
        self.app.push_screen(TextScreen("since the previous request", text))

    def action_request(self) -> None:
        if self.report is not None:
            self.app.push_screen(ExactRequestScreen(self.runner, self.report))

    def action_sort(self) -> None:
        self.by_tokens = not self.by_tokens
        self._rearrange()

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.add_class("open")
        field.focus()

    @on(Input.Changed, "#filter")
    def _filter(self, event: Input.Changed) -> None:
        self.words = event.value
        self._rearrange()

    @on(Input.Submitted, "#filter")
    def _filtered(self) -> None:
        self._close_filter()

    @work(exclusive=True, group="arrange")
    async def _rearrange(self) -> None:
        await self._arrange()

    def _close_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.set_class(bool(field.value), "open")
        self.list.focus()

    def action_leave(self) -> None:
        field = self.query_one("#filter", Input)
        if field.has_class("open"):
            field.value = ""
            self._close_filter()
        else:
            self.dismiss()
