"""Where other agents keep their sessions on this machine, and how many are there.

Only looking: nothing is opened, imported or changed. An agent is listed if its files can be
imported. The walk is bounded, and a folder that cannot be read counts as empty.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from recollect.transcripts.gemini_cli.message_records import NAME as GEMINI
from recollect.transcripts.gemini_cli.project_folder import is_in_project
from recollect.transcripts.subagent_links import NAME as CLAUDE_CODE

MAX_LOOKED_AT = 20_000  # names in all folders of one agent
_CLAUDE_NAME = re.compile(r"[^a-zA-Z0-9]")  # what is a hyphen in the name of a project's folder


class AgentLocation(NamedTuple):
    agent: str
    format: str  # a name in `format_table.FORMATS`
    variable: str  # names another folder than `folder`
    folder: str  # below the user's home
    pattern: str  # of its session files, below the folder


AGENT_LOCATIONS = (
    AgentLocation("Claude Code", CLAUDE_CODE, "CLAUDE_CONFIG_DIR", ".claude", "projects/*/*.jsonl"),
    AgentLocation("Gemini CLI", GEMINI, "", ".gemini", "tmp/*/chats/session-*.json*"),
)


class AgentSessions(NamedTuple):
    """The session files of one agent."""

    agent: str
    files: int
    complete: bool  # False: there are so many that counting stopped
    folder: Path
    pattern: str


def find_agent_sessions(
    home: Path | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[AgentSessions, ...]:
    """Each agent with at least one session file."""
    home = Path.home() if home is None else home
    found = []
    for location in AGENT_LOCATIONS:
        moved = environment.get(location.variable, "") if location.variable else ""
        folder = Path(moved).expanduser() if moved else home / location.folder
        looked = _LookedAt()
        files = sum(1 for _ in _matches(folder, location.pattern.split("/"), looked))
        if files:
            complete = looked.names < MAX_LOOKED_AT
            found.append(AgentSessions(location.agent, files, complete, folder, location.pattern))
    return tuple(found)


def list_session_files(found: AgentSessions) -> tuple[Path, ...]:
    """The files that were counted."""
    return tuple(_matches(found.folder, found.pattern.split("/"), _LookedAt()))


def is_file_of(path: Path, folders: Collection[str]) -> bool:
    """Whether an agent kept this session file for one of these working directories, as far as the
    names of the folders around it tell."""
    if path.parent.name in {_CLAUDE_NAME.sub("-", folder) for folder in folders}:
        return True
    return any(is_in_project(path, folder) for folder in folders)


class _LookedAt:
    names = 0


def _matches(folder: Path, pattern: list[str], looked: _LookedAt) -> Iterator[Path]:
    """The files below a folder that fit a pattern, one name for each level."""
    first, *rest = pattern
    for name, is_folder in _names(folder, looked):
        if fnmatchcase(name, first) and is_folder == bool(rest):
            if rest:
                yield from _matches(folder / name, rest, looked)
            else:
                yield folder / name


def _names(folder: Path, looked: _LookedAt) -> list[tuple[str, bool]]:
    """Names in a folder, and whether each is a folder itself; hidden ones are left out, as a
    shell's pattern does."""
    try:
        with os.scandir(folder) as entries:
            some = list(islice(entries, max(0, MAX_LOOKED_AT - looked.names)))
            looked.names += len(some)
            return [(e.name, e.is_dir()) for e in some if not e.name.startswith(".")]
    except OSError:
        return []
