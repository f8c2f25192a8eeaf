"""Everything below the conversation where the user answers: what waits, hints, what can stand at
the cursor, attachments, the prompt, and in its place a question about a tool call.

What was typed stays while a question is asked. Nothing here decides what a prompt or an answer
does: that is the runner's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message as TextualMessage
from textual.widgets import Static, TextArea

from recollect.display.display_text import one_line, pluralize
from recollect.errors import RecollectError
from recollect.runtime.approval_preview import ApprovalPreview, preview_approval
from recollect.runtime.project_prompts import project_prompts
from recollect.terminal.approval_panel import ApprovalPanel
from recollect.terminal.clipboard_image import remove_clipboard_images, save_clipboard_image
from recollect.terminal.completion_list import CompletionList
from recollect.terminal.completion_sources import CompletionSources
from recollect.terminal.hint_line import HintLine
from recollect.terminal.prompt_attachments import Attachment, describe_file, takes_no_files
from recollect.terminal.prompt_completer import PromptCompleter
from recollect.terminal.prompt_editor import edit_in_editor
from recollect.terminal.prompt_input import PromptInput
from recollect.terminal.prompt_search import PromptSearch
from recollect.terminal.queue_panel import QueuePanel
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.terminal_events import ApprovalAsked, QueueChanged, QueuedPrompt
from recollect.workspace.sent_files import Attachable

HISTORY_PAGE = 100  # prompts that are read at once


class AttachmentBar(Static):
    DEFAULT_CSS = """
    AttachmentBar { height: auto; max-height: 3; padding: 0 1; color: $accent; display: none; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.attachments: tuple[Attachment, ...] = ()

    def show(self, attachments: tuple[Attachment, ...]) -> None:
        self.attachments = attachments
        self.display = bool(attachments)
        chips = " ".join(f"[{one_line(one.label[:100])}]" for one in attachments)
        self.update(f"{chips}  (Backspace at the start removes the last)")


class PromptArea(Vertical):
    DEFAULT_CSS = "PromptArea { height: auto; }"

    class Sent(TextualMessage):
        """The user sent this, with these files."""

        def __init__(self, text: str, attachments: tuple[Attachable, ...]) -> None:
            super().__init__()
            self.text, self.attachments = text, attachments

    class LeaveWanted(TextualMessage):
        """Ctrl+D with nothing typed."""

    def __init__(self, runner: SessionRunner) -> None:
        super().__init__()
        self.runner = runner
        self.asked: list[ApprovalAsked] = []  # in order; the first is shown
        self._older: AsyncIterator[str] | None = None
        self._reading = False
        self._saved_images: list[Path] = []
        self.queue, self.hint = QueuePanel(), HintLine()
        self.offered, self.attached = CompletionList(), AttachmentBar()
        self.input = PromptInput(Path.cwd())
        self.search = PromptSearch(self.offered, self.input.earlier, self._search_done)
        self.sources = CompletionSources(runner)
        self.completer = PromptCompleter(self.input, self.offered, self.sources, self._complete)

    def compose(self) -> ComposeResult:
        yield self.queue
        yield self.hint
        yield self.offered
        yield self.search
        yield self.attached
        yield self.input

    def on_mount(self) -> None:
        self.input.focus()
        self.attach(self.runner.options.run.attachments)
        self._read_history()

    def on_unmount(self) -> None:
        self.sources.close()
        waiting = {file for prompt in self.runner.waiting for file in prompt.attachments}
        remove_clipboard_images(tuple(one for one in self._saved_images if one not in waiting))

    # --- the prompt ------------------------------------------------------------------------------

    @on(PromptInput.Submitted)
    def _submitted(self, event: PromptInput.Submitted) -> None:
        event.stop()
        files = tuple(one.file for one in self.attached.attachments)
        self.hint.say("")
        if files and takes_no_files(event.text):
            self.say_kept(files)
            files = ()
        else:
            self.attached.show(())
        self.post_message(self.Sent(event.text, files))

    def clear(self) -> bool:
        """Put what is typed into the history, where Up finds it. Whether there was anything."""
        had = bool(self.input.text or self.attached.attachments)
        if had:
            self.input.finish()
            self.attached.show(())
        return had

    @on(PromptInput.Changed)
    def _changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self.hint.say("")
        self.completer.look()

    @on(PromptInput.SelectionChanged)
    def _moved(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        if self.offered.is_open and not self.search.display:
            self.completer.look()

    @work(exclusive=True, group="complete")
    async def _complete(self, ask: Callable[[], Coroutine[None, None, None]]) -> None:
        await ask()

    @on(PromptInput.Asked)
    def _asked(self, event: PromptInput.Asked) -> None:
        event.stop()
        match event.what:
            case "release":
                self.runner.release()
            case "leave":
                self.post_message(self.LeaveWanted())
            case "take back":
                self._take_back()
            case "drop attachment":
                self.attached.show(self.attached.attachments[:-1])
            case "search history":
                self.completer.close()
                self.search.open()
                self._read_history()
            case "editor":
                self._open_editor()
            case "paste image":
                self._paste_image()
            case said:
                self.hint.say(said)

    @work(exclusive=True, group="editor")
    async def _open_editor(self) -> None:
        try:
            text = await edit_in_editor(self.app, self.input.pastes.expand(self.input.text))
        except (RecollectError, OSError) as error:
            self.hint.say(str(error))
            return
        self.input.show_text(text)

    # --- attachments -----------------------------------------------------------------------------

    @on(PromptInput.MediaPasted)
    def _media_pasted(self, event: PromptInput.MediaPasted) -> None:
        event.stop()
        self.attach(event.files)

    def attach(self, files: tuple[Attachable, ...]) -> None:
        known = {one.file: one for one in self.attached.attachments}
        known |= {file: describe_file(file) for file in files}
        self.attached.show(tuple(known.values()))

    def say_kept(self, files: tuple[Attachable, ...]) -> None:
        count = pluralize(len(files), "attachment")
        self.hint.say(f"{count} kept for your next prompt: a command takes none along")

    @work(exclusive=True, group="clipboard")
    async def _paste_image(self) -> None:
        try:
            file = await save_clipboard_image()
        except OSError as error:
            self.hint.say(f"the image in the clipboard cannot be saved: {error.strerror or error}")
            return
        if file is None:
            self.input.action_paste()
            return
        self._saved_images.append(file)
        self.attach((file,))

    # --- earlier prompts -------------------------------------------------------------------------

    @on(PromptInput.HistoryWanted)
    def _history_wanted(self, event: PromptInput.HistoryWanted) -> None:
        event.stop()
        self._read_history()

    @work(exclusive=False, group="history")
    async def _read_history(self) -> None:
        """The next page of what was asked in this project, behind what is known."""
        if self._reading:
            return
        self._reading = True
        try:
            runtime = await self.runner.opened()
            if self._older is None:
                self._older = project_prompts(runtime.store, runtime.project)
            found = await _take(self._older, HISTORY_PAGE)
        except RecollectError:
            return  # the store says itself what it lacks
        finally:
            self._reading = False
        self.input.earlier.extend(found)
        self.search.look()

    def _search_done(self, chosen: str | None) -> None:
        if chosen is not None:
            self.input.show_text(chosen)
        self.input.focus()

    # --- what waits ------------------------------------------------------------------------------

    def show_queue(self, queue: QueueChanged) -> None:
        self.queue.show(queue)

    @on(QueuePanel.Removed)
    def _removed(self, event: QueuePanel.Removed) -> None:
        event.stop()
        if (prompt := self.runner.take_back(event.number)) is not None:
            self.input.earlier.add(prompt.typed)

    def _take_back(self) -> None:
        """The prompt that waits last, for editing; if none does, the newest earlier one."""
        waiting = self.runner.waiting
        if not waiting:
            self.input.show_older()
            return
        prompt = self.runner.take_back(waiting[-1].number)
        if prompt is not None:
            self.give_back(prompt)

    def give_back(self, prompt: QueuedPrompt) -> None:
        """Put a prompt that was not run back into the field, unless there is another by now: then
        Up brings it."""
        if self.input.text:
            if prompt.attachments:
                names = ", ".join(describe_file(file).label for file in prompt.attachments)
                self.hint.say(f"not attached to what is typed here: {names}")
            return
        self.input.show_text(prompt.typed)
        self.attach(prompt.attachments)

    # --- questions -------------------------------------------------------------------------------

    def ask(self, asked: ApprovalAsked) -> None:
        """Ask about a call when those before it are answered; one that is not asked any more, such
        as after an interrupt, goes away."""
        self.asked.append(asked)
        asked.answer.add_done_callback(lambda _: self.call_later(self._answered, asked))
        if len(self.asked) == 1:
            self._show_question()

    async def _answered(self, asked: ApprovalAsked) -> None:
        self.asked.remove(asked)
        shown = self.query(ApprovalPanel)
        if any(panel.asked is asked for panel in shown):
            await shown.remove()
            self._show_question()

    def _show_question(self) -> None:
        self.input.display = not self.asked
        if not self.asked:
            self.input.focus()
            return
        asked = self.asked[0]

        async def preview() -> ApprovalPreview:
            active = self.runner.active
            if active is None:
                raise RecollectError("the session is closed")
            return await preview_approval(active, asked.request)

        self.completer.close()
        self.mount(ApprovalPanel(asked, preview, self.input.typed_at))


async def _take(items: AsyncIterator[str], most: int) -> list[str]:
    taken: list[str] = []
    async for one in items:
        taken.append(one)
        if len(taken) == most:
            break
    return taken
