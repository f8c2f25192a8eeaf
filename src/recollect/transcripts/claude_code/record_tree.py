"""The tree that Claude Code's records form: which belong together, and what follows what.

Every record with a uuid counts once. Sidechains are left out, unless there is nothing else. A
parent that is not in the file is replaced by the record before, as is a boundary's missing one; a
circle is cut open. A boundary that keeps messages comes after the last of them, and records that
the file attaches to that last one from then on come after the boundary: so the messages that a
compaction kept are above it. All of it is linear in the number of records.

The records of a subagent may be in the file of the session that called it: marked as a sidechain,
or quoted by its progress reports, all but the last ones. `extract_sidechains` takes both out.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from recollect.transcripts.claude_code.content_blocks import content_blocks
from recollect.transcripts.json_values import Json, object_or_empty, string_or_empty, strings_in
from recollect.transcripts.transcript import ImportProblem

RecordKind: TypeAlias = Literal["user", "assistant", "boundary", "summary", "microcompact", "other"]
_SYSTEM: dict[object, RecordKind] = {
    "compact_boundary": "boundary",
    "microcompact_boundary": "microcompact",
}
_ENVELOPE = ("sessionId", "cwd", "version", "gitBranch")
TurnKey: TypeAlias = tuple[str, str]
T = TypeVar("T")


class ClaudeRecord(NamedTuple):
    uuid: str
    kind: RecordKind
    value: Json
    parent: str | None

    @property
    def message(self) -> Json:
        return object_or_empty(self.value.get("message"))

    @property
    def content(self) -> object:
        return self.message.get("content")


class RecordTurn(NamedTuple):
    """Records that belong together; another turn continues after the last of them."""

    parent: int | None
    members: list[ClaudeRecord]
    kept: int | None = None  # of a compaction: the first turn above it that stays visible


class RecordTree(NamedTuple):
    turns: list[RecordTurn]  # in the order of their first records in the file
    order: list[int]  # parents first
    spans: list[range]  # of numbers that each turn has for itself and all turns below it
    leaf: int | None

    def is_above(self, turn: int, other: int) -> bool:
        return turn != other and self.spans[other].start in self.spans[turn]

    def records(self) -> Iterator[ClaudeRecord]:
        return (record for turn in self.turns for record in turn.members)


def build_tree(values: Sequence[tuple[int, Json]]) -> tuple[RecordTree, list[ImportProblem]]:
    records, problems = _records(values)
    members: dict[TurnKey, list[ClaudeRecord]] = {}
    keys = _keys(records)
    for uuid, record in records.items():
        if uuid in keys:
            members.setdefault(keys[uuid], []).append(record)
    numbers = {key: number for number, key in enumerate(members)}
    own: dict[str, int | None] = {uuid: numbers[key] for uuid, key in keys.items()}
    # a mere link of the chain counts as the turn that it follows
    owners = _inherit(own, records, lambda uuid: records[uuid].parent, lambda _: None)
    turns = []
    for number, group in enumerate(members.values()):
        above = (owners[member.parent] for member in group if member.parent is not None)
        turns.append(RecordTurn(next((n for n in above if n not in (None, number)), None), group))
    order = _parents_first(turns)
    spans = _spans(turns, order)
    kept = _kept(turns, order, spans, owners)
    turns = [turn._replace(kept=kept.get(number)) for number, turn in enumerate(turns)]
    positions = {uuid: position for position, uuid in enumerate(records)}
    return RecordTree(turns, order, spans, _leaf(turns, positions)), problems


def _records(
    values: Sequence[tuple[int, Json]],
) -> tuple[dict[str, ClaudeRecord], list[ImportProblem]]:
    """By uuid, in the order of the file, each with a parent that is there."""
    chained = [value for _, value in values if isinstance(value.get("uuid"), str)]
    alone = is_subagent(chained)
    uuids = {value["uuid"] for value in chained if alone or not _is_sidechain(value)}
    records: dict[str, ClaudeRecord] = {}
    problems = []
    before: str | None = None
    moved: dict[str, str] = {}  # from the last message that a boundary kept to the boundary
    for line, value in values:
        uuid = value.get("uuid")
        if not isinstance(uuid, str) or uuid in records or (_is_sidechain(value) and not alone):
            continue
        kind = _kind(value)
        parent = value.get("parentUuid") or value.get("logicalParentUuid")
        tail = _last_kept(value, records) if kind == "boundary" else None
        if tail is not None:
            parent = tail
        elif (parent is not None or kind == "boundary") and not (
            isinstance(parent, str) and parent in uuids
        ):
            missing = f"its parent {parent!r:.60} is not in the file"
            problems.append(ImportProblem(line, f"{missing}; placed after the record before it"))
            parent = before
        parent = moved.get(parent, parent) if parent else None
        records[uuid] = ClaudeRecord(uuid, kind, value, parent)
        if tail is not None:
            moved[tail] = uuid
        before = uuid
    return records, problems


def _last_kept(boundary: Json, before: Container[str]) -> str | None:
    """Only from records before the boundary: it cannot have kept what was yet to come."""
    return next((uuid for uuid in reversed(_preserved_uuids(boundary)) if uuid in before), None)


def _preserved_uuids(boundary: Json) -> tuple[str, ...]:
    """Of the messages that stay, first to last; in older files only of the two ends."""
    about = object_or_empty(boundary.get("compactMetadata"))
    messages = object_or_empty(about.get("preservedMessages"))
    segment = object_or_empty(about.get("preservedSegment"))
    ends = [segment.get("headUuid"), segment.get("tailUuid")]
    return strings_in(messages.get("uuids")) or strings_in(ends)


def _is_sidechain(value: Json) -> bool:
    return value.get("isSidechain") is True


def is_subagent(values: list[Json]) -> bool:
    """Whether there is nothing but a sidechain: then the sidechain is the conversation."""
    chained = [value for value in values if isinstance(value.get("uuid"), str)]
    return bool(chained) and all(map(_is_sidechain, chained))


def _kind(value: Json) -> RecordKind:
    kind, message = value.get("type"), value.get("message")
    if kind == "system" and isinstance(subtype := value.get("subtype"), str):
        return _SYSTEM.get(subtype, "other")
    if not isinstance(message, dict):
        return "other"
    if kind == "user":
        return "summary" if value.get("isCompactSummary") is True else "user"
    return "assistant" if kind == "assistant" else "other"


def _keys(records: dict[str, ClaudeRecord]) -> dict[str, TurnKey]:
    """The turn of each record; records that are part of no turn are missing."""
    keys: dict[str, TurnKey] = {}
    callers: dict[str, TurnKey] = {}
    for record in records.values():
        if record.kind == "assistant":
            shared = record.message.get("id")
            key = ("reply", shared) if isinstance(shared, str) else ("record", record.uuid)
            keys[record.uuid] = key
            for block in content_blocks(record.content):
                if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                    callers.setdefault(block["id"], key)
    for record in records.values():
        if record.kind == "user":
            called = (block.get("tool_use_id") for block in content_blocks(record.content))
            known = (callers[id_] for id_ in called if isinstance(id_, str) and id_ in callers)
            keys[record.uuid] = next(known, ("record", record.uuid))
        elif record.kind in ("boundary", "summary", "microcompact"):
            above = records.get(record.parent or "") if record.kind == "summary" else None
            paired = above is not None and above.kind == "boundary"
            keys[record.uuid] = ("record", above.uuid if paired and above else record.uuid)
    return keys


def _inherit(
    own: Mapping[str, T],
    uuids: Iterable[str],
    parent: Callable[[str], str | None],
    otherwise: Callable[[str], T],
) -> dict[str, T]:
    """The own value of each record, else that of the nearest one above it that has one; without
    any above, and for a circle, `otherwise` of the record where the walk began."""
    found = dict(own)
    for start in uuids:
        walked: list[str] = []
        at: str | None = start
        while at is not None and at not in found:
            found[at] = otherwise(start)
            walked.append(at)
            at = parent(at)
        if at is not None:
            found.update(dict.fromkeys(walked, found[at]))
    return found


def _parents_first(turns: list[RecordTurn]) -> list[int]:
    """An order in which parents come before their children; a circle is cut open."""
    order: dict[int, None] = {}
    for start in range(len(turns)):
        walked: dict[int, None] = {}
        at: int | None = start
        while at is not None and at not in order and at not in walked:
            walked[at] = None
            at = turns[at].parent
        if at in walked:
            last = next(reversed(walked))
            turns[last] = turns[last]._replace(parent=None)
        order |= dict.fromkeys(reversed(walked))
    return list(order)


def _spans(turns: list[RecordTurn], order: list[int]) -> list[range]:
    sizes = [1] * len(turns)
    for number in reversed(order):
        if (parent := turns[number].parent) is not None:
            sizes[parent] += sizes[number]
    spans = [range(0)] * len(turns)
    free: dict[int | None, int] = {None: 0}  # the next number below each turn
    for number in order:
        first = free[turns[number].parent]
        free[turns[number].parent] += sizes[number]
        free[number] = first + 1
        spans[number] = range(first, first + sizes[number])
    return spans


def _kept(
    turns: list[RecordTurn], order: list[int], spans: list[range], owners: dict[str, int | None]
) -> dict[int, int]:
    """For each compaction the first turn above it that it keeps, if it keeps any.

    A turn is kept whole, because providers refuse a result without its call; and a mere link of
    the chain counts as the turn that it follows: rather one turn too many than one too few.
    """
    kept: dict[int, int] = {}
    since: dict[int, int] = {}  # the compaction above, or the root: where the live context begins
    for number in order:
        parent, members, _ = turns[number]
        compacts = any(member.kind in ("boundary", "summary") for member in members)
        since[number] = number if parent is None or compacts else since[parent]
        if not compacts:
            continue
        uuids = [u for m in members if m.kind == "boundary" for u in _preserved_uuids(m.value)]
        named = {turn for uuid in uuids if (turn := owners.get(uuid)) is not None}
        start = spans[number].start
        found = [turn for turn in named if turn != number and start in spans[turn]]
        if found:
            kept[number] = min(found, key=lambda turn: spans[turn].start)
        elif parent is not None and any(_keeps_preceding(m.value) for m in members):
            kept[number] = since[parent]
    return kept


def _keeps_preceding(summary: Json) -> bool:
    """A `/rewind` may summarise only what followed some message: everything before it stays."""
    return object_or_empty(summary.get("summarizeMetadata")).get("direction") == "from"


def _leaf(turns: list[RecordTurn], positions: dict[str, int]) -> int | None:
    """The last turn in the file that nothing continues; one the user saw, if there is one."""
    parents = {turn.parent for turn in turns}
    ends = [number for number in range(len(turns)) if number not in parents]

    def rank(number: int) -> tuple[bool, int]:
        members = turns[number].members
        shown = any(member.value.get("isMeta") is not True for member in members)
        return shown, max(positions[member.uuid] for member in members)

    return max(ends, key=rank, default=None)


class Sidechain(NamedTuple):
    name: str  # the subagent's id, or the uuid of its first record
    call: str  # the call that it answers, if the file says so
    values: list[tuple[int, Json]]  # line, record


def extract_sidechains(values: Sequence[tuple[int, Json]]) -> list[Sidechain]:
    marked = [] if is_subagent([value for _, value in values]) else _marked(values)
    names = {chain.name for chain in marked}
    return marked + [chain for chain in _quoted(values) if chain.name not in names]


def _marked(values: Sequence[tuple[int, Json]]) -> list[Sidechain]:
    found = [
        (line, value, uuid)
        for line, value in values
        if value.get("isSidechain") is True and (uuid := string_or_empty(value.get("uuid")))
    ]
    chained = {uuid: value for _, value, uuid in found}
    above = {uuid: string_or_empty(value.get("parentUuid")) for uuid, value in chained.items()}
    # a subagent has an id; in older files, which have none, its first record identifies it
    given = {uuid: string_or_empty(value.get("agentId")) for uuid, value in chained.items()}
    own = {uuid: given[uuid] or uuid for uuid in chained if given[uuid] or above[uuid] not in above}
    names = _inherit(own, chained, above.get, lambda start: start)
    groups: dict[str, list[tuple[int, Json]]] = {}
    for line, value, uuid in found:
        is_first = names.get(string_or_empty(value.get("parentUuid"))) != names[uuid]
        cut = {**value, "parentUuid": None} if is_first else value
        groups.setdefault(names[uuid], []).append((line, cut))
    return [Sidechain(name, "", group) for name, group in groups.items()]


def _quoted(values: Sequence[tuple[int, Json]]) -> list[Sidechain]:
    found: dict[str, Sidechain] = {}
    last: dict[str, str] = {}
    for line, value in values:
        if value.get("type") != "progress":
            continue
        data = object_or_empty(value.get("data"))
        name, message = string_or_empty(data.get("agentId")), data.get("message")
        if name and isinstance(message, dict) and isinstance(uuid := message.get("uuid"), str):
            envelope = {key: value[key] for key in _ENVELOPE if key in value}
            marks = {"parentUuid": last.get(name), "isSidechain": True, "agentId": name}
            call = string_or_empty(value.get("parentToolUseID"))
            chain = found.setdefault(name, Sidechain(name, call, []))
            chain.values.append((line, {**message, **envelope, **marks}))
            last[name] = uuid
    return list(found.values())
