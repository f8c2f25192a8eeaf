"""Sessions of other agents on this machine, as an offer to import them.

Only names and sizes are looked at. Files of this project come first, then the newest. A file counts
as imported when one of its name was: importing it again adds what is new.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from recollect.display.display_text import one_line, pluralize
from recollect.display.home_paths import abbreviate_home
from recollect.runtime.runtime import Runtime
from recollect.store.contract import Store
from recollect.text import format_size
from recollect.transcripts.installed_agents import (
    find_agent_sessions,
    is_file_of,
    list_session_files,
)


class AgentFile(msgspec.Struct, frozen=True):
    """A session file of another agent."""

    path: Path
    size: int
    is_own: bool  # of this project
    is_new: bool  # none of its name was imported


class ImportOffer(msgspec.Struct, frozen=True):
    """The session files of one agent, in the order of an import."""

    agent: str
    folder: Path
    files: tuple[AgentFile, ...]
    complete: bool = True  # False: there are more

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


async def find_offers(
    runtime: Runtime, home: Path | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[ImportOffer, ...]:
    """What could be imported here; looked up beside everything else."""
    folders = {str(runtime.folders.cwd)}
    folders.add((await asyncio.to_thread(lambda: runtime.project)).path)
    known = await _imported_names(runtime.store)
    return await asyncio.to_thread(_look, folders, known, home, environment)


async def _imported_names(store: Store) -> frozenset[str]:
    return frozenset(source.name for source in (await store.sources()).values())


def _look(
    folders: Collection[str],
    known: Collection[str],
    home: Path | None,
    environment: Mapping[str, str],
) -> tuple[ImportOffer, ...]:
    offers = []
    for found in find_agent_sessions(home, environment):
        files: list[tuple[bool, float, AgentFile]] = []
        own: dict[Path, bool] = {}  # by folder
        for path in list_session_files(found):
            with suppress(OSError):  # it is gone
                about = path.stat()
                if path.parent not in own:
                    own[path.parent] = is_file_of(path, folders)
                file = AgentFile(path, about.st_size, own[path.parent], path.name not in known)
                files.append((not file.is_own, -about.st_mtime, file))
        files.sort(key=lambda one: one[:2])
        if files:
            sorted_files = tuple(file for _, _, file in files)
            offers.append(ImportOffer(found.agent, found.folder, sorted_files, found.complete))
    return tuple(offers)


def describe_offers(offers: Collection[ImportOffer]) -> str:
    """In a line, those with sessions that were not imported; empty if there are none."""
    parts = []
    for offer in offers:
        new = sum(file.is_new for file in offer.files)
        if not new:
            continue
        count = f"{len(offer.files):,}{'' if offer.complete else ' or more'}"
        noun = "session" if len(offer.files) == 1 else "sessions"
        left = "" if new == len(offer.files) else f" ({new:,} not imported)"
        parts.append(f"{count} {noun} of {offer.agent}{left}")
    return f"{', '.join(parts)} on this machine" if parts else ""


def describe_offer(offer: ImportOffer) -> str:
    """One agent's, in full: where, how many, how large, which are new or of this project."""
    own = sum(file.is_own for file in offer.files)
    new = sum(file.is_new for file in offer.files)
    facts = [
        f"{pluralize(len(offer.files), 'session')}{'' if offer.complete else ' or more'}",
        format_size(offer.size),
        f"{own:,} of this project" if own else "",
        f"{new:,} not imported" if new else "all imported before",
        one_line(abbreviate_home(str(offer.folder))),
    ]
    return f"{offer.agent}: {' · '.join(filter(None, facts))}"
