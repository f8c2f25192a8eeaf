"""What `recollect -p` says on stderr when it makes the context smaller: by how much, because of
whom, and what the user would not expect."""

from __future__ import annotations

from collections.abc import Iterator

from recollect.agent.fit_context import ContextReduced
from recollect.display.display_text import truncate
from recollect.entries import handle_of
from recollect.view.edit_reasons import why_built_by_code

MAX_TROUBLE = 300  # characters of an error


def reduction_notes(event: ContextReduced) -> Iterator[str]:
    """One line for each."""
    if event.after < event.before:
        because = f", because {event.because}" if event.because else ""
        yield f"reduced the context: {event.before:,} → {event.after:,} tokens{because}"
    made = event.compaction
    if made is not None and (trouble := why_built_by_code(made)):
        yield f"code built the snapshot, because {truncate(trouble, MAX_TROUBLE)}"
    if made is not None and event.undone:
        over = "over its threshold; `context.threshold` sets that"
        why = over if made.trigger == "auto" else "too large for the window"
        undone = handle_of(event.undone)
        yield f"compacted again, although you undid {undone}: the context is {why}"
    if (cut := event.cut_prompt) is not None:
        name = handle_of(cut.entry)
        yield (
            f"your message has {cut.tokens:,} tokens and was cut to {cut.shown:,} to fit the "
            f"window; `recollect show {name} --full` shows all of it"
        )
