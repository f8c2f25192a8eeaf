"""A session that has a part of a large file gets the rest of it without having all in memory: with
the same result, whatever happened before, as from all entries at once."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Entry
from recollect.store.contract import Store
from recollect.store.ids import derived_id
from recollect.store.open_store import open_store
from recollect.testing import user
from recollect.transcripts.claude_code import session_reader
from recollect.transcripts.format_table import RECORD_KEYS
from recollect.transcripts.gemini_cli import session_file
from recollect.transcripts.import_result import ImportResult
from recollect.transcripts.json_values import Json
from recollect.transcripts.owned_import import scope_to_owner
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.record_stream import WHOLE_LIMIT, open_records
from recollect.transcripts.session_import import import_bundle
from recollect.transcripts.source_file import SourceFile
from recollect.transcripts.transcript import Transcript, TranscriptBundle, TranscriptFile
from tests.transcripts.claude_code.record_strategies import BEGIN, RECORDS
from tests.transcripts.gemini_cli.line_strategies import HEADER, LINES

Read: TypeAlias = Callable[[RecordSource], Transcript]


class Step(NamedTuple):
    """An import of a version of a file, and what the user does then."""

    length: int  # of the file, in records
    changed: int | None = None  # a record that was rewritten
    stop: int | None = None  # the report of progress at which the import is interrupted
    rewind: int | None = None  # the entry of the tree to which the user goes back
    says: str = ""  # what is appended here


STEPS = st.lists(
    st.builds(
        Step,
        length=st.integers(0, 12),
        changed=st.none() | st.none() | st.integers(0, 11),
        stop=st.none() | st.integers(0, 6),
        rewind=st.none() | st.integers(0, 30),
        says=st.sampled_from(["", "", "ours"]),
    ),
    min_size=2,
    max_size=4,
)


def write_version(file: Path, records: list[Json], step: Step) -> None:
    version = records[: step.length + 1]
    if step.changed is not None and step.changed < len(version):
        version[step.changed] = {**version[step.changed], "version": "another"}
    file.write_text("\n".join(map(json.dumps, version)))


def read_version(file: Path, read: Read, *, whole: int, owner: str) -> TranscriptBundle:
    source = SourceFile(file)
    transcript = read(open_records(source, RECORD_KEYS, whole=whole))
    bundle = TranscriptBundle(TranscriptFile(transcript, file.name, source))
    return scope_to_owner(bundle, owner) if owner else bundle


async def import_version(
    store: Store, bundle: TranscriptBundle, step: Step, owner: str
) -> ImportResult | None:
    reports = 0

    def stop(_done: int, _total: int) -> None:
        nonlocal reports
        if reports == step.stop:
            raise InterruptedError
        reports += 1

    with suppress(InterruptedError):
        return await import_bundle(store, bundle, progress=stop, owner=owner)
    return None


async def use_session(store: Store, number: int, step: Step) -> list[object]:
    """What the user does after an import; and everything that the session then consists of."""
    found: list[object] = []
    for info in await store.sessions():
        tree = await store.tree(info.id)
        if step.rewind is not None and tree:
            target = None if step.rewind == 0 else tree[step.rewind % len(tree)].id
            await store.rewind(info.id, target)
        if step.says:
            ours = Entry(derived_id(info.id, str(number)), None, number, user(step.says))
            head = (await store.session(info.id)).head
            await store.append(info.id, [ours], parent=head)
    for info in await store.sessions():
        found += [info.head, info.title, await store.tree(info.id), await store.path(info.id)]
    return found


async def compare(
    folder: Path, read: Read, records: list[Json], steps: list[Step], owner: str
) -> None:
    file = folder / "a.jsonl"
    async with open_store(folder / "a.db") as one, open_store(folder / "b.db") as other:
        for number, step in enumerate(steps):
            write_version(file, records, step)
            whole = read_version(file, read, whole=WHOLE_LIMIT, owner=owner)
            streamed = read_version(file, read, whole=0, owner=owner)
            expected = await import_version(one, whole, step, owner)
            found = await import_version(other, streamed, step, owner)
            assert step.stop is not None or found == expected
            assert await use_session(other, number, step) == await use_session(one, number, step)


OWNERS = st.sampled_from(["", "", "", "ada"])


@given(RECORDS, STEPS, OWNERS)
def test_a_session_gets_the_same_from_a_streamed_file_as_from_one_in_memory(
    records: list[Json], steps: list[Step], owner: str
) -> None:
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        asyncio.run(compare(Path(folder), session_reader.read, [BEGIN, *records], steps, owner))


@given(LINES, STEPS, OWNERS)
def test_a_session_gets_the_same_from_streamed_lines_of_gemini_cli(
    lines: list[Json], steps: list[Step], owner: str
) -> None:
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        asyncio.run(compare(Path(folder), session_file.read, [HEADER, *lines], steps, owner))
