"""Turns what a `SessionRunner` tells into blocks of a transcript, and into what is happening now.

One calm line for everything that is no message: a retry, a fallback, a loop, a reduction.
"""

from __future__ import annotations

from recollect.agent.corrections import CorrectionRequested
from recollect.agent.exchange import ReplyFinished, ReplyStarted
from recollect.agent.fit_context import ContextReduced
from recollect.agent.run_events import LoopFound, RunFinished, WindowLearned
from recollect.agent.tool_calls import ToolFinished, ToolStarted
from recollect.codecs.wire_protocol import Delta
from recollect.display.display_text import one_line, truncate
from recollect.display.reduction_notes import reduction_notes
from recollect.models.model_protocol import Retrying
from recollect.redaction import redact
from recollect.runtime.prompt_run import RunResult, RunStarted
from recollect.terminal.terminal_events import (
    ApprovalAsked,
    DownloadProgressed,
    EntriesAppended,
    NoticeGiven,
    PromptEnded,
    PromptStarted,
    ShellFinished,
    ShellOutput,
    TerminalEvent,
)
from recollect.terminal.transcript_blocks import BlockKind, BlockList
from recollect.text import format_size

SHOWN_OF_COMMAND = 8_000  # characters of its output, while it runs
WAITING = "waiting for a reply"
_KINDS: dict[str, BlockKind] = {"text": "reply", "thought": "thought", "call": "tool"}


class EventFeed:
    """`activity` is what is happening now, in a few words; empty: nothing is."""

    def __init__(self, transcript: BlockList) -> None:
        self.transcript, self.activity = transcript, ""
        self._written = ""  # by the user's own command, newest
        self._entry = ""  # that the reply in progress will be

    def add(self, event: TerminalEvent) -> None:  # noqa: C901 - one case per event
        shown = self.transcript
        match event:
            case EntriesAppended(entries=entries):
                shown.add_entries(entries)
            case PromptStarted(prompt=prompt):
                said = f"!{prompt.text}" if prompt.is_command else prompt.text
                shown.add_said(said, prompt.attachments)
                self.activity = "running your command" if prompt.is_command else WAITING
                self._written = ""
            case ShellOutput(text=text):
                self._written = (self._written + text)[-SHOWN_OF_COMMAND:]
                shown.drop_pieces()
                shown.add_piece("notice", self._written)
            case ShellFinished(message=message, entry=entry):
                shown.add_message(message, entry)
            case RunStarted():
                self.activity = WAITING
            case ReplyStarted(entry=entry):
                self._entry, self.activity = entry, WAITING
            case Delta(kind=kind, text=text, name=name):
                shown.add_piece(_KINDS[kind], text, name)
                self.activity = {"thought": "thinking", "call": "calling a tool"}.get(
                    kind, "replying"
                )
            case ReplyFinished(message=message):
                shown.add_message(message, self._entry)
                self.activity = WAITING
            case ToolStarted(call=call):
                self.activity = f"running {one_line(call.name)}"
            case ToolFinished(result=result):
                shown.finish_call(result)
                self.activity = WAITING
            case ApprovalAsked(request=request):
                self.activity = f"waiting for your answer about {one_line(request.call.name)}"
            case DownloadProgressed(done=done, total=total):
                self.activity = f"downloading a model: {format_size(done)} of {format_size(total)}"
            case NoticeGiven(text=text, level=level):
                shown.add_notice(text, level)
            case PromptEnded(error=error, interrupted=interrupted):
                shown.end_pieces("interrupted")
                self.activity = ""
                if error:
                    shown.add_notice(redact(error), "error")
                elif interrupted:
                    shown.add_notice("interrupted; what had come is kept", "warning")
            case RunResult(finished=RunFinished(problem=problem)) if problem:
                shown.add_notice(redact(problem), "error")
            case _:
                for note in _notes(event):
                    shown.add_notice(note, "warning")
                if isinstance(event, Retrying) and event.shown:
                    shown.drop_pieces()


def _notes(event: TerminalEvent) -> list[str]:
    match event:
        case Retrying(reason=reason, delay=delay):
            return [f"retrying in {delay:.1f} s: {redact(reason)}"]
        case CorrectionRequested(problems=problems, attempt=attempt, most=most):
            told = truncate(one_line(redact("; ".join(problems))), 400)
            return [f"asking again ({attempt} of {most}): {told}"]
        case ContextReduced():
            return [redact(note) for note in reduction_notes(event)]
        case WindowLearned(model=model, window=window):
            return [f"the window of {model} is only {window:,} tokens"]
        case LoopFound(loop=loop, stopped=stopped):
            what = truncate(one_line(redact(loop.what)), 120)
            return [f"the model repeats itself{' and was stopped' if stopped else ''}: {what}"]
        case _:
            return []
