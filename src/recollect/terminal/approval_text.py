"""What is asked about a tool call, in full, for the screen and for plain lines."""

from __future__ import annotations

from rich.text import Text

from recollect.display.display_text import one_line, sanitize
from recollect.runtime.approval_preview import ApprovalPreview

MAX_SHOWN = 20_000  # characters of one argument


def approval_text(shown: ApprovalPreview) -> Text:
    """What is asked, in full; nothing in it can move the cursor."""
    text = Text()

    def row(name: str, value: str, style: str = "") -> None:
        text.append(f"{name} ", "dim")
        text.append(_safe(value) + "\n", style)

    if shown.command:
        row("$", shown.command, "bold")
        if shown.normal_form:
            row("which means:", shown.normal_form, "bold")
        row("in", shown.folder)
        row("sandbox:", shown.sandbox)
    if shown.failure:
        row("it would fail:", shown.failure, "yellow")
    for name, value in shown.arguments:
        row(f"{one_line(name)}:", value)
    for line in _safe(shown.diff).split("\n") if shown.diff else ():
        text.append(line + "\n", _diff_style(line))
    text.append(_safe(shown.reason), "dim")
    return text


def _safe(text: str) -> str:
    left = len(text) - MAX_SHOWN
    cut = f"\n… {left:,} more characters" if left > 0 else ""
    return sanitize(text[:MAX_SHOWN]).expandtabs(4) + cut


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def approval_title(shown: ApprovalPreview) -> str:
    if shown.command:
        return "Run this command?"
    return "Change this file?" if shown.diff else f"Call {one_line(shown.tool)}?"
