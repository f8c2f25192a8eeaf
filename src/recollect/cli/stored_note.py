"""After a failure: that nothing is lost, and how to go on."""

from __future__ import annotations

from recollect.cli.console import print_note
from recollect.display.stored_session import StoredSession
from recollect.errors import RecollectError, StoreReplaced


def print_stored(session: StoredSession, error: RecollectError) -> None:
    if isinstance(error, StoreReplaced):
        return  # it says itself where everything is, and nothing can be continued before
    if hint := session.resume_hint():
        print_note(f"everything so far is stored · {hint}")
