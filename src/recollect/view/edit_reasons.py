"""Why an edit was made when it was, in words that are true of whatever the log cannot tell apart.

A compaction records what began it, not what was behind that. If the provider refused the request
before it, the log has a note that says so; otherwise only our own count exceeded the window.
"""

from __future__ import annotations

import re

from recollect.entries import Compaction, CompactionTrigger, Elide, Entry, Message, Note, handle_of
from recollect.errors import OVERFLOW_REMEDY
from recollect.view.curation import is_spoken
from recollect.view.entry_log import EntryLog

BUILT_BY_CODE = "built by code: "  # begins the reason why no model wrote a snapshot
REFUSED = "the provider refused the request as too long"
_TRIGGERS: dict[CompactionTrigger, str] = {
    "auto": "over the threshold",
    "manual": "by hand",
    "overflow": "the context did not fit the window",
    "import": "by the program it was imported from",
}
_ID = re.compile(r"\b[0-9a-f]{32}\b")


def reason_of(log: EntryLog, edit: Entry) -> str:
    """Why an edit was made when it was; empty if it does not say."""
    match edit.body:
        case Elide(reason=reason):
            return reason
        case Compaction(trigger="auto" | "overflow") if _was_refused(log, log.at[edit.id]):
            return REFUSED
        case Compaction(trigger=trigger):
            return _TRIGGERS[trigger]
    return ""


def explain_compaction(log: EntryLog, edit: Entry) -> str:
    """Why it was made, why no model wrote its snapshot, and which pins it could not keep."""
    body, parts = edit.body, [reason_of(log, edit)]
    if isinstance(body, Compaction):
        if trouble := why_built_by_code(body):
            parts.append(f"{BUILT_BY_CODE}{trouble}")
        elif body.trigger == "overflow":
            parts.append(with_handles(body.reason))
    return "; ".join(filter(None, parts))


def why_built_by_code(compaction: Compaction) -> str:
    """Why code built a snapshot that a model was to write; empty if that is not so."""
    if compaction.status != "COMPRESSED":
        return ""
    before, mark, trouble = compaction.reason.partition(BUILT_BY_CODE)
    return trouble if mark and (not before or before.endswith("; ")) else ""


def with_handles(text: str) -> str:
    """A text for users, with short handles instead of the ids of entries."""
    return _ID.sub(lambda found: handle_of(found[0]), text)


def _was_refused(log: EntryLog, position: int) -> bool:
    """Whether the provider refused the request before this entry, and nothing was said since."""
    for at in range(position - 1, -1, -1):
        body = log.entries[at].body
        if isinstance(body, Note) and body.level == "error":
            return body.text.endswith(OVERFLOW_REMEDY)
        if isinstance(body, Message) and (body.role == "model" or is_spoken(body)):
            return False
    return False
