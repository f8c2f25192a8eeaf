"""Asks the user about a tool call: what it would do exactly, and how long a yes lasts."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from recollect.display.display_text import sanitize
from recollect.terminal.block_rendering import call_title
from recollect.terminal.terminal_events import ApprovalAnswer, ApprovalAsked
from recollect.terminal.transcript_blocks import Block
from recollect.toolkinds import parse_arguments


def describe_call(asked: ApprovalAsked) -> str:
    """What is asked, in full: the command and what it means, or the change as lines."""
    request = asked.request
    given = parse_arguments(request.call.arguments) or {}
    block = Block("", "tool", request.call.arguments, name=request.call.name)
    lines = [call_title(block)]
    if command := given.get("command"):
        lines = [f"$ {command}"]
    if request.normal_form:
        lines.append(f"it means: {request.normal_form}")
    for name, sign in (("old_string", "-"), ("new_string", "+"), ("content", "+")):
        value = given.get(name)
        if isinstance(value, str):
            lines += [f"{sign}{line}" for line in value.split("\n")[:40]]
    return sanitize("\n".join([*lines, request.reason]))


class ApprovalPanel(Vertical):
    DEFAULT_CSS = """
    ApprovalPanel { height: auto; max-height: 60%; border: round $warning; padding: 0 1; }
    ApprovalPanel OptionList { height: auto; border: none; }
    ApprovalPanel #call { height: auto; max-height: 12; overflow-y: auto; }
    """

    def __init__(self, asked: ApprovalAsked) -> None:
        super().__init__()
        self.asked = asked

    def compose(self) -> ComposeResult:
        yield Static(describe_call(self.asked), id="call", markup=False)
        rules = ", ".join(self.asked.request.rules)
        options = [
            Option("Yes, once", "once"),
            Option("Yes, for this session", "session"),
        ]
        if rules:
            options.append(Option(sanitize(f"Always: store the rule {rules}"), "always"))
        options.append(Option("No", "no"))
        yield OptionList(*options, markup=False)
        yield Input(placeholder="No, because … (told to the model)", id="reason")

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_id == "once":
            self.decide(ApprovalAnswer(allowed=True))
        elif event.option_id == "session":
            self.decide(ApprovalAnswer(allowed=True, lasts="session"))
        elif event.option_id == "always":
            self.decide(ApprovalAnswer(allowed=True, lasts="always"))
        else:
            self.decide(ApprovalAnswer(allowed=False))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.decide(ApprovalAnswer(allowed=False, reason=event.value.strip()))

    def decide(self, answer: ApprovalAnswer) -> None:
        if not self.asked.answer.done():
            self.asked.answer.set_result(answer)
        self.remove()
