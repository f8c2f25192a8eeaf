"""JSON lines of Gemini CLI as no program writes them: messages that are written again, taken back
and repeated by checkpoints, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from recollect.entries import ToolResult
from recollect.transcripts.gemini_cli.message_records import parse_parts
from recollect.transcripts.gemini_cli.session_file import FILE_FORMAT
from recollect.transcripts.json_values import Json, objects_in
from recollect.transcripts.transcript import Transcript

IDS = st.sampled_from([*"abcd", "", 7, None])
CALLS = st.sampled_from(["c1", "c2", "c3"])
TIMES = st.sampled_from(["2026-11-01T10:00:00Z", "2026-11-02T10:00:00.5Z", None, "never"])
TEXTS = st.sampled_from([{"text": "x"}, {"text": "é\ud800"}, "said", {"inlineData": 1}])


def messages(names: st.SearchStrategy[str], **more: Any) -> st.SearchStrategy[Json]:
    """`names`: of tools."""
    responses = st.builds(
        lambda id_, name: {"functionResponse": {"id": id_, "name": name, "response": {}}},
        CALLS,
        names,
    )
    calls: st.SearchStrategy[Json] = st.fixed_dictionaries(
        {
            "id": CALLS | st.none(),
            "name": names,
            "status": st.sampled_from(["success", "scheduled"]),
        },
        optional={
            "timestamp": TIMES,
            "result": st.lists(responses, max_size=1),
            "args": st.just({}),
        },
    )
    return st.fixed_dictionaries(
        {
            "id": IDS,
            "type": st.sampled_from(["user", "gemini", "gemini", "info"]),
            "timestamp": TIMES,
            "content": st.sampled_from(["said", "more", ""])
            | st.lists(TEXTS | responses, max_size=2),
        },
        optional={
            "toolCalls": st.lists(calls, max_size=2),
            "resultDisplay": st.just(1.5),
            **more,
        },
    )


PLAIN = messages(st.sampled_from(["read_file", "shell"]))
MESSAGES = messages(
    st.sampled_from(["read_file", ""]),
    recollect=st.sampled_from([1, {}, {"id": "0" * 32}]),
)
CHANGES = st.one_of(
    st.builds(lambda id_: {"$rewindTo": id_}, IDS),
    st.builds(lambda messages: {"$set": {"messages": messages}}, st.lists(PLAIN, max_size=4)),
    st.just({"$set": {"summary": "A title", "lastUpdated": "2026-11-02T10:00:00Z"}}),
    st.just({"sessionId": "g", "projectHash": "h", "messages": []}),
    st.just({"strange": True}),
)
LINES = st.lists(st.one_of(PLAIN, PLAIN, PLAIN, CHANGES), max_size=12)
ODD_LINES = st.lists(st.one_of(PLAIN, MESSAGES, CHANGES), max_size=12)
HEADER = {"sessionId": "g", "projectHash": "h", "startTime": "2026-11-01T00:00:00Z"}


class WholeLines:
    """The session with all of its records in memory, as the first version read it."""

    def __init__(self) -> None:
        self._header: Json = {}
        self._records: list[Json] = []
        self._parents: list[int | None] = []
        self._current: dict[str, int] = {}
        self._last: int | None = None

    def read(self, lines: Sequence[Json]) -> Transcript:
        for record in lines:
            if "$rewindTo" in record:
                self._rewind(record["$rewindTo"])
            elif isinstance(record.get("$set"), dict):
                self._change(record["$set"])
            elif "type" in record and "id" in record:
                self._add(record)
            elif "sessionId" in record or "projectHash" in record:
                self._change(record)
        answered = frozenset(
            part.call_id
            for record in self._records
            if record.get("type") == "user"
            for part in parse_parts(record.get("content"))
            if isinstance(part, ToolResult)
        )
        return FILE_FORMAT.read(self._header, self._records, (self._parents, self._last), answered)

    def _add(self, record: Json) -> None:
        id_ = record.get("id")
        if isinstance(id_, str) and id_ in self._current:
            self._records[self._current[id_]] = record
            return
        self._parents.append(self._last)
        self._last = len(self._records)
        self._records.append(record)
        if isinstance(id_, str):
            self._current[id_] = self._last

    def _rewind(self, id_: object) -> None:
        known = self._current.get(id_) if isinstance(id_, str) else None
        self._last = None if known is None else self._parents[known]
        while self._current:
            if self._current.popitem()[0] == id_:
                break

    def _change(self, fields: Json) -> None:
        self._header |= {key: item for key, item in fields.items() if key != "messages"}
        if isinstance(fields.get("messages"), list):
            self._current, self._last = {}, None
            for record in objects_in(fields["messages"]):
                self._add(record)
