"""Whole files at once, for tests: their transcripts, and their stored originals."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from recollect.entries import Entry
from recollect.store.contract import Store
from recollect.transcripts.format_table import read_file
from recollect.transcripts.original_files import original_pieces
from recollect.transcripts.source_file import SourceFile
from recollect.transcripts.transcript import Transcript


def read_transcript(data: bytes, name: str) -> Transcript:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return read_file(SourceFile(Path(file.name)), name).with_entries()


async def load_original(store: Store, source: Entry, tree: Iterable[Entry]) -> bytes:
    return b"".join([piece async for piece in original_pieces(store, source, tree)])
