"""What a run does besides talking and calling tools, in one calm line each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from recollect.agent.corrections import CorrectionRequested
from recollect.agent.fit_context import ContextReduced
from recollect.agent.run_events import LoopFound, WindowLearned
from recollect.display.display_text import one_line, truncate
from recollect.display.reduction_notes import reduction_notes
from recollect.models.model_protocol import Retrying
from recollect.redaction import redact
from recollect.terminal.block import Level
from recollect.terminal.terminal_events import TerminalEvent

MAX_REASON = 300  # characters


class RunNotice(NamedTuple):
    text: str
    level: Level = "info"
    about: str = ""  # a newer one about the same takes its place


def run_notices(event: TerminalEvent, *, in_log: bool = False) -> Iterator[RunNotice]:
    """`in_log`: the session's own entries have said already that the context got smaller."""
    match event:
        case Retrying(reason=reason, delay=delay, attempt=attempt):
            again = f"in {delay:.0f} s" if delay >= 1 else "now"
            failed = f"the request failed: {_short(reason)}"
            yield RunNotice(f"{failed}; trying again {again}, attempt {attempt + 1}", about="retry")
        case CorrectionRequested(problems=problems, attempt=attempt, most=most):
            # what follows is the model's to read, such as the names of all tools
            why = _short("; ".join(problem.partition("; ")[0] for problem in problems))
            yield RunNotice(f"{why}; asking the model again, {attempt} of {most}")
        case ContextReduced():
            notes = list(reduction_notes(event))
            reduced = event.after < event.before
            for number, note in enumerate(notes):
                if not (in_log and reduced and not number):
                    yield RunNotice(redact(note), "info" if reduced and not number else "warning")
        case WindowLearned(model=model, window=window):
            yield RunNotice(f"the window of {one_line(model)} is only {window:,} tokens; noted")
        case LoopFound(loop=loop, stopped=stopped):
            if not stopped:  # else the log says so
                what = truncate(one_line(redact(loop.what)), 120)
                yield RunNotice(f"the model repeats itself and was told so: {what}", "warning")
        case _:
            return


def _short(text: str) -> str:
    return truncate(one_line(redact(text)), MAX_REASON)
