"""Asks the user about a tool call, in the place of the prompt: what it would do exactly, and how
long a yes lasts.

A key that was meant for the prompt decides nothing: shortly after the user has typed, keys are not
taken. An answer never comes by itself.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Literal

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from recollect.display.display_text import one_line
from recollect.errors import RecollectError
from recollect.runtime.approval_preview import ApprovalPreview
from recollect.runtime.permission_policy import ApprovalAnswer
from recollect.terminal.approval_text import approval_lines, approval_title
from recollect.terminal.terminal_events import ApprovalAsked
from recollect.terminal.wrapped_lines import ReadLine, WrappedLines

_KEYS = "PgUp PgDn scroll · Esc interrupts"
QUIET_SECONDS = 0.5  # without a key, before keys count as an answer

ShowPreview = Callable[[], Awaitable[ApprovalPreview]]


class ApprovalPanel(Vertical):
    DEFAULT_CSS = """
    ApprovalPanel { height: auto; max-height: 75vh; border: round $warning; padding: 0 1; }
    ApprovalPanel { border-subtitle-color: $text-muted; }
    ApprovalPanel WrappedLines { height: auto; padding: 0; }
    ApprovalPanel OptionList, ApprovalPanel OptionList:focus {
        height: auto; border: none; padding: 0; background: transparent;
    }
    ApprovalPanel Input { display: none; }
    ApprovalPanel Input, ApprovalPanel Input:focus { border: none; height: 1; padding: 0; }
    """
    BINDINGS = [
        Binding("y", "answer('once')", "yes, this once"),
        Binding("s", "answer('session')", "yes, for this session"),
        Binding("a", "answer('always')", "yes, always: store the rule"),
        Binding("n", "answer('no')", "no"),
        Binding("r", "reason", "no, with a reason for the model"),
        Binding("escape", "back", "close the reason, or interrupt"),
        Binding("ctrl+c", "screen.interrupt", "interrupt"),
        Binding("pageup", "scroll_call(-1)", "scroll what is asked up"),
        Binding("pagedown", "scroll_call(1)", "scroll what is asked down"),
        Binding("shift+tab", "screen.next_mode", "next permission mode"),
    ]

    def __init__(self, asked: ApprovalAsked, preview: ShowPreview, typed_at: float = 0.0) -> None:
        super().__init__()
        self.asked, self._preview = asked, preview
        self.typed_at = typed_at  # when a key was pressed last

    def compose(self) -> ComposeResult:
        call = WrappedLines([ReadLine([("looking at what it would do", "dim")])])
        call.can_focus = False
        yield call
        yield OptionList(*self._options(), markup=False)
        yield Input(placeholder="why not? The model is told; Enter sends")

    def _options(self) -> list[Option]:
        request = self.asked.request
        exact = request.rules or request.call.name != "run_shell_command"
        session = "this session" if exact else "this session: this very command"
        options = [Option("y  Yes, once", "once"), Option(f"s  Yes, for {session}", "session")]
        if request.rules:
            rules = one_line(", ".join(f"`{rule}`" for rule in request.rules))
            options.append(Option(f"a  Yes, always: store {rules}", "always"))
        return [*options, Option("n  No", "no"), Option("r  No, with a reason", "reason")]

    def on_resize(self) -> None:
        """The call gets what the answers, the field for a reason and the border leave."""
        around = self.query_one(OptionList).option_count + 3
        self.query_one(WrappedLines).styles.max_height = max(
            1, self.app.size.height * 3 // 4 - around
        )

    def on_mount(self) -> None:
        self.border_title = "May this run?"
        self.border_subtitle = _KEYS
        self.query_one(OptionList).focus()
        self._show()

    @work
    async def _show(self) -> None:
        try:
            shown = await self._preview()
        except RecollectError as error:
            reason = f"{self.asked.request.reason}\n{error}"
            shown = ApprovalPreview(self.asked.request.call.name, reason)
        self.query_one(WrappedLines).show(approval_lines(shown))
        self.border_title = approval_title(shown)

    # --- keys ------------------------------------------------------------------------------------

    def _is_quiet(self) -> bool:
        """Whether the user has not typed just now; each key begins the wait again."""
        quiet = time.monotonic() - self.typed_at > QUIET_SECONDS
        if not quiet:
            self.typed_at = time.monotonic()
        return quiet

    @property
    def focused_input(self) -> Input | None:
        field = self.query_one(Input)
        return field if field.display else None

    def action_answer(self, lasts: Literal["once", "session", "always", "no"]) -> None:
        if not self._is_quiet() or (lasts == "always" and not self.asked.request.rules):
            return
        if lasts == "no":
            self.decide(ApprovalAnswer(allowed=False))
        else:
            self.decide(ApprovalAnswer(allowed=True, lasts=lasts))

    def action_reason(self) -> None:
        if self._is_quiet():
            self.query_one(OptionList).display = False  # the field is in their place
            field = self.query_one(Input)
            field.display = True
            field.focus()
            self.border_subtitle = "Enter sends · Esc goes back"

    def action_back(self) -> None:
        if (field := self.focused_input) is not None:
            field.display = False
            options = self.query_one(OptionList)
            options.display = True
            options.focus()
            self.border_subtitle = _KEYS
        else:
            self.screen.call_later(self.screen.run_action, "interrupt")

    def action_scroll_call(self, pages: int) -> None:
        scroll = self.query_one(WrappedLines)
        scroll.scroll_relative(y=pages * max(1, scroll.size.height - 1), animate=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_id == "reason":
            self.action_reason()
        elif event.option_id in ("once", "session", "always", "no"):
            self.action_answer(event.option_id)  # type: ignore[arg-type]

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.decide(ApprovalAnswer(allowed=False, reason=event.value.strip()))

    def decide(self, answer: ApprovalAnswer) -> None:
        if not self.asked.answer.done():
            self.asked.answer.set_result(answer)
