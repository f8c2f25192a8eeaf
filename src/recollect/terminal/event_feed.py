"""Turns what a `SessionRunner` tells into blocks of a transcript, and into what is happening now.

What is stored is shown from the log: after each step of a run, the entries that came take the place
of what was shown while they arrived. Only what is in no log, such as a retry, is its own notice.
"""

from __future__ import annotations

from recollect.agent.exchange import ReplyFinished, ReplyStarted
from recollect.agent.fit_context import ContextReduced
from recollect.agent.run_events import RunFinished
from recollect.agent.tool_calls import ToolFinished, ToolStarted
from recollect.codecs.wire_protocol import Delta
from recollect.display.display_text import one_line, pluralize
from recollect.models.model_protocol import Retrying
from recollect.redaction import redact
from recollect.runtime.prompt_run import RunResult, RunStarted
from recollect.session import Session
from recollect.terminal.block import BlockKind
from recollect.terminal.run_notices import run_notices
from recollect.terminal.terminal_events import (
    ApprovalAsked,
    DownloadProgressed,
    EntriesAppended,
    NoticeGiven,
    PromptEnded,
    PromptStarted,
    QueueRestored,
    SessionOpened,
    SessionReloaded,
    ShellFinished,
    ShellOutput,
    TerminalEvent,
)
from recollect.terminal.transcript_blocks import BlockList
from recollect.text import format_size

SHOWN_OF_COMMAND = 8_000  # characters of its output, while it runs
WAITING = "waiting for a reply"
NOT_ANSWERED = "interrupted before anything came"
_KINDS: dict[str, BlockKind] = {"text": "reply", "thought": "thought", "call": "tool"}
_DOING: dict[str, str] = {"text": "replying", "thought": "thinking", "call": "writing a tool call"}


class EventFeed:
    """`activity` is what is happening now, in a few words; empty: nothing is."""

    def __init__(self, transcript: BlockList) -> None:
        self.transcript, self.activity = transcript, ""
        self._written = ""  # by the user's own command, newest
        self._session: Session | None = None
        self._head: str | None = None  # the newest entry that is shown

    def add(self, event: TerminalEvent) -> None:
        if isinstance(event, Delta):
            self.transcript.add_piece(_KINDS[event.kind], event.text, event.name)
        elif isinstance(event, SessionOpened | SessionReloaded):
            self._session = event.session
            self.skip()
        else:
            self._add_step(event)
        self._note_activity(event)

    def skip(self) -> None:
        """Whoever loads the session shows all that is stored now."""
        self._head = self._session.view().head if self._session is not None else None

    def _add_step(self, event: TerminalEvent) -> None:  # noqa: C901 - one case per event
        shown = self.transcript
        match event:
            case EntriesAppended(session=session):
                self._session = session
                self.follow()
            case PromptStarted(prompt=prompt):
                shown.add_said(prompt.typed, prompt.attachments)
                self._written = ""
            case ShellOutput(text=text):
                self._written = (self._written + text)[-SHOWN_OF_COMMAND:]
                shown.show_output(self._written)
            case ShellFinished():
                shown.drop_pieces()
                self.follow()
            case RunStarted(session=session):
                self._session = session
            case ReplyStarted(entry=entry):
                self.follow()
                shown.begin_reply(entry)
            case ReplyFinished(session=session):
                self._session = session
                self.follow()
            case ToolFinished(result=result):
                shown.finish_call(result)
                self.follow()
            case NoticeGiven(text=text, level=level):
                self.follow()  # what is stored came before it, such as why another model is taken
                shown.add_notice(text, level)
            case PromptEnded():
                self._end(event)
            case QueueRestored(prompts=prompts):
                waited = pluralize(len(prompts), "prompt")
                shown.add_notice(f"{waited} waited when this session was left, and wait again")
            case RunResult(finished=RunFinished(problem=problem)):
                self.follow()
                if problem and not self._is_told():
                    shown.add_notice(redact(problem), "error")
            case _:
                self._add_notices(event)

    def _add_notices(self, event: TerminalEvent) -> None:
        if isinstance(event, Retrying) and event.shown:
            self.transcript.drop_pieces()
        in_log = isinstance(event, ContextReduced) and self.follow() > 0
        for notice in run_notices(event, in_log=in_log):
            self.transcript.add_notice(*notice)

    def _end(self, event: PromptEnded) -> None:
        shown = self.transcript
        if event.prompt.is_command:
            shown.drop_pieces()  # what it wrote is in its entry
        self.follow()
        if not event.stored:
            shown.drop_said()
        shown.end_pieces("interrupted")
        last = shown.blocks[-1] if shown.blocks else None
        if event.error:
            if not self._is_told():
                shown.add_notice(redact(event.error), "error")
        elif event.prompt.is_command and event.stored:
            pass  # its entry says how it ended
        elif event.interrupted and (last is None or last.state != "interrupted"):
            shown.add_notice(NOT_ANSWERED if last is None or last.kind == "user" else "interrupted")

    def _is_told(self) -> bool:
        """Whether the log ends with a note that says why the run ended."""
        blocks = self.transcript.blocks
        last = blocks[-1] if blocks else None
        return last is not None and bool(last.entry) and last.level in ("warning", "error")

    def follow(self) -> int:
        """Show what was appended since; how many entries."""
        if self._session is None:
            return 0
        view = self._session.view()
        known = -1 if self._head is None else view.log.position(self._head, view.n)
        if known is None or view.head == self._head:
            return 0  # of another path: whoever moved it has it loaded anew
        entries = view.log.entries[known + 1 : view.n]
        self._head = view.head
        self.transcript.add_entries(entries)
        return len(entries)

    def _note_activity(self, event: TerminalEvent) -> None:
        match event:
            case Delta(kind=kind):
                self.activity = _DOING[kind]
            case Retrying(attempt=attempt):
                self.activity = f"{WAITING}, attempt {attempt + 1}"
            case ToolStarted(call=call):
                self.activity = f"running {one_line(call.name)}"
            case ApprovalAsked(request=request):
                self.activity = f"waiting for your answer about {one_line(request.call.name)}"
            case DownloadProgressed(done=done, total=total):
                self.activity = f"downloading a model: {format_size(done)} of {format_size(total)}"
            case PromptEnded() | SessionOpened():
                self.activity = ""
            case PromptStarted(prompt=prompt) if prompt.is_command:
                self.activity = "running your command"
            case PromptStarted() | RunStarted() | ReplyStarted() | ReplyFinished() | ToolFinished():
                self.activity = WAITING
            case _:
                pass
