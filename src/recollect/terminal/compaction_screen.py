"""`/compact`: the proposed snapshot, which may be edited, and what goes and what stays.

Nothing is stored until it is applied; the text is stored as the user left it. A proposal is for the
session as it was: if that went on meanwhile, it is proposed again.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Input, Static, TextArea
from textual.worker import Worker

from recollect.display.compaction_report import (
    CompactionOutcome,
    CompactionWish,
    describe_change,
    describe_parts,
    explain_failure,
    run_compaction,
    start_compaction,
)
from recollect.display.display_text import one_line, sanitize, truncate
from recollect.display.entry_summary import summarize
from recollect.entries import Message, handle_of
from recollect.errors import RecollectError
from recollect.runtime.apply_preview import apply_preview
from recollect.terminal.context_commands import (
    REMEDIES,
    compacted_text,
    opened_session,
    undo_compaction,
)
from recollect.terminal.prompt_choice import PromptChoice
from recollect.terminal.screen_lines import KeyLine
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.terminal_events import NoticeGiven

KEYS = (
    *("a apply", "e edit", "i instructions", "r keep from", "b begin at", "u undo"),
    "Esc leave",
)
EDITING = ("Ctrl-S apply", "Esc stop editing")
WORKING = ("Esc stop",)
LIMIT_WIDTH = 30  # columns of a prompt that limits what is replaced


class CompactionScreen(Screen[None]):
    DEFAULT_CSS = """
    CompactionScreen #header { height: auto; padding: 0 1; }
    CompactionScreen #said { height: auto; max-height: 3; padding: 0 1; color: $text-accent; }
    CompactionScreen TextArea, CompactionScreen TextArea:focus {
        height: 1fr; min-height: 1; border: none; padding: 0 1;
    }
    CompactionScreen TextArea { background: $background; }
    CompactionScreen TextArea.editing { background: $surface; }
    CompactionScreen #instructions { height: 1; border: none; display: none; }
    CompactionScreen #instructions.open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "leave", "Leave"),
        ("q", "leave", "Leave"),
        ("a", "apply", "Apply"),
        ("ctrl+s", "apply", "Apply"),
        ("e", "edit", "Edit"),
        ("i", "instructions", "Instructions"),
        ("r", "choose('until')", "Keep from"),
        ("b", "choose('since')", "Begin at"),
        ("u", "undo", "Undo"),
    ]

    def __init__(self, runner: SessionRunner, instructions: str = "") -> None:
        super().__init__()
        self.runner = runner
        named = runner.run_options.model or None
        session = opened_session(runner).id
        self.wish = CompactionWish(session, instructions, named, preview=True)
        self.outcome: CompactionOutcome | None = None
        self.shown = ""  # the snapshot as it was proposed, sanitized
        self._work: Worker[None] | None = None
        self._warned = ""  # the key that was pressed although it loses what the user wrote

    def compose(self) -> ComposeResult:
        yield Static("", id="header", markup=False)
        yield TextArea(read_only=True, show_cursor=False, highlight_cursor_line=False)
        yield Input(id="instructions", placeholder="what the snapshot must keep")
        yield Static("", id="said", markup=False)
        yield KeyLine(*KEYS)

    def on_mount(self) -> None:
        self.area.focus()
        self._work = self.propose()

    @property
    def area(self) -> TextArea:
        return self.query_one(TextArea)

    @property
    def proposing(self) -> bool:
        return self._work is not None and not self._work.is_finished

    # --- proposing -------------------------------------------------------------------------------

    @work(exclusive=True, group="propose")
    async def propose(self) -> None:
        self.outcome = None
        self._show_text("")
        self._say("")
        self._show_header("proposing a compaction …")
        self._show_keys(WORKING)
        try:
            start = await start_compaction(self.runner.runtime, self.wish)
            self.outcome = await run_compaction(
                self.runner.runtime, self.wish, start, self._tell_round
            )
        except asyncio.CancelledError:
            self._show_header("stopped; nothing was stored")
            raise
        except RecollectError as error:
            self._show_header("no proposal")
            self._say(str(error))
        else:
            self._show_outcome(self.outcome)
        finally:
            self._show_keys(KEYS)

    def _tell_round(self, number: int, count: int) -> None:
        part = f", part {number} of {count}" if count > 1 else ""
        self._show_header(f"the model writes a snapshot{part} …")

    def _show_outcome(self, outcome: CompactionOutcome) -> None:
        if not outcome.proposal.succeeded:
            self._show_header("no proposal")
            self._say(explain_failure(outcome, REMEDIES))
            return
        self._show_text(outcome.proposal.compaction.snapshot)
        self._show_summary()

    def _show_summary(self) -> None:
        outcome = self.outcome
        if outcome is None or not outcome.proposal.succeeded:
            return
        goal = f" (target {outcome.target:,})" if outcome.proposal.target == outcome.target else ""
        lines = [f"would compact: {describe_change(outcome.proposal)}{goal}"]
        lines += [f"{label:<8}  {text}" for label, text in describe_parts(outcome)]
        if limits := self._describe_limits():
            lines.append(limits)
        small = self.size.height < 14
        self._show_header("\n".join(lines[:1] if small else lines))

    def _describe_limits(self) -> str:
        since, until = self.wish.since, self.wish.until
        begins = f"replaced from {self._prompt(since)} on" if since else ""
        ends = f"{self._prompt(until)} and what comes after it stay" if until else ""
        return "; ".join(filter(None, (begins, ends)))

    def _prompt(self, entry: str) -> str:
        """A limit in the user's own words."""
        view = self.outcome.view if self.outcome is not None else None
        at = view.log.position(entry, view.n) if view is not None else None
        body = view.log.entries[at].body if view is not None and at is not None else None
        said = summarize(body) if isinstance(body, Message) else handle_of(entry)
        return f"“{truncate(said, LIMIT_WIDTH)}”"

    def on_resize(self, event: Resize) -> None:
        del event
        self._show_summary()

    # --- what the user does ----------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The snapshot to store: as it was proposed, unless the user changed it."""
        assert self.outcome is not None
        text = self.area.text
        return self.outcome.proposal.compaction.snapshot if text == self.shown else text

    @work(exclusive=True, group="apply")
    async def action_apply(self) -> None:
        outcome, runtime = self.outcome, self.runner.runtime
        if outcome is None or not outcome.proposal.succeeded:
            self._say("there is nothing to apply")
            return
        self.workers.cancel_group(self, "count")  # it would say something else in a moment
        proposal, text = outcome.proposal, self.text
        try:
            applied = await self.runner.edit(
                lambda session: apply_preview(runtime, session, proposal, text), "compact"
            )
        except RecollectError as error:
            self._say(str(error))
            return
        made = outcome._replace(proposal=applied)
        if not applied.succeeded:
            self._say(f"not stored: {applied.compaction.reason}")
            return
        self.runner.notify(NoticeGiven(compacted_text(made), "info"))
        self.dismiss()

    def _loses_nothing(self, key: str) -> bool:
        """Whether the text is as it was proposed, or the user insists."""
        if self.outcome is None or self.area.text == self.shown or self._warned == key:
            self._warned = ""
            return True
        self._warned = key
        self.workers.cancel_group(self, "count")
        self._say(f"your changes to the text would be lost: {key} again goes on, a applies them")
        return False

    def action_edit(self) -> None:
        self._warned = ""
        if self.outcome is not None and self.outcome.proposal.succeeded:
            self._allow_editing(allowed=True)
            self.area.focus()
            self._show_keys(EDITING)

    @on(TextArea.Changed)
    def _changed(self) -> None:
        if self.outcome is not None and not self.area.read_only:
            self._count()

    @work(exclusive=True, group="count")
    async def _count(self) -> None:
        """What the session comes to with the text as it is now."""
        outcome = self.outcome
        if outcome is None:
            return
        proposal, text = outcome.proposal, self.text
        await asyncio.sleep(0.1)  # while somebody types
        tokens = await asyncio.to_thread(outcome.view.log.counter.text, text)
        rest = proposal.compaction.tokens_after - proposal.report.snapshot_tokens
        self._say(f"snapshot {tokens:,} tokens; {rest + tokens:,} afterwards")

    def action_instructions(self) -> None:
        if not self._loses_nothing("i"):
            return
        field = self.query_one("#instructions", Input)
        field.value = self.wish.instructions
        field.add_class("open")
        field.focus()

    @on(Input.Submitted, "#instructions")
    def _instructed(self, event: Input.Submitted) -> None:
        event.stop()
        self.wish = self.wish._replace(instructions=event.value.strip())
        self._close_field()
        self._work = self.propose()

    def action_choose(self, which: str) -> None:
        if self._loses_nothing("r" if which == "until" else "b"):
            self._choose(which)

    @work(exclusive=True, group="choose")
    async def _choose(self, which: str) -> None:
        title = {
            "until": "keep everything from this prompt on (tokens from there to the end)",
            "since": "begin the replaced part with this prompt (tokens from there to the end)",
        }[which]
        chosen = self.wish.until if which == "until" else self.wish.since
        view = opened_session(self.runner).view()
        found = await self.app.push_screen_wait(PromptChoice(title, view, chosen or ""))
        if found is None:
            return
        limit = found or None
        self.wish = (
            self.wish._replace(until=limit) if which == "until" else self.wish._replace(since=limit)
        )
        self._work = self.propose()

    def action_undo(self) -> None:
        if self._loses_nothing("u"):
            self._undo()

    @work(exclusive=True, group="apply")
    async def _undo(self) -> None:
        try:
            self._say(await undo_compaction(self.runner))
        except RecollectError as error:
            self._say(str(error))
            return
        self._work = self.propose()

    def action_leave(self) -> None:
        if self.query_one("#instructions", Input).has_class("open"):
            self._close_field()
        elif not self.area.read_only:
            self._allow_editing(allowed=False)
            self._show_keys(KEYS)
        elif self.proposing and self._work is not None:
            self._work.cancel()
        elif self._loses_nothing("Esc"):
            self.dismiss()

    def _close_field(self) -> None:
        self.query_one("#instructions", Input).remove_class("open")
        self.area.focus()

    # --- what is shown ---------------------------------------------------------------------------

    def _show_text(self, snapshot: str) -> None:
        self._allow_editing(allowed=False)
        self.area.load_text(sanitize(snapshot))
        self.shown = self.area.text

    def _allow_editing(self, *, allowed: bool) -> None:
        self.area.read_only = not allowed
        self.area.set_class(allowed, "editing")

    def _show_header(self, text: str) -> None:
        width = max(10, self.size.width - 2)
        lines = [truncate(line, width) for line in sanitize(text).split("\n")]
        self.query_one("#header", Static).update("\n".join(lines))

    def _say(self, text: str) -> None:
        line = self.query_one("#said", Static)
        line.update(one_line(text))
        line.display = bool(text)

    def _show_keys(self, keys: tuple[str, ...]) -> None:
        self.query_one(KeyLine).show(*keys)
