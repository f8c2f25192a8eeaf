"""The tree that Gemini CLI's messages form. Two with one content that follow the same message are
one: a checkpoint repeats the messages that stay, and what was taken back may be said again."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence

from recollect.transcripts.gemini_cli.message_index import ALONE, NO_TIME, MessageIndex
from recollect.transcripts.json_values import Json, canonical_json, object_or_empty, objects_in
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.run_order import NO_PARENT
from recollect.transcripts.session_entries import TurnCounts

_NUMBER_BYTES = 8


class MessageLoader:
    """Reads messages again. The list that the last one was in stays in memory: the next one is
    mostly in it too."""

    def __init__(self, records: RecordSource, index: MessageIndex) -> None:
        self._records, self._index = records, index
        self._list: list[Json] = []
        self._listed = -1  # the record that has it

    def load(self, message: int) -> Json:
        record, position = self._index.records[message], self._index.positions[message]
        if position == ALONE:
            return self._records.load(record)
        if record != self._listed:
            value = self._records.load(record)
            fields = object_or_empty(value.get("$set")) or value
            self._list, self._listed = objects_in(fields.get("messages")), record
        return self._list[position]

    def size(self, message: int) -> int:
        record = self._index.records[message]
        return self._records.size(record) // self._index.listed.get(record, 1)


class MessageTree:
    """Implements `turn_walk.TurnTree`: a turn is a message with the results of its calls."""

    def __init__(self, index: MessageIndex, records: RecordSource) -> None:
        self.index = index
        self.messages, self.parents = array("q"), array("q")  # of each turn
        turns = self._merge(records)
        self.leaf = None if index.last == NO_PARENT else turns[index.last]

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def order(self) -> Sequence[int]:
        return range(len(self))

    def _merge(self, records: RecordSource) -> array[int]:
        """The turn of each message."""
        turns, known = array("q"), dict[bytes, int]()  # by the parent and the content
        # two lists are compared: one loader would read both anew for each message
        news, olds = (MessageLoader(records, self.index) for _ in range(2))
        first = array("q", [NO_PARENT]) * (
            len(self.index) + 1
        )  # turn after each; at -1, after none
        is_known = bytearray(len(first))
        for message, above in enumerate(self.index.parents):
            parent = NO_PARENT if above == NO_PARENT else turns[above]
            turn, sibling = len(self), first[parent]
            if sibling == NO_PARENT:
                first[parent] = turn
            else:
                if not is_known[parent]:
                    is_known[parent] = True
                    known[_content(parent, olds.load(self.messages[sibling]))] = sibling
                turn = known.setdefault(_content(parent, news.load(message)), turn)
            turns.append(turn)
            if turn == len(self):
                self.messages.append(message)
                self.parents.append(parent)
        return turns


def _content(parent: int, message: Json) -> bytes:
    text = canonical_json(message).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=16).digest()
    return parent.to_bytes(_NUMBER_BYTES, "big", signed=True) + digest


def count_entries(tree: MessageTree, start: int) -> TurnCounts | None:
    """How many entries each message has, as far as it follows from what is known of them; None if
    the entries have to be made for it."""
    index = tree.index
    if index.repeats_calls or index.answered:
        return None
    counts, ends = bytearray(len(tree)), array("q", [start]) * len(tree)
    latest = NO_TIME
    for turn, (message, parent) in enumerate(zip(tree.messages, tree.parents, strict=True)):
        time, has_results = index.times[message], index.have_results[message]
        if time == NO_TIME:
            time = start if parent == NO_PARENT else ends[parent]
        result_time = index.result_times[message] if has_results else NO_TIME
        counts[turn] = 1 + has_results
        ends[turn] = time if result_time == NO_TIME else result_time
        latest = max(latest, time, ends[turn])
    return TurnCounts(counts, latest if counts else None)
