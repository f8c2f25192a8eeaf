"""The records of subagents in the file of the session that called them: marked as a sidechain, or
quoted by its progress reports, all but the last ones. Each subagent's are a source of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from recollect.transcripts.claude_code.record_index import (
    MarkedRecord,
    QuotedRecord,
    RecordIndex,
)
from recollect.transcripts.json_values import Json
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.transcript import ImportProblem

_ENVELOPE = ("sessionId", "cwd", "version", "gitBranch")


class _RecordPick(NamedTuple):
    number: int  # of the record of the file
    change: Callable[[Json], Json]


class SidechainRecords:
    """Some records of another source, as the subagent's own file would have them."""

    def __init__(self, records: RecordSource, picks: Sequence[_RecordPick]) -> None:
        self._records, self._picks = records, picks
        self.is_streamed = records.is_streamed

    def __iter__(self) -> Iterator[tuple[int, Json]]:
        return ((self.line(number), self.load(number)) for number in range(len(self)))

    def __len__(self) -> int:
        return len(self._picks)

    def line(self, number: int) -> int:
        return self._records.line(self._picks[number].number)

    def size(self, number: int) -> int:
        return self._records.size(self._picks[number].number)

    def load(self, number: int) -> Json:
        pick = self._picks[number]
        return pick.change(self._records.load(pick.number))

    def load_all(self) -> list[tuple[int, Json]]:
        return list(self)

    def refuse_large(self, numbers: Iterable[int]) -> None:
        self._records.refuse_large(self._picks[number].number for number in numbers)

    def problems(self) -> tuple[ImportProblem, ...]:
        return ()  # they are those of the file


class Sidechain(NamedTuple):
    name: str  # the subagent's id, or the uuid of its first record
    call: str  # the call that it answers, if the file says so
    records: SidechainRecords


def extract_sidechains(records: RecordSource, index: RecordIndex) -> list[Sidechain]:
    found = [(name, "", picks) for name, picks in _pick_marked(index.marked).items()]
    names = {name for name, _, _ in found}
    quoted = _pick_quoted(index.quoted)
    found += [(name, call, picks) for name, (call, picks) in quoted.items() if name not in names]
    return [Sidechain(name, call, SidechainRecords(records, picks)) for name, call, picks in found]


def _pick_marked(marked: Sequence[MarkedRecord]) -> dict[str, list[_RecordPick]]:
    chained = {record.uuid: record for record in marked}
    # a subagent has an id; in older files, which have none, its first record identifies it
    own = {
        uuid: record.agent or uuid
        for uuid, record in chained.items()
        if record.agent or record.parent not in chained
    }
    names = _inherit_names(own, chained)
    groups: dict[str, list[_RecordPick]] = {}
    for record in marked:
        is_first = names.get(record.parent) != names[record.uuid]
        pick = _RecordPick(record.number, _without_parent if is_first else _unchanged)
        groups.setdefault(names[record.uuid], []).append(pick)
    return groups


def _inherit_names(own: Mapping[str, str], chained: Mapping[str, MarkedRecord]) -> dict[str, str]:
    """The own name of each record, else that of the nearest one above it that has one; for a
    circle, the record where the walk began."""
    found = dict(own)
    for start in chained:
        walked: list[str] = []
        at: str | None = start
        while at is not None and at not in found:
            found[at] = start
            walked.append(at)
            at = chained[at].parent if at in chained else None
        if at is not None:
            found.update(dict.fromkeys(walked, found[at]))
    return found


def _unchanged(value: Json) -> Json:
    return value


def _without_parent(value: Json) -> Json:
    return {**value, "parentUuid": None}


def _pick_quoted(quoted: Sequence[QuotedRecord]) -> dict[str, tuple[str, list[_RecordPick]]]:
    found: dict[str, tuple[str, list[_RecordPick]]] = {}
    last: dict[str, str] = {}
    for number, uuid, agent, call in quoted:
        pick = _RecordPick(number, _unquote(agent, last.get(agent)))
        found.setdefault(agent, (call, []))[1].append(pick)
        last[agent] = uuid
    return found


def _unquote(agent: str, parent: str | None) -> Callable[[Json], Json]:
    marks = {"parentUuid": parent, "isSidechain": True, "agentId": agent}

    def change(report: Json) -> Json:
        envelope = {key: report[key] for key in _ENVELOPE if key in report}
        return {**report["data"]["message"], **envelope, **marks}

    return change
