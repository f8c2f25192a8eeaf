"""The entries of Gemini CLI's messages, made one message at a time."""

from __future__ import annotations

from recollect.entries import Entry
from recollect.transcripts.gemini_cli.message_records import RECORD_FORMAT
from recollect.transcripts.gemini_cli.message_tree import MessageLoader, MessageTree
from recollect.transcripts.plain_record import EntryPosition, read_plain_record, record_key
from recollect.transcripts.turn_walk import PrecedingEntry


class MessageEntries:
    """Implements `turn_walk.TurnBuilder`."""

    def __init__(self, tree: MessageTree, loader: MessageLoader, session: str, start: int) -> None:
        self.tree, self._loader, self._session, self._start = tree, loader, session, start
        self._answered = tree.index.answered

    def build(self, turn: int, above: PrecedingEntry | None) -> list[Entry]:
        record = self._loader.load(self.tree.messages[turn])
        key = record_key(RECORD_FORMAT, self._session, above.id if above else "", record)
        parent, time = (above.id, above.time) if above else (None, self._start)
        at = EntryPosition(key, parent, time)
        return read_plain_record(RECORD_FORMAT, record, at, self._answered)

    def size(self, turn: int) -> int:
        return self._loader.size(self.tree.messages[turn])
