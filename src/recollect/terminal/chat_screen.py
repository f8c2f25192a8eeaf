"""The conversation: transcript, what is happening, prompts that wait, the prompt, the status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual import on, work
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from recollect.agent.exchange import ReplyFinished
from recollect.display.display_text import one_line, sanitize
from recollect.display.session_cost import SessionCost
from recollect.errors import RecollectError
from recollect.runtime.prompt_run import RunResult, RunStarted
from recollect.session import Session
from recollect.terminal.activity_line import ActivityLine
from recollect.terminal.approval_panel import ApprovalPanel
from recollect.terminal.command_table import run_command
from recollect.terminal.event_feed import EventFeed
from recollect.terminal.prompt_input import PromptInput
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.session_status import read_status
from recollect.terminal.slash_commands import find_command, parse_command
from recollect.terminal.status_line import StatusLine
from recollect.terminal.terminal_events import (
    ApprovalAsked,
    NoticeGiven,
    PromptEnded,
    QueueChanged,
    SessionOpened,
    SessionReloaded,
    TerminalEvent,
)
from recollect.terminal.transcript_blocks import BlockList
from recollect.terminal.transcript_loader import TranscriptLoader
from recollect.terminal.transcript_view import TranscriptView


class ChatScreen(Screen[None]):
    DEFAULT_CSS = """
    ChatScreen #queue { height: auto; padding: 0 1; color: $text-muted; }
    """
    BINDINGS = [
        ("escape", "interrupt", "Interrupt"),
        ("ctrl+up", "focus_transcript", "Go to the conversation"),
    ]

    def __init__(
        self,
        runner: SessionRunner,
        show_screen: Callable[[str, str], Awaitable[bool]],
    ) -> None:
        super().__init__()
        self.runner, self._show_screen = runner, show_screen
        self.transcript = BlockList()
        self.feed = EventFeed(self.transcript)
        self._loader: TranscriptLoader | None = None
        self._cost = SessionCost()

    def compose(self) -> ComposeResult:
        yield TranscriptView(self.transcript)
        yield ActivityLine()
        yield Static("", id="queue", markup=False)
        yield PromptInput()
        yield StatusLine()

    def on_mount(self) -> None:
        self.query_one(PromptInput).focus()

    # --- events ----------------------------------------------------------------------------------

    def show_event(self, event: TerminalEvent) -> None:
        self.feed.add(event)
        match event:
            case SessionOpened(session=session):
                self.transcript.clear()
                self._loader = None
                if session is not None:
                    self._open(session)
            case SessionReloaded(session=session):
                self._reload(session)
            case QueueChanged(waiting=waiting):
                lines = [f"queued: {one_line(prompt.text)}" for prompt in waiting]
                self.query_one("#queue", Static).update(sanitize("\n".join(lines)))
            case ApprovalAsked():
                self.mount(ApprovalPanel(event), before=self.query_one(PromptInput))
            case _:
                pass
        if isinstance(event, RunStarted | ReplyFinished | RunResult | PromptEnded | SessionOpened):
            self._show_status()
        self.query_one(ActivityLine).show(self.feed.activity)

    @work(exclusive=True, group="load")
    async def _open(self, session: Session) -> None:
        self._loader = TranscriptLoader(self.transcript, self.runner.runtime.store, session)
        await self._loader.open()

    @work(exclusive=True, group="load")
    async def _reload(self, session: Session) -> None:
        if self._loader is None:
            self._loader = TranscriptLoader(self.transcript, self.runner.runtime.store, session)
        await self._loader.reload()

    @on(TranscriptView.TopReached)
    def _load_more(self) -> None:
        if self._loader is not None:
            self._loader.load_more()

    @on(TranscriptView.Typed)
    def _type_in_prompt(self, event: TranscriptView.Typed) -> None:
        prompt = self.query_one(PromptInput)
        prompt.focus()
        prompt.insert(event.character)

    def action_focus_transcript(self) -> None:
        self.query_one(TranscriptView).focus()

    @work(exclusive=True, group="status")
    async def _show_status(self) -> None:
        line = self.query_one(StatusLine)
        line.show(await read_status(self.runner, self._cost))
        if (session := self.runner.session) is not None:
            await self._cost.follow(self.runner.runtime.store, session.id)
            line.show(await read_status(self.runner, self._cost))

    # --- what the user does ----------------------------------------------------------------------

    @on(PromptInput.Submitted)
    async def _submitted(self, event: PromptInput.Submitted) -> None:
        command = parse_command(event.text)
        if command is None:
            text = event.text.removeprefix("/") if event.text.startswith("//") else event.text
            self.runner.send(text)
            return
        self._run_command(*command)

    @work
    async def _run_command(self, name: str, arguments: str) -> None:
        answer = ""
        try:
            command = find_command(name)
            if not await self._show_screen(command.name, arguments):
                answer = await run_command(self.runner, command.name, arguments)
        except RecollectError as error:
            self.show_event(NoticeGiven(str(error), "error"))
            return
        if answer:
            self.show_event(NoticeGiven(answer, "info"))

    def action_interrupt(self) -> None:
        self.runner.interrupt()
