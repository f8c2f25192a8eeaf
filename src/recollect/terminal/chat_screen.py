"""The conversation: transcript, what is happening, prompts that wait, the prompt, the status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen

from recollect.agent.exchange import ReplyFinished
from recollect.display.session_cost import SessionCost
from recollect.errors import RecollectError, StoreClosed
from recollect.runtime.model_offers import find_model_offers
from recollect.runtime.prompt_run import RunResult, RunStarted
from recollect.runtime.session_rewind import SentPrompt
from recollect.session import Session
from recollect.terminal.activity_line import ActivityLine
from recollect.terminal.command_table import run_command
from recollect.terminal.event_feed import EventFeed
from recollect.terminal.found_passage import FoundPassage, describe_elsewhere
from recollect.terminal.held_panel import HeldPanel
from recollect.terminal.model_commands import check_prompt
from recollect.terminal.model_offers_panel import DOWNLOAD, RECORDING, ModelOffersPanel
from recollect.terminal.permission_modes import switch_mode
from recollect.terminal.prompt_area import PromptArea
from recollect.terminal.prompt_input import PromptInput
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.session_status import read_status
from recollect.terminal.shell_prompt import parse_shell
from recollect.terminal.slash_commands import find_builtin, parse_command
from recollect.terminal.status_line import StatusLine
from recollect.terminal.terminal_events import (
    ApprovalAsked,
    EntriesAppended,
    ModeChanged,
    NoticeGiven,
    PassageWanted,
    PromptEnded,
    QueueChanged,
    QueuedPrompt,
    SessionHeld,
    SessionOpened,
    SessionReleased,
    SessionReloaded,
    TerminalEvent,
)
from recollect.terminal.transcript_blocks import BlockList
from recollect.terminal.transcript_loader import TranscriptLoader
from recollect.terminal.transcript_view import TranscriptView
from recollect.terminal.welcome import welcome_lines
from recollect.workspace.sent_files import Attachable

SECOND_PRESS = 0.7  # seconds in which a key counts as pressed twice
LEAVE_PRESS = 2.0
SHOW_RECORDING = 90  # the program's result: the user wants the recorded session instead
STATUS_EVENTS = (
    RunStarted,
    ReplyFinished,
    RunResult,
    PromptEnded,
    SessionOpened,
    SessionReloaded,
    EntriesAppended,
    ModeChanged,
)


class ChatScreen(Screen[None]):
    BINDINGS = [
        Binding("escape", "escape", "interrupt; twice, while nothing runs: go back"),
        Binding("ctrl+c", "clear_or_leave", "interrupt, clear, or twice: leave"),
        Binding("shift+tab", "next_mode", "next permission mode"),
        Binding("ctrl+up", "focus_transcript", "go to the conversation"),
        Binding("ctrl+o", "unfold", "unfold all tool output and thoughts, or fold them"),
        Binding("tab", "focus_choices", "the choices for a session that is open elsewhere"),
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
        self._suggestions = list(runner.options.suggestions)
        self._loader: TranscriptLoader | None = None
        self._cost = SessionCost()
        self.prompt = PromptArea(runner)
        self._pressed: tuple[str, float] = ("", 0.0)  # the key that means more the second time
        self._unread: list[NoticeGiven] = []  # warnings since the user sent something
        self._sending = asyncio.Lock()  # prompts are sent in the order in which they were typed

    def compose(self) -> ComposeResult:
        yield TranscriptView(self.transcript)
        yield ActivityLine()
        yield self.prompt
        yield StatusLine()

    # --- events ----------------------------------------------------------------------------------

    def show_event(self, event: TerminalEvent) -> None:  # noqa: C901 - one case per event
        self.feed.add(event)
        if isinstance(event, NoticeGiven) and event.level != "info":
            self._unread.append(event)
        if not self.query(ActivityLine):
            return  # the program is leaving
        match event:
            case SessionOpened(session=session, passage=passage):
                for panel in self.query(HeldPanel):
                    panel.leave()
                self.transcript.clear()
                for notice in self._unread:  # such as why another session could not be opened
                    self.feed.add(notice)
                self._unread.clear()
                self._load(session)
                if session is None:
                    self._welcome()
                if passage is not None:
                    self._show_passage(passage)
            case PassageWanted(passage=passage):
                self._show_passage(passage)
            case SessionReloaded(session=session):
                self._reload(session)
            case QueueChanged():
                self.prompt.show_queue(event)
            case PromptEnded(prompt=prompt, stored=False) if not self.runner.closing:
                self.prompt.give_back(prompt)
            case ApprovalAsked():
                self.prompt.ask(event)
                if self.app.screen is not self:
                    self.app.notify("a call waits for your answer in the conversation")
            case SessionHeld() | SessionReleased():
                self._held_panel().show_event(event)
            case _:
                pass
        if isinstance(event, SessionOpened | PromptEnded):
            self._suggest()
        if isinstance(event, STATUS_EVENTS):
            self._show_status()
        self.query_one(ActivityLine).show(self.feed.activity)

    def _load(self, session: Session | None) -> None:
        self._loader = None
        self.workers.cancel_group(self, "passage")  # of the session before
        if session is not None:
            # at once: what is appended from now on is shown by its event
            self._loader = TranscriptLoader(self.transcript, self.runner.runtime.store, session)
            self._open(self._loader)

    def _held_panel(self) -> HeldPanel:
        for panel in self.query(HeldPanel):
            if not panel.has_left:
                return panel
        panel = HeldPanel(self.runner)
        self.mount(panel, before=self.prompt)
        return panel

    @work(exclusive=True, group="load")
    async def _open(self, loader: TranscriptLoader) -> None:
        await self._read_entries(loader.open())

    @work(exclusive=True, group="load")
    async def _reload(self, session: Session) -> None:
        if self._loader is None:
            self._loader = TranscriptLoader(self.transcript, self.runner.runtime.store, session)
        await self._read_entries(self._loader.reload())

    async def _read_entries(self, reading: Awaitable[None]) -> None:
        try:
            await reading
        except StoreClosed:
            pass  # the program is leaving
        except RecollectError as error:  # such as a damaged entry
            self.show_event(NoticeGiven(str(error), "error"))

    @work(exclusive=True, group="passage")
    async def _show_passage(self, passage: FoundPassage) -> None:
        """Where a search found it; as soon as that is loaded."""
        if self._loader is None:
            return
        try:
            number = await self._loader.find(passage)
            if number is None:
                where = await describe_elsewhere(self.runner.runtime.store, passage)
                self.show_event(NoticeGiven(where, "warning"))
            else:
                self.query_one(TranscriptView).show_words(number, passage.words)
        except RecollectError as error:  # such as a damaged entry
            self.show_event(NoticeGiven(str(error), "error"))

    @on(TranscriptView.TopReached)
    def _load_more(self) -> None:
        if self._loader is not None:
            self._loader.load_more()

    @on(TranscriptView.Typed)
    def _type_in_prompt(self, event: TranscriptView.Typed) -> None:
        self.prompt.input.focus()
        self.prompt.input.insert(event.character)

    def action_focus_transcript(self) -> None:
        self.query_one(TranscriptView).focus()

    @work(exclusive=True, group="status")
    async def _show_status(self) -> None:
        line = self.query_one(StatusLine)
        with suppress(StoreClosed):
            line.show(await read_status(self.runner, self._cost))
            if (session := self.runner.session) is not None:
                await self._cost.follow(self.runner.runtime.store, session.id)
                line.show(await read_status(self.runner, self._cost))

    # --- what the user does ----------------------------------------------------------------------

    @on(PromptArea.Sent)
    def _sent(self, event: PromptArea.Sent) -> None:
        event.stop()
        self.query_one(TranscriptView).follow_end()
        self.query(ModelOffersPanel).remove()
        self._unread.clear()
        if (command := parse_command(event.text)) is not None:
            self._run_command(*command, event.attachments)
        else:
            self._send_prompt(event.text, event.attachments)

    @work(group="send")
    async def _send_prompt(self, text: str, attachments: tuple[Attachable, ...]) -> None:
        """What does not fit, or goes nowhere, goes back into the prompt."""
        line = parse_shell(text)
        said = text.removeprefix("/") if text.startswith("//") else text
        async with self._sending:
            try:
                if line is None:
                    await check_prompt(self.runner, said, attachments)
                    self.runner.send(said, attachments)
                else:
                    self.runner.send(line, is_command=True)
            except RecollectError as error:  # such as a session that is open elsewhere
                self.show_event(NoticeGiven(str(error), "error"))
                self.prompt.give_back(QueuedPrompt(text, attachments))

    @work
    async def _run_command(
        self, name: str, arguments: str, attachments: tuple[Attachable, ...]
    ) -> None:
        answer = ""
        try:
            builtin = find_builtin(name)
            if builtin is None or not await self._show_screen(builtin.name, arguments):
                answer = await run_command(self.runner, name, arguments, attachments)
        except RecollectError as error:
            self.prompt.attach(attachments)
            self.show_event(NoticeGiven(str(error), "error"))
            return
        if "\n" in answer.strip():  # a line says itself what it is about
            self.show_event(NoticeGiven(f"/{name} {arguments}".rstrip(), "info"))
        if answer:
            self.show_event(NoticeGiven(answer, "info"))

    def _suggest(self) -> None:
        """Offer the next of the prompts that the program was started with."""
        if self._suggestions and not self.runner.waiting and not self.prompt.input.text:
            self.prompt.give_back(QueuedPrompt(self._suggestions.pop(0)))

    def edit_prompt(self, prompt: SentPrompt) -> None:
        """Put an earlier prompt into the input, with its files, unless something is typed there."""
        text = prompt.text
        # it was sent as a prompt, and still is one
        said = f"/{text}" if parse_command(text) is not None else text
        if said or prompt.files:
            self.prompt.give_back(QueuedPrompt(said, prompt.files))

    @work(exclusive=True, group="welcome")
    async def _welcome(self) -> None:
        for line in await welcome_lines(self.runner):
            self.show_event(NoticeGiven(line, "info"))
        runtime, named = await self.runner.opened(), self.runner.run_options.model
        offers = await asyncio.to_thread(find_model_offers, runtime.settings, named)
        if not (offers.has_agent or self.query(ModelOffersPanel)):
            await self.mount(ModelOffersPanel(offers), before=self.prompt)

    @on(ModelOffersPanel.Chosen)
    async def _model_chosen(self, event: ModelOffersPanel.Chosen) -> None:
        event.stop()
        self.prompt.input.focus()
        if event.choice == RECORDING:
            self.app.exit(SHOW_RECORDING)
        elif event.model:
            await self.runner.choose_model(event.model)
            later = "; it is downloaded with your first prompt" if event.choice == DOWNLOAD else ""
            for_good = f"/settings model {event.model} keeps it for other sessions"
            self.show_event(NoticeGiven(f"{event.model} answers here{later}; {for_good}", "info"))
            self._show_status()

    # --- keys ------------------------------------------------------------------------------------

    def action_interrupt(self) -> None:
        self.runner.interrupt()

    async def action_escape(self) -> None:
        if self.runner.interrupt() or not self._pressed_twice("escape", SECOND_PRESS):
            return
        if not await self._show_screen("rewind", ""):
            self.prompt.hint.say("/rewind has no screen yet")

    def action_clear_or_leave(self) -> None:
        if self.runner.interrupt() or self.prompt.clear():
            self._pressed = ("", 0.0)
        elif self._pressed_twice("ctrl+c", LEAVE_PRESS):
            self._leave()
        else:
            self.prompt.hint.say("press Ctrl-C again to leave")

    @on(PromptArea.LeaveWanted)
    def _leave(self) -> None:
        self.runner.close()

    def _pressed_twice(self, key: str, within: float) -> bool:
        before, self._pressed = self._pressed, (key, time.monotonic())
        twice = before[0] == key and self._pressed[1] - before[1] <= within
        if twice:
            self._pressed = ("", 0.0)
        return twice

    @work(exclusive=True, group="mode")
    async def action_next_mode(self) -> None:
        try:
            self.prompt.hint.say(await switch_mode(self.runner))
        except RecollectError as error:
            self.prompt.hint.say(str(error))

    def action_unfold(self) -> None:
        self.query_one(TranscriptView).unfold_all()

    def action_focus_choices(self) -> None:
        panel = next((one for one in self.query(HeldPanel) if not one.has_left), None)
        if panel is not None and not panel.has_focus:
            panel.focus()
        else:
            self.query_one(PromptInput).focus()

    def action_scroll_page(self, pages: int) -> None:
        view = self.query_one(TranscriptView)
        view.scroll_relative(y=pages * max(1, view.size.height - 1), animate=False)
