"""What is remembered of each of Claude Code's records while a file is read: numbers in arrays, so
that a record costs some hundred bytes however long it is.

Every record with a uuid counts once. Sidechains are left out, unless there is nothing else. Records
are known by their position among those that count; uuids, also those that are only mentioned, by
the number under which they first occurred.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from recollect.transcripts.claude_code.content_blocks import content_blocks
from recollect.transcripts.json_values import Json, object_or_empty, string_or_empty, strings_in
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.timestamps import parse_time

NONE = -1  # in place of a position or a number
ODD = -2  # a parent that is not even a string
NO_TIME = -(2**63)
_KEY_BITS = 40
_KEY_MASK = (1 << _KEY_BITS) - 1
TITLES = (  # the first that a file has wins
    ("custom-title", "customTitle"),
    ("agent-name", "agentName"),
    ("ai-title", "aiTitle"),
    ("summary", "summary"),
)


# what a record is; no enumeration, because comparing with its members takes several times as long
USER, ASSISTANT, BOUNDARY, SUMMARY, MICROCOMPACT, OTHER = range(6)
_SYSTEM = {"compact_boundary": BOUNDARY, "microcompact_boundary": MICROCOMPACT}


class MarkedRecord(NamedTuple):
    """A record of a sidechain among those of the session that called it."""

    number: int
    uuid: str
    parent: str
    agent: str


class QuotedRecord(NamedTuple):
    """A record of a sidechain that a progress report quotes."""

    number: int
    uuid: str
    agent: str
    call: str


class FileFacts:
    """What a file says about its session; of most fields the first record that has one counts."""

    def __init__(self) -> None:
        self.session: object = None
        self.agent: object = ""
        self.start = 0
        self.folder: str | None = None
        self._has_session = self._has_agent = False
        self._titles: dict[str, str] = {}

    def note(self, value: Json) -> None:
        if not self._has_agent and "agentId" in value:
            self.agent, self._has_agent = value["agentId"], True
        if not (self._has_session and self.start and self.folder is not None):
            self._note_first(value)
        if (kind := value.get("type")) not in ("user", "assistant"):
            for titled, field in TITLES:
                given = value.get(field, value.get("title"))
                if kind == titled and isinstance(given, str) and given.strip():
                    self._titles[titled] = given

    def _note_first(self, value: Json) -> None:
        if not self._has_session and "sessionId" in value:
            self.session, self._has_session = value["sessionId"], True
        if not self.start:
            self.start = parse_time(value.get("timestamp")) or 0
        if self.folder is None and isinstance(folder := value.get("cwd"), str):
            self.folder = folder

    @property
    def title(self) -> str:
        return next((self._titles[kind] for kind, _ in TITLES if kind in self._titles), "")


class CallNames:
    """The tool of each call, and the record that stands for the reply that made it."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}  # the number of the name, and the record
        self._names: dict[str, int] = {}
        self._repeated: list[tuple[str, int, str]] = []  # call, record, name

    def add(self, call: str, key: int, name: str, record: int) -> None:
        if call in self._calls:
            self._repeated.append((call, record, name))
        else:
            self._calls[call] = self._encode(name, key)

    def _encode(self, name: str, key: int) -> int:
        return self._names.setdefault(name, len(self._names)) << _KEY_BITS | key

    def reply(self, call: str) -> int | None:
        known = self._calls.get(call)
        return None if known is None else known & _KEY_MASK

    def settle(self, turn_of: array[int]) -> None:
        """Of calls with one id, the last one gives the name, in the order of the turns."""
        last: dict[str, tuple[int, int]] = {}
        for call, record, name in self._repeated:
            key = self._calls[call] & _KEY_MASK
            place = (turn_of[record], record)
            if place >= last.get(call, (turn_of[key], key)):
                last[call] = place
                self._calls[call] = self._encode(name, key)
        self._repeated.clear()
        self._list = list(self._names)

    def get(self, call: str) -> str:
        known = self._calls.get(call)
        return "" if known is None else self._list[known >> _KEY_BITS]


class RecordIndex:
    def __init__(self) -> None:
        self.facts, self.calls = FileFacts(), CallNames()
        self.is_sidechain: bool | None = None  # whether there is nothing but a sidechain
        self.is_mixed = False  # it began like one, and is none
        self.marked: list[MarkedRecord] = []
        self.quoted: list[QuotedRecord] = []
        self.names: dict[str, int] = {}  # uuids
        self.record_of = array("q")  # by the number of its uuid
        self.numbers = array("q")  # in the source
        self.given = array("q")  # the number of the uuid of the parent, as the file gives it
        self.keys = array("q")  # the record that stands for its turn
        self.times = array("q")
        self.kinds, self.are_meta = bytearray(), bytearray()
        self.odd_parents: dict[int, str] = {}
        self.waiting: dict[int, tuple[str, ...]] = {}  # results that came before their calls
        self.preserved: dict[int, tuple[int, ...]] = {}  # uuids that a boundary keeps
        self.last_kept: dict[int, int] = {}  # by the boundary
        self.keep_preceding: set[int] = set()
        self.is_plain = True  # the number of entries of each turn follows from its records' kinds
        self._replies: dict[str, int] = {}
        self._answered: set[int] = set()

    def add(self, number: int, value: Json) -> None:
        self.facts.note(value)
        if value.get("type") == "progress":
            self._add_quoted(number, value)
        uuid = value.get("uuid")
        if not isinstance(uuid, str):
            return
        is_sidechain = value.get("isSidechain") is True
        if self.is_sidechain is None:
            self.is_sidechain = is_sidechain
        if is_sidechain and not self.is_sidechain:
            if uuid:
                above, agent = (string_or_empty(value.get(f)) for f in ("parentUuid", "agentId"))
                self.marked.append(MarkedRecord(number, uuid, above, agent))
        elif self.is_sidechain and not is_sidechain:
            self.is_mixed = True
        elif self.record_of[name := self._name(uuid)] == NONE:
            self._add_record(number, value)
            self.record_of[name] = len(self.numbers) - 1

    def _add_quoted(self, number: int, value: Json) -> None:
        data = object_or_empty(value.get("data"))
        agent, message = string_or_empty(data.get("agentId")), data.get("message")
        if agent and isinstance(message, dict) and isinstance(uuid := message.get("uuid"), str):
            call = string_or_empty(value.get("parentToolUseID"))
            self.quoted.append(QuotedRecord(number, uuid, agent, call))

    def _name(self, uuid: str) -> int:
        number = self.names.setdefault(uuid, len(self.names))
        if number == len(self.record_of):
            self.record_of.append(NONE)
        return number

    def _add_record(self, number: int, value: Json) -> None:
        record, kind = len(self.numbers), _kind(value)
        parent = value.get("parentUuid") or value.get("logicalParentUuid")
        given = NONE if parent is None else ODD
        if isinstance(parent, str):
            given = self._name(parent)
        elif parent is not None:
            self.odd_parents[record] = repr(parent)[:60]
        if kind == BOUNDARY:
            self._add_boundary(record, value)
        about = value.get("summarizeMetadata")
        if isinstance(about, dict) and about.get("direction") == "from":
            # a `/rewind` may summarise only what followed some message: everything before it stays
            self.keep_preceding.add(record)
        time = parse_time(value.get("timestamp"))
        self.numbers.append(number)
        self.given.append(given)
        self.keys.append(self._key(record, kind, value))
        self.times.append(NO_TIME if time is None else time)
        self.kinds.append(kind)
        self.are_meta.append(value.get("isMeta") is True)

    def _add_boundary(self, record: int, value: Json) -> None:
        kept = tuple(map(self._name, _preserved_uuids(value)))
        self.preserved[record] = kept
        # only from records before the boundary: it cannot have kept what was yet to come
        before = (self.record_of[name] for name in reversed(kept))
        if (last := next((found for found in before if found != NONE), NONE)) != NONE:
            self.last_kept[record] = last

    def _key(self, record: int, kind: int, value: Json) -> int:
        message = object_or_empty(value.get("message"))
        if kind == ASSISTANT:
            shared = message.get("id")
            key = self._replies.setdefault(shared, record) if isinstance(shared, str) else record
            for block in content_blocks(message.get("content")):
                if block.get("type") == "tool_use" and isinstance(call := block.get("id"), str):
                    self.calls.add(call, key, string_or_empty(block.get("name")), record)
            return key
        if kind == USER:
            return self._user_key(record, message.get("content"))
        self.is_plain = self.is_plain and kind != MICROCOMPACT
        return NONE if kind == OTHER else record

    def _user_key(self, record: int, content: object) -> int:
        """Results belong to the reply whose first call they answer."""
        if not isinstance(content, list):
            return record
        called = (block.get("tool_use_id") for block in content_blocks(content))
        calls = tuple(call for call in called if isinstance(call, str))
        if not calls:
            return record
        hashes = {hash(call) for call in calls}
        # a result that is repeated may be left out
        self.is_plain = self.is_plain and self._answered.isdisjoint(hashes)
        self._answered |= hashes
        if (key := self.calls.reply(calls[0])) is not None:
            return key
        self.waiting[record], self.is_plain = calls, False
        return record


def index_records(records: RecordSource) -> RecordIndex:
    index = RecordIndex()
    for number, (_, value) in enumerate(records):
        index.add(number, value)
    if index.is_mixed:
        index = RecordIndex()
        index.is_sidechain = False
        for number in range(len(records)):
            index.add(number, records.load(number))
    return index


def _kind(value: Json) -> int:
    kind, message = value.get("type"), value.get("message")
    if kind == "system" and isinstance(subtype := value.get("subtype"), str):
        return _SYSTEM.get(subtype, OTHER)
    if not isinstance(message, dict):
        return OTHER
    if kind == "user":
        return SUMMARY if value.get("isCompactSummary") is True else USER
    return ASSISTANT if kind == "assistant" else OTHER


def _preserved_uuids(boundary: Json) -> tuple[str, ...]:
    """Of the messages that stay, first to last; in older files only of the two ends."""
    about = object_or_empty(boundary.get("compactMetadata"))
    messages = object_or_empty(about.get("preservedMessages"))
    segment = object_or_empty(about.get("preservedSegment"))
    ends = [segment.get("headUuid"), segment.get("tailUuid")]
    return strings_in(messages.get("uuids")) or strings_in(ends)
