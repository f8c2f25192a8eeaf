"""What an import reports; apart from its work, which loads every format."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from recollect.store.contract import Project
from recollect.transcripts.transcript import ImportProblem

FindProject: TypeAlias = Callable[[str], Project | None]
ImportProgress: TypeAlias = Callable[[int, int], None]


class ImportResult(msgspec.Struct, frozen=True):
    session: str
    format: str
    added: int
    already: int  # entries of the file that the session had
    problems: tuple[ImportProblem, ...] = ()
    warnings: tuple[str, ...] = ()
    name: str = ""  # of the file
    subagents: tuple[ImportResult, ...] = ()  # sessions that were imported with this one
