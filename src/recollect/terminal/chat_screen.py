"""The conversation: transcript, what is happening, prompts that wait, the prompt, the status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual import on, work
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from recollect.agent.exchange import ReplyFinished
from recollect.display.display_text import one_line, sanitize
from recollect.errors import RecollectError
from recollect.runtime.prompt_run import RunResult, RunStarted
from recollect.session import Session
from recollect.terminal.approval_panel import ApprovalPanel
from recollect.terminal.command_table import run_command
from recollect.terminal.event_feed import EventFeed
from recollect.terminal.held_panel import HeldPanel
from recollect.terminal.prompt_input import PromptInput
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.session_status import read_status
from recollect.terminal.slash_commands import find_builtin, parse_command
from recollect.terminal.status_line import StatusLine
from recollect.terminal.terminal_events import (
    ApprovalAsked,
    EntriesAppended,
    NoticeGiven,
    PromptEnded,
    QueueChanged,
    SessionHeld,
    SessionOpened,
    SessionReleased,
    SessionReloaded,
    TerminalEvent,
)
from recollect.terminal.transcript_blocks import BlockList
from recollect.terminal.transcript_view import TranscriptView

FIRST_PAGE, PAGE = 200, 1_000  # entries


class ChatScreen(Screen[None]):
    DEFAULT_CSS = """
    ChatScreen #activity { height: auto; padding: 0 1; color: $text-muted; }
    ChatScreen #queue { height: auto; padding: 0 1; color: $text-muted; }
    """
    BINDINGS = [("escape", "interrupt", "Interrupt")]

    def __init__(
        self,
        runner: SessionRunner,
        show_screen: Callable[[str, str], Awaitable[bool]],
    ) -> None:
        super().__init__()
        self.runner, self._show_screen = runner, show_screen
        self.transcript = BlockList()
        self.feed = EventFeed(self.transcript)
        self._loading = False  # the newest entries of a session

    def compose(self) -> ComposeResult:
        yield TranscriptView(self.transcript)
        yield Static("", id="activity", markup=False)
        yield Static("", id="queue", markup=False)
        yield PromptInput()
        yield StatusLine()

    def on_mount(self) -> None:
        self.query_one(PromptInput).focus()

    # --- events ----------------------------------------------------------------------------------

    def show_event(self, event: TerminalEvent) -> None:
        event = self._after_page(event)
        self.feed.add(event)
        match event:
            case SessionOpened(session=session):
                for panel in self.query(HeldPanel):
                    panel.leave()
                self._show_session(session)
            case SessionReloaded(session=session):
                self._show_session(session)
            case QueueChanged(waiting=waiting):
                lines = [f"queued: {one_line(prompt.text)}" for prompt in waiting]
                self.query_one("#queue", Static).update(sanitize("\n".join(lines)))
            case ApprovalAsked():
                self.mount(ApprovalPanel(event), before=self.query_one(PromptInput))
            case SessionHeld() | SessionReleased():
                self._held_panel().show_event(event)
            case _:
                pass
        if isinstance(event, RunStarted | ReplyFinished | RunResult | PromptEnded | SessionOpened):
            self._show_status()
        self.query_one("#activity", Static).update(sanitize(self.feed.activity))

    def _after_page(self, event: TerminalEvent) -> TerminalEvent:
        """What others append while the newest page is read may be on it already: read it again."""
        if isinstance(event, EntriesAppended) and self._loading:
            return SessionReloaded(event.session, "it was continued elsewhere")
        return event

    def _show_session(self, session: Session | None) -> None:
        self.transcript.clear()
        self._loading = session is not None
        if session is not None:
            self._load(session)

    def _held_panel(self) -> HeldPanel:
        for panel in self.query(HeldPanel):
            if not panel.has_left:
                return panel
        panel = HeldPanel(self.runner)
        self.mount(panel, before=self.query_one(PromptInput))
        return panel

    @work(exclusive=True, group="load")
    async def _load(self, session: Session) -> None:
        """The newest entries at once, older ones behind them."""
        store = self.runner.runtime.store
        head = session.view().head
        count = (await store.session(session.id)).entries
        start = max(0, count - FIRST_PAGE)
        self.transcript.add_entries(
            await store.page(session.id, start=start, limit=FIRST_PAGE, at=head)
        )
        self._loading = False
        while start:
            end, start = start, max(0, start - PAGE)
            page = await store.page(session.id, start=start, limit=end - start, at=head)
            self.transcript.prepend_entries(page)

    @work(exclusive=True, group="status")
    async def _show_status(self) -> None:
        self.query_one(StatusLine).show(await read_status(self.runner))

    # --- what the user does ----------------------------------------------------------------------

    @on(PromptInput.Submitted)
    async def _submitted(self, event: PromptInput.Submitted) -> None:
        command = parse_command(event.text)
        if command is None:
            text = event.text.removeprefix("/") if event.text.startswith("//") else event.text
            try:
                self.runner.send(text)
            except RecollectError as error:  # the session is open elsewhere
                self.show_event(NoticeGiven(str(error), "warning"))
                self.query_one(PromptInput).text = event.text
            return
        self._run_command(*command)

    @work
    async def _run_command(self, name: str, arguments: str) -> None:
        answer = ""
        try:
            builtin = find_builtin(name)
            if builtin is None or not await self._show_screen(builtin.name, arguments):
                answer = await run_command(self.runner, name, arguments)
        except RecollectError as error:
            self.show_event(NoticeGiven(str(error), "error"))
            return
        if answer:
            self.show_event(NoticeGiven(answer, "info"))

    def edit_prompt(self, text: str) -> None:
        """Put an earlier prompt into the input, before what is typed there."""
        field = self.query_one(PromptInput)
        if parse_command(text) is not None:
            text = f"/{text}"  # it was sent as a prompt, and still is one
        field.text = f"{text}\n\n{field.text}" if field.text.strip() else text
        field.move_cursor(field.document.end)
        field.focus()

    def action_interrupt(self) -> None:
        self.runner.interrupt()
