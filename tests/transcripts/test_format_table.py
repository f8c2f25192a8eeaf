"""What every format keeps, and what is missing when somebody adds one."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from recollect.errors import BadInput
from recollect.settings import Settings
from recollect.store.open_store import open_store
from recollect.transcripts.format_table import (
    EXPORT_FORMATS,
    FORMATS,
    TranscriptFormat,
    writer_of,
)
from recollect.transcripts.json_patch import json_equal
from recollect.transcripts.session_export import export_session
from recollect.transcripts.session_import import import_file
from recollect.transcripts.tolerant_json import parse_records
from tests.transcripts.file_builders import SAMPLES, messages_of
from tests.transcripts.whole_files import read_transcript

PAGE = Path(__file__).parent.parent.parent / "docs" / "mirrors.md"
every = pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)


@every
def test_nothing_is_missing_for_a_format(row: TranscriptFormat) -> None:
    rows = dict(
        re.findall(r"^\| `([\w-]+)` \|.*\| (read|read, written) \|", PAGE.read_text(), re.M)
    )
    documented = "read, written" if row.writer else "read"
    mirrors = get_args(get_type_hints(Settings)["mirror"])
    missing = {
        f"a row in docs/mirrors.md that ends with `{documented}`": rows.get(row.name) == documented,
        "a sample in SAMPLES of tests/transcripts/file_builders.py": row.name in SAMPLES,
        "a choice of the setting `mirror` in settings/setting_definitions.py": (
            row.writer is None or row.name in mirrors
        ),
        "a writer whose records have the format's name": (
            row.writer is None or row.writer.records.name == row.name
        ),
    }
    lacks = [what for what, there in missing.items() if not there]
    assert lacks == [], f"{row.name} lacks: {'; '.join(lacks)}"


def test_the_settings_and_the_page_name_no_other_formats() -> None:
    assert set(get_args(get_type_hints(Settings)["mirror"])) == {"", *EXPORT_FORMATS}
    assert set(re.findall(r"^\| `([\w-]+)` \|.*\| read", PAGE.read_text(), re.M)) == set(SAMPLES)
    assert {row.name for row in FORMATS} == set(SAMPLES)


@every
def test_a_sample_is_read_as_its_own_format(row: TranscriptFormat) -> None:
    for data in SAMPLES.get(row.name, []):
        transcript = read_transcript(data, "sample")
        assert (transcript.format, transcript.problems) == (row.name, ())
        assert messages_of(transcript.path)


@every
def test_a_record_of_a_sample_is_found_after_damage(row: TranscriptFormat) -> None:
    for data in SAMPLES.get(row.name, []):
        records, _ = parse_records(data, row.record_keys)
        first = records[0][1]
        messages = first["messages"] if "messages" in first else [value for _, value in records]
        whole = [m for m in messages if any(keys <= m.keys() for keys in row.record_keys)]
        assert len(whole) >= len(messages) - 1  # a header need not be one


@every
def test_a_sample_cut_anywhere_is_the_same_session(row: TranscriptFormat) -> None:
    """Its first record is whole: a file is imported while the other program writes it."""
    for data in SAMPLES.get(row.name, []):
        whole = read_transcript(data, "sample")
        for end in range(len(data) * 2 // 3, len(data), 41):
            assert read_transcript(data[:end], "sample").session == whole.session


@every
def test_a_sample_that_is_imported_twice_adds_nothing(
    tmp_path: Path, row: TranscriptFormat
) -> None:
    async def work() -> None:
        for number, data in enumerate(SAMPLES.get(row.name, [])):
            file = tmp_path / "sample"
            file.write_bytes(data)
            async with open_store(tmp_path / f"{number}.db") as store:
                first, again = await import_file(store, file), await import_file(store, file)
                assert first.added > 0
                assert (again.session, again.added) == (first.session, 0)

    asyncio.run(work())


@pytest.mark.parametrize("to", EXPORT_FORMATS)
@every
def test_a_sample_survives_every_format_that_is_written(
    tmp_path: Path, row: TranscriptFormat, to: str
) -> None:
    async def round_trip(file: Path, store_file: Path) -> tuple[list[object], bytes]:
        async with open_store(store_file) as store:
            session = (await import_file(store, file)).session
            parts = [message.parts for message in messages_of(await store.path(session))]
            return list(parts), (await export_session(store, session, to))[1]

    for number, data in enumerate(SAMPLES.get(row.name, [])):
        file = tmp_path / "sample"
        file.write_bytes(data)
        parts, exported = asyncio.run(round_trip(file, tmp_path / f"{number}.db"))
        if to == row.name and data.startswith(b"{") and b'"messages"' in data:
            assert json_equal(json.loads(exported), json.loads(data))
        file.write_bytes(exported)
        again = asyncio.run(round_trip(file, tmp_path / f"{number}-again.db"))
        assert again == (parts, exported)


def test_a_format_that_is_only_read_cannot_be_written() -> None:
    with pytest.raises(BadInput, match=r"'claude-code'; use one of: .*gemini"):
        writer_of("claude-code")
