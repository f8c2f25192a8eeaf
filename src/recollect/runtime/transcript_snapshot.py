"""The snapshot of another program's session file; nothing of it is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from recollect.agent.fit_context import summarizer_from
from recollect.compaction.proposal import OnRound, Partition, SnapshotInput, ignore_round
from recollect.entries import Entry
from recollect.models.model_calls import profile_of
from recollect.models.open_model import open_model
from recollect.snapshot.snapshot_builder import build_snapshot_text
from recollect.snapshot.snapshot_format import parse_snapshot
from recollect.snapshot_writer import SnapshotMaterial, SnapshotWriter
from recollect.view.view import View


class TranscriptSnapshot(NamedTuple):
    text: str
    by_model: bool = False
    trouble: str = ""  # why a model that was to help did not, or not with everything


async def snapshot_transcript(
    entries: Sequence[Entry],
    characters: int,
    model: str | None = None,
    *,
    on_round: OnRound = ignore_round,
    progress: Callable[[int, int], None] | None = None,
) -> TranscriptSnapshot:
    """A snapshot in at most so many characters, which this model helps to write, if one is named.

    `progress` is called as in `open_model`. A model that cannot be opened raises; one that fails
    leaves the snapshot to code."""
    by_code = build_snapshot_text(entries, characters)
    if model is None:
        return TranscriptSnapshot(by_code)
    async with open_model(model, for_agent=True, progress=progress) as called:
        material = _describe(entries, by_code)
        summarizer, window = summarizer_from(called), profile_of(called).window
        written, trouble = await SnapshotWriter(summarizer, material, window, on_round).write()
    snapshot = parse_snapshot(written)
    if snapshot is None:
        return TranscriptSnapshot(by_code, trouble=trouble)
    text = build_snapshot_text(entries, characters, written=snapshot)
    return TranscriptSnapshot(text, by_model=True, trouble=trouble)


def _describe(entries: Sequence[Entry], by_code: str) -> SnapshotMaterial:
    view = View.fold(entries)
    partition, tokens = Partition.of(view), view.log.counter.text(by_code)
    end = len(partition.items)
    return SnapshotMaterial(view, partition, end, by_code, SnapshotInput(), tokens)
