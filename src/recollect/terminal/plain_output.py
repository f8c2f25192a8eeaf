"""What happens in a session as plain lines: for screen readers, dumb terminals and pipes.

Every event is one line, a reply is streamed in whole sentences. Roles are words, nothing moves the
cursor, nothing has a colour, and no line is ever changed afterwards. All text is sanitized.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from recollect.agent.exchange import ReplyFinished, ReplyStarted, message_text
from recollect.agent.tool_calls import ToolFinished, ToolStarted
from recollect.codecs.wire_protocol import Delta
from recollect.display.display_text import (
    format_cost,
    one_line,
    pluralize,
    sanitize,
    truncate,
)
from recollect.entries import Entry, Message, Text, Thought, ToolCall, ToolResult
from recollect.models.model_protocol import Retrying
from recollect.profiles import compute_cost
from recollect.runtime.prompt_run import RunResult, RunStarted
from recollect.session import Session
from recollect.terminal.block_rendering import call_title
from recollect.terminal.event_feed import EventFeed
from recollect.terminal.terminal_events import (
    ApprovalAsked,
    DownloadProgressed,
    EntriesAppended,
    QueueRestored,
    SessionHeld,
    SessionOpened,
    SessionReleased,
    SessionReloaded,
    ShellFinished,
    ShellOutput,
    TerminalEvent,
)
from recollect.terminal.transcript_blocks import Block, BlockList
from recollect.terminal.watching import describe_holder

PROMPT = "you: "
_SLOW_TOOLS = ("run_shell_command", "task")  # whose beginning is told too
_SPEAKERS = {"user": "you", "model": "model"}
_SENTENCE = re.compile(r"[.!?。！？:][\s]|[。！？]|\n")
_MAX_HELD = 400  # characters of a reply that wait for the end of a sentence
_MAX_SHOWN = 2_000  # characters of the last words of a session that is resumed
_MAX_TITLE, _MAX_THOUGHT = 160, 200


class PlainOutput:
    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._feed = EventFeed(BlockList())  # makes one line of each notice
        self._held, self._in_reply, self._streamed = "", False, False
        self._at_line_start, self._prompting = True, False
        self._model, self._tenths = "", 0

    # --- lines -----------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """A line, or several; a prompt that stands there is left behind."""
        self._end_reply()
        self._put(sanitize(text).rstrip("\n") + "\n")

    def ask(self, asked: ApprovalAsked, about: str) -> None:
        """What is asked, and what can be typed."""
        self.line(about)
        self.line(question_line(asked))

    def ask_for_input(self) -> None:
        if not self._prompting:
            self._end_reply()
            self._put(PROMPT)
            self._prompting = True

    def line_typed(self) -> None:
        """The user ended the line: the cursor is at the start of the next one."""
        self._prompting, self._at_line_start = False, True

    def _put(self, text: str) -> None:
        if self._prompting:
            self._prompting = False
            text = "\n" + text
        self._write(text)
        self._at_line_start = text.endswith("\n")

    # --- events ----------------------------------------------------------------------------------

    def show_event(self, event: TerminalEvent) -> None:  # noqa: C901 - one case per event
        match event:
            case Delta(kind="text", text=text):
                self._stream(text)
            case ReplyStarted():
                self._streamed = False
            case ReplyFinished(message=message):
                self._finish_reply(message)
            case ToolStarted(call=call) if call.name in _SLOW_TOOLS:
                self.line(f"tool {_title(call)}: running")
            case ToolFinished(call=call, result=result):
                self.line(f"tool {_title(call)}: {_outcome(result)}")
            case Retrying(shown=True):
                self.line("note: that reply is void; it is asked for again")
                self._streamed = False
            case RunStarted(model=model, mode=mode) if model.name != self._model:
                self._model = model.name
                self.line(f"note: {one_line(model.name)} answers, mode {mode}")
            case RunResult():
                self.line(_done_line(event))
            case SessionOpened(session=None):
                self.line("note: a new session, which is stored with its first prompt")
            case SessionOpened(session=session, origin=origin) if session and origin != "new":
                self.line(f"note: the session is {origin}; its last words:")
                self._show_last_words(session)
            case SessionReloaded(why=why):
                self.line(f"note: the session changed: {one_line(why)}")
            case ShellOutput(text=text):
                self._stream(text)
            case ShellFinished():
                self._end_reply()
            case EntriesAppended(entries=entries):
                for role, text in filter(None, map(_spoken, entries)):
                    self.line(f"{role}: {truncate(text, _MAX_SHOWN)}")
            case QueueRestored(prompts=prompts):
                for prompt in prompts:
                    self.line(f"note: this waited when the session was left: {prompt.typed}")
                return
            case SessionHeld(holder=holder):
                self.line(
                    f"note: {describe_holder(holder)}; here it is only watched. /fork goes on in a "
                    "copy, /new in a new session"
                )
            case SessionReleased():
                self.line("note: the other terminal has left; your next prompt goes on here")
            case DownloadProgressed(done=done, total=total):
                self._show_progress(done, total)
            case _:
                pass
        if not isinstance(event, Delta | ShellOutput | ShellFinished | EntriesAppended):
            self._show_notices(event)

    def _show_notices(self, event: TerminalEvent) -> None:
        self._feed.add(event)
        for block in self._feed.transcript.blocks:
            if block.kind == "notice":
                word = {"info": "note", "warning": "warning", "error": "error"}[block.level]
                several = "\n" in block.text
                self.line(block.text if several else f"{word}: {block.text}")
        self._feed.transcript.clear()

    def _show_progress(self, done: int, total: int) -> None:
        tenths = 10 * done // total if total else 0
        if tenths != self._tenths:
            self._tenths = tenths
            self.line(f"note: downloading a model: {10 * tenths} %")

    def _show_last_words(self, session: Session) -> None:
        said: dict[str, str] = {}
        for entry in reversed(session.view().entries):
            if (spoken := _spoken(entry)) is not None:
                said.setdefault(*spoken)
            if len(said) == len(_SPEAKERS):
                break
        for role in _SPEAKERS.values():
            if role in said:
                self.line(f"{role}: {truncate(said[role], _MAX_SHOWN)}")

    # --- a reply ---------------------------------------------------------------------------------

    def _stream(self, text: str) -> None:
        self._held += text
        ends = [match.end() for match in _SENTENCE.finditer(self._held)]
        cut = ends[-1] if ends else 0
        if not cut and len(self._held) > _MAX_HELD:
            cut = self._held.rfind(" ") + 1 or len(self._held)
        if cut:
            ready, self._held = self._held[:cut], self._held[cut:]
            self._say(ready)

    def _say(self, text: str) -> None:
        if not self._in_reply and not text.strip():
            return
        self._put(("" if self._in_reply else "model: ") + sanitize(text))
        self._in_reply = self._streamed = True

    def _end_reply(self) -> None:
        if self._held:
            held, self._held = self._held, ""
            self._say(held)
        self._in_reply = False
        if not self._at_line_start and not self._prompting:
            self._put("\n")

    def _finish_reply(self, message: Message) -> None:
        self._end_reply()
        for part in message.parts:
            if isinstance(part, Thought) and (part.subject or part.text.strip()):
                self.line(f"thought: {truncate(one_line(part.subject or part.text), _MAX_THOUGHT)}")
        text = message_text(message)
        if not self._streamed and text.strip():
            self._say(text)
            self._end_reply()


def _spoken(entry: Entry) -> tuple[str, str] | None:
    """Who said what; None if nobody said anything."""
    body = entry.body
    if not isinstance(body, Message) or body.context or body.role not in _SPEAKERS:
        return None
    text = "\n".join(part.text for part in body.parts if isinstance(part, Text)).strip()
    return (_SPEAKERS[body.role], text) if text else None


def question_line(asked: ApprovalAsked) -> str:
    """What can be typed, in words."""
    rules = ", ".join(asked.request.rules)
    always = f"[a]lways, which stores the rule {one_line(rules)}, " if rules else ""
    return f"question: [y]es once, [s]ession, {always}[n]o, or type a reason for no"


def _title(call: ToolCall) -> str:
    return truncate(call_title(Block("", "tool", call.arguments, name=call.name)), _MAX_TITLE)


def _outcome(result: ToolResult) -> str:
    text = "\n".join(part.text for part in result.content if isinstance(part, Text)).strip()
    if result.is_error:
        return f"failed: {truncate(one_line(text[:1_000]), _MAX_TITLE)}"
    took = f", {result.duration:.1f} s" if (result.duration or 0) >= 1 else ""
    return f"done, {pluralize(text.count(chr(10)) + 1 if text else 0, 'line')}{took}"


def _done_line(result: RunResult) -> str:
    usage = result.usage
    cost = format_cost(compute_cost(usage, result.model.resolved.profile.price))
    parts = [f"done in {result.finished.seconds:.1f} s", f"{usage.input:,} tokens in"]
    return ", ".join(filter(None, [*parts, f"{usage.output:,} out", cost]))
