"""What is remembered of Gemini CLI's messages while a file is read: where each of them is, and
numbers.

A message is known by the order in which the file first had it. It is written again as it grows, and
its last state counts; a `$rewindTo` or a checkpoint (`$set` of messages) moves the place that the
next message follows, and takes nothing away.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from recollect.entries import ToolResult
from recollect.store.ids import is_id
from recollect.transcripts.gemini_cli.message_records import FINISHED, parse_parts
from recollect.transcripts.json_values import Json, objects_in
from recollect.transcripts.record_format import MARK_FIELD
from recollect.transcripts.run_order import NO_PARENT
from recollect.transcripts.timestamps import parse_time
from recollect.transcripts.transcript import ImportProblem

ALONE = -1  # in place of the position in a list
NO_TIME = -(2**63)


class MessageIndex:
    def __init__(self) -> None:
        self.header: Json = {}
        self.problems: list[ImportProblem] = []
        self.records = array("q")  # the record of the source that each is in
        self.positions = array("q")  # in the list of messages of that record
        self.parents = array("q")  # the message that each of them first followed
        self.last = NO_PARENT
        self.times, self.result_times = array("q"), array("q")
        self.have_results = bytearray()  # in a message of their own
        self.listed: dict[int, int] = {}  # by the record: how many messages are in its list
        self.is_ours = False  # whether an export of ours may be part of it
        self.names_calls = True  # whether every call and result has the name of its tool
        self.repeats_calls = False  # whether a message may have two results of one call
        self._answered: dict[int, tuple[str, ...]] = {}  # by the message that has the results
        self._current: dict[str, int] = {}  # by id, in order: not rewound, not replaced

    def __len__(self) -> int:
        return len(self.records)

    @property
    def answered(self) -> frozenset[str]:
        """Calls whose results are in a user's message of their own, as providers see them."""
        return frozenset(call for calls in self._answered.values() for call in calls)

    def add(self, number: int, line: int, value: Json) -> None:
        """A record of the source: a message, or what changes the session."""
        if "$rewindTo" in value:
            self._rewind(value["$rewindTo"])
        elif isinstance(value.get("$set"), dict):
            self.change(number, value["$set"])
        elif "type" in value and "id" in value:
            self._add_message(number, ALONE, value)
        elif "sessionId" in value or "projectHash" in value:
            self.change(number, value)
        else:
            reason = "a record of an unknown kind; stored with the source only"
            self.problems.append(ImportProblem(line, reason))

    def change(self, number: int, fields: Json, *, by_id: bool = True) -> None:
        """`by_id`: a message with the id of a current one is a later state of it."""
        self.header |= {key: item for key, item in fields.items() if key != "messages"}
        self.is_ours |= MARK_FIELD in fields
        if isinstance(fields.get("messages"), list):
            self._current, self.last = {}, NO_PARENT
            messages = objects_in(fields["messages"])
            self.listed[number] = len(messages)
            for position, message in enumerate(messages):
                self._add_message(number, position, message, by_id=by_id)

    def finish(self) -> None:
        """Forget what only the next record would need."""
        self._current.clear()

    def _add_message(self, number: int, at: int, value: Json, *, by_id: bool = True) -> None:
        id_, time = value.get("id"), parse_time(value.get("timestamp"))
        time = NO_TIME if time is None else time
        known = self._current.get(id_) if by_id and isinstance(id_, str) else None
        if known is None:
            known = len(self)
            self.parents.append(self.last)
            self.records.append(number)
            self.positions.append(at)
            self.times.append(time)
            self.result_times.append(NO_TIME)
            self.have_results.append(False)
            self.last = known
            if isinstance(id_, str):
                self._current[id_] = known
        else:
            self.records[known], self.positions[known], self.times[known] = number, at, time
            self.have_results[known] = False
            self._answered.pop(known, None)
        self.is_ours |= MARK_FIELD in value or is_id(id_)
        self._note_content(known, value)
        if "toolCalls" in value and value.get("type") == "gemini":
            self._note_results(known, value["toolCalls"])

    def _rewind(self, id_: object) -> None:
        """Take back that message and what came after; everything, if there is no such message."""
        known = self._current.get(id_) if isinstance(id_, str) else None
        self.last = NO_PARENT if known is None else self.parents[known]
        while self._current:
            if self._current.popitem()[0] == id_:
                break

    def _note_content(self, message: int, value: Json) -> None:
        content = value.get("content")
        if isinstance(content, str):
            return
        items = content if isinstance(content, list) else [content]
        if not any(isinstance(item, dict) and "functionResponse" in item for item in items):
            return
        results = [part for part in parse_parts(content) if isinstance(part, ToolResult)]
        self.names_calls &= all(result.name for result in results)
        if value.get("type") == "user":
            self._answered[message] = tuple(result.call_id for result in results)

    def _note_results(self, message: int, given: object) -> None:
        calls = objects_in(given)
        ids = {str(call.get("id")) for call in calls}
        self.repeats_calls |= len(ids) < len(calls)
        self.names_calls &= all(
            isinstance(call.get("name"), str) and call["name"] for call in calls
        )
        done = [call for call in calls if _has_result(call)]
        self.have_results[message] = bool(done)
        self.result_times[message] = _latest(call.get("timestamp") for call in done)


def _has_result(call: Json) -> bool:
    return call.get("result") is not None or call.get("status") in FINISHED


def _latest(given: Iterable[object]) -> int:
    times = [time for each in given if (time := parse_time(each)) is not None]
    return max(times, default=NO_TIME)
