"""`recollect --plain`: the terminal program on lines, with the same commands.

On a terminal prompts that are typed while the model works are queued, and commands run at once. A
pipe is worked through line by line: the next line is read when the one before is done, and an exit
code of 1 says that one failed. A line typed at a question answers it. Nothing that was sent is lost
by leaving.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
from collections import deque
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress

from recollect.display.resume_command import resume_command
from recollect.errors import BadInput, RecollectError
from recollect.redaction import redact
from recollect.runtime.approval_preview import preview_approval
from recollect.runtime.permission_policy import ApprovalAnswer
from recollect.runtime.prompt_run import RunResult
from recollect.terminal.approval_text import approval_lines, approval_title
from recollect.terminal.command_table import run_command
from recollect.terminal.command_words import say_here
from recollect.terminal.plain_output import PlainOutput, question_line
from recollect.terminal.prompt_lines import PromptLines
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.shell_prompt import parse_shell
from recollect.terminal.slash_commands import find_builtin, parse_command
from recollect.terminal.start_options import StartOptions
from recollect.terminal.terminal_events import (
    ApprovalAsked,
    NoticeGiven,
    PromptEnded,
    PromptStarted,
    QueueChanged,
    QueueRestored,
    SessionOpened,
    TerminalEvent,
)
from recollect.terminal.typed_lines import TypedLines

FAILED, INTERRUPTED = 1, 130
_GREETING = "note: type a prompt, or /help for the commands; Ctrl-C interrupts, Ctrl-D leaves"
_NOBODY = "nobody is there to answer"
_SHORT = 2  # characters: a slip of the keys, and no reason
ARRIVE_SECONDS = 0.005  # between two looks whether another session is open


def run_plain(options: StartOptions) -> int:
    """The exit code."""
    with _terminal_marks_pastes():
        return asyncio.run(_PlainProgram(options).run())


class _PlainProgram:
    def __init__(self, options: StartOptions) -> None:
        self.interactive = sys.stdin.isatty()
        self.output = PlainOutput(self._write)
        self.runner = SessionRunner(options, self._told)
        self._prompt = PromptLines()
        self._attached = options.run.attachments  # they go with the first prompt
        self._questions: deque[ApprovalAsked] = deque()
        self._running, self._queued, self._commands = False, 0, 0
        self._typed_now = 0  # prompts whose text stands on the terminal already
        self._news = asyncio.Event()
        self._failed = self._interrupting = self._interrupted = False
        self._unwritten: OSError | None = None
        self._last = ""  # the session to come back to
        self._order = asyncio.Lock()  # commands follow each other
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        serving = asyncio.create_task(self._serve())
        lines = TypedLines(self._refuse_line)
        for number, handler in (
            (signal.SIGINT, self._interrupt),
            (signal.SIGTERM, self.runner.close),
            (signal.SIGHUP, self.runner.close),
        ):
            loop.add_signal_handler(number, handler)
        reading = asyncio.create_task(self._read(lines))
        try:
            await asyncio.wait((serving, reading), return_when=asyncio.FIRST_COMPLETED)
            self.runner.close()
            for task in (*self._tasks, reading):
                task.cancel()
            await serving
            if reading.done() and not reading.cancelled():
                reading.result()
        except RecollectError as error:
            self.output.line(f"error: {redact(str(error))}")
            self._failed = True
        finally:
            lines.close()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)
        if self._unwritten is not None:
            raise self._unwritten
        if self._interrupted:
            return INTERRUPTED
        return FAILED if self._failed and (not self.interactive or serving.exception()) else 0

    async def _serve(self) -> None:
        self._say_greeting()
        hint = asyncio.create_task(self._note_resume_hint())
        try:
            await self.runner.run()
        finally:
            hint.cancel()
        for prompt in self.runner.waiting:
            self.output.line(f"note: not sent yet, kept with the session: {prompt.typed}")
        if self._last:
            self.output.line(f"note: `{self._last}` comes back to this session")

    def _say_greeting(self) -> None:
        if self.interactive:
            self.output.line(_GREETING)

    async def _note_resume_hint(self) -> None:
        """While the store is open: it is closed when the hint is printed."""
        runtime, known = await self.runner.opened(), ""
        while True:
            session = self.runner.session
            if session is not None and session.id != known:
                known, file = session.id, self.runner.options.store
                self._last = await resume_command(runtime.store, session.id, file)
            await self._changed()

    # --- what happens ----------------------------------------------------------------------------

    def _told(self, event: TerminalEvent) -> None:  # noqa: C901 - one case per event
        match event:
            case PromptStarted(prompt=prompt):
                self._running = True
                if self._typed_now:
                    self._typed_now -= 1
                else:
                    self.output.line(f"you: {prompt.text}")
            case PromptEnded(error=error):
                self._running = self._interrupting = False
                self._failed |= bool(error)
            case RunResult(finished=finished):
                self._failed |= bool(finished.problem)
            case NoticeGiven(level="error"):
                self._failed = True
            case QueueChanged(waiting=waiting, held=held):
                self._running |= self.runner.busy and len(waiting) < self._queued  # one began
                self._queued = len(waiting)
                if held:
                    self.runner.release()  # nobody looks at a queue here: the next one runs
            case QueueRestored(prompts=prompts):
                self.runner.forget(prompts)  # nobody looks at a queue here: they are only shown
            case ApprovalAsked():
                self._begin(self._ask(event))
            case SessionOpened():
                self._questions.clear()
            case _:
                pass
        self.output.show_event(event)
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        asks = self.interactive and self._is_idle and not self._prompt.is_open
        if asks and not self.runner.closing:
            self.output.ask_for_input()

    async def _changed(self) -> None:
        """Until something has happened."""
        news = self._news
        await news.wait()
        if news is self._news:
            self._news = asyncio.Event()

    @property
    def _is_idle(self) -> bool:
        return not (self._running or self._queued or self._commands)

    async def _ask(self, asked: ApprovalAsked) -> None:
        active = self.runner.active
        if active is None:
            return
        shown = await preview_approval(active, asked.request)
        if not asked.answer.done():  # it was interrupted meanwhile
            lines = [approval_title(shown), *(line.text for line in approval_lines(shown))]
            self.output.ask(asked, "\n".join(lines))
            self._questions.append(asked)
            self._wake()

    def _question(self) -> ApprovalAsked | None:
        while self._questions and self._questions[0].answer.done():
            self._questions.popleft()
        return self._questions[0] if self._questions else None

    def _write(self, text: str) -> None:
        if self._unwritten is not None:
            return
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:  # nobody reads it: the program ends
            self._unwritten = error
            self.runner.close()

    # --- what the user does ----------------------------------------------------------------------

    async def _read(self, lines: TypedLines) -> None:
        with suppress(RecollectError):  # `_serve` raises it
            await self.runner.opened()
            if self.interactive:
                self._wake()
            while (line := await lines.next()) is not None:
                self.output.line_typed() if self.interactive else None
                self._take_line(line)
                if not self.interactive:
                    await self._settle(lines)
                self._wake()
            if (rest := self._prompt.finish()) is not None:
                self._obey(rest)
                await self._settle(lines)

    async def _settle(self, lines: TypedLines) -> None:
        """Until nothing runs; a question is answered by the next line."""
        while not self._is_idle:
            if self._question() is None:
                await self._changed()
                continue
            line = await lines.next()
            self._take_line(line) if line is not None else self._refuse(_NOBODY)
        if (drafting := self.runner.shown.drafting) is not None:
            await asyncio.wait([drafting])  # what it shows belongs to this line

    def _take_line(self, line: str) -> None:
        if self._question() is not None and not line.startswith("/"):
            self._answer(line)
            return
        try:
            text = self._prompt.add(line)
        except BadInput as error:
            self._fail(error)
            return
        if text is not None:
            self._obey(text)

    def _obey(self, text: str) -> None:
        if not text.strip():
            return
        command = parse_command(text)
        if command is not None:
            self._commands += 1
            self._begin(self._run_command(*command))
            return
        line, idle, waiting = parse_shell(text), self._is_idle, self._queued + 1
        said = text[1:] if text.startswith("//") else text
        if self.interactive and idle:
            self._typed_now += 1
        try:
            if line is None:
                self.runner.send(said, self._attached)
                self._attached = ()
            else:
                self.runner.send(line, is_command=True)
        except RecollectError as error:  # the session is open elsewhere
            self._fail(error)
        else:
            if self.interactive and not idle:
                self.output.line(f"note: queued, {waiting} waiting")

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _arrive(self) -> None:
        """What the next line asks is asked of the session that this one goes to."""
        while self.runner.is_moving and not self.runner.closing:
            await asyncio.sleep(ARRIVE_SECONDS)

    async def _run_command(self, name: str, arguments: str) -> None:
        try:
            async with self._order:
                answer = await run_command(self.runner, name, arguments, self._attached)
                await self._arrive()
            if find_builtin(name) is None:
                self._attached = ()  # a command of the user's took them along
            if answer:
                self.output.line(answer)
        except RecollectError as error:
            self._fail(error)
        finally:
            self._commands -= 1
            self._wake()

    def _answer(self, line: str) -> None:
        asked = self._question()
        if asked is None:
            return
        answer = read_answer(line, has_rules=bool(asked.request.rules))
        if answer is None:
            self.output.line(question_line(asked))
        else:
            asked.answer.set_result(answer)

    def _refuse(self, why: str) -> None:
        if (asked := self._question()) is not None:
            self.output.line(f"note: refused, because {why}")
            asked.answer.set_result(ApprovalAnswer(allowed=False, reason=why))

    def _fail(self, error: RecollectError) -> None:
        self._failed = True
        self.output.line(f"error: {say_here(redact(str(error)))}")

    def _refuse_line(self, size: int) -> None:
        too_long = f"a line of {size:,} bytes is too long; put it in a file and send @path"
        self._fail(BadInput(too_long))

    def _interrupt(self) -> None:
        if self.interactive:
            self.output.line_typed()
        if self._prompt.is_open:
            self.output.line(f"note: dropped {self._prompt.describe()}")
            self._prompt.clear()
            self._wake()
        elif not self._interrupting and self.runner.interrupt():
            self._interrupting = True
            self.output.line("note: interrupting; Ctrl-C again leaves")
        else:
            self._interrupted = True
            self.runner.close()


def read_answer(line: str, *, has_rules: bool) -> ApprovalAnswer | None:
    """What a line says to a question; None: it says nothing."""
    text = line.strip()
    match text.lower():
        case "y" | "yes":
            return ApprovalAnswer(allowed=True)
        case "s" | "session":
            return ApprovalAnswer(allowed=True, lasts="session")
        case "a" | "always":
            return ApprovalAnswer(allowed=True, lasts="always") if has_rules else None
        case "n" | "no":
            return ApprovalAnswer(allowed=False)
    if len(text) <= _SHORT:
        return None
    return ApprovalAnswer(allowed=False, reason=text)


@contextmanager
def _terminal_marks_pastes() -> Iterator[None]:
    """The terminal marks what is pasted, and does not show the marks, as long as the block lasts.
    A dumb terminal is left alone."""
    both = sys.stdin.isatty() and sys.stdout.isatty()
    if not both or os.environ.get("TERM", "dumb") == "dumb":
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    quiet = list(before)
    quiet[3] &= ~termios.ECHOCTL  # it would show the marks as ^[[200~
    termios.tcsetattr(descriptor, termios.TCSADRAIN, quiet)
    sys.stdout.write("\x1b[?2004h")
    sys.stdout.flush()
    try:
        yield
    finally:
        with suppress(OSError, termios.error):  # the terminal is gone
            sys.stdout.write("\x1b[?2004l")
            sys.stdout.flush()
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
