"""Memory files: what the user and the project want every session to know.

A session starts with the global files, those from the project's root down to the working directory,
those below it (breadth-first, bounded, without ignored folders), and those that extensions name.
Files that the user hides from the agent are not read.
When a tool touches another folder later, `read_memory_near` returns the files not given yet, and
`find_memory_changes` tells what is not what a session was given. A project's files are read only
in a trusted folder, never through a link that leads out, each file once. Each is shown between tags
that name its origin and that its own text cannot forge.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from recollect.entries import Message, Text, json_text
from recollect.settings import AgentSettings
from recollect.view.initial_messages import MEMORY_BEGIN, MEMORY_END
from recollect.workspace.hidden_paths import ALWAYS_IGNORED, find_hider, read_ignore_rules
from recollect.workspace.memory_imports import ImportStyle, expand_imports, read_unless_secret
from recollect.workspace.safe_files import (
    FileContent,
    ReadRefused,
    decode_content,
    read_inside,
    resolve_or_keep,
)
from recollect.workspace.untrusted_text import one_line, strip_invisible

MEMORY_NAMES = AgentSettings().memory_files
MAX_BYTES = 100_000  # of one file
MAX_TOTAL = 200_000  # characters of all files with their imports
MAX_FILES = 50
MAX_FOLDERS = 200  # searched below the working directory
MAX_NAMES = 50_000  # of one folder
MemoryOrigin: TypeAlias = Literal["global", "extension", "project", "folder"]
GivenMemory: TypeAlias = Mapping[str, str]  # by path: the digest of the text that was given


class MemoryFile(msgspec.Struct, frozen=True):
    path: str  # with links resolved; identifies the file
    name: str  # for display
    origin: MemoryOrigin
    text: str

    @property
    def digest(self) -> str:
        return _digest(self.text)


@lru_cache(2 * MAX_FILES)  # asked for by every session before each prompt
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class MemoryFiles(msgspec.Struct, frozen=True):
    files: tuple[MemoryFile, ...] = ()
    problems: tuple[str, ...] = ()  # for the user: what was not read, and why
    hidden: tuple[str, ...] = ()  # what the user's own ignore files keep from being read
    warnings: tuple[str, ...] = ()  # about ignore files that could not be read in full


class MemorySources(msgspec.Struct, frozen=True, kw_only=True):
    """Where memory may come from. `trusted` is called for every folder of the project."""

    cwd: Path
    root: Path  # of the project; the working directory is in it
    home: Path
    trusted: Callable[[Path], bool]
    names: tuple[str, ...] = MEMORY_NAMES
    files: tuple[Path, ...] = ()  # further global ones, which the user names by their paths
    extensions: tuple[Path, ...] = ()
    import_style: ImportStyle = "tree"
    added: tuple[Path, ...] = ()  # further working directories
    has_own: bool = True  # the user's global files too, not only the project's

    def top_of(self, path: Path) -> Path | None:
        """The working directory, or the project's root, that a path is in."""
        return next((top for top in (self.root, *self.added) if path.is_relative_to(top)), None)


def read_memory(sources: MemorySources, *, below: int = MAX_FOLDERS) -> MemoryFiles:
    """The memory that a session starts with; `below` limits the folders searched below it."""
    sources = _resolve(sources)
    searched = _search_below(sources, below)
    found = _collect(sources, _at_start(sources, searched.folders), frozenset())
    cut = (
        f"only the first {len(searched.folders):,} folders below {one_line(str(sources.cwd))} were "
        "searched for memory files; those of further folders are read when a tool first works there"
    )
    problems = found.problems if searched.complete else (*found.problems, cut)
    hidden = found.hidden + _find_hidden(sources, searched.hidden, below)
    return MemoryFiles(found.files, problems, hidden[: 2 * MAX_FILES], searched.warnings)


def read_memory_near(path: Path, sources: MemorySources, seen: Collection[str]) -> MemoryFiles:
    """The memory for a tool that touches `path`: files on the way to it that are not `seen`."""
    try:
        real, sources = path.resolve(), _resolve(sources)
    except (OSError, RuntimeError, ValueError):
        return MemoryFiles()
    top = sources.top_of(real)
    if top is None:
        return MemoryFiles()
    folder = real if real.is_dir() else real.parent
    folders = _down_to(top, folder)
    return _collect(sources, _in_folders(sources, folders), frozenset(seen))


class MemoryChanges(msgspec.Struct, frozen=True):
    """What differs from the memory that a session was given."""

    new: tuple[MemoryFile, ...] = ()
    changed: tuple[MemoryFile, ...] = ()
    removed: tuple[str, ...] = ()  # paths: no longer there, or no longer trusted

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.removed)


def read_given_memory(
    sources: MemorySources, given: GivenMemory, start: MemoryFiles
) -> MemoryFiles:
    """The memory that sessions start with, and what else this one was given, read again."""
    found = {file.path: file for file in start.files}
    for path in given:
        if path not in found:
            others = {*given, *found} - {path}
            near = read_memory_near(Path(path), sources, others).files
            found |= {file.path: file for file in near}
    return msgspec.structs.replace(start, files=tuple(found.values()))


def find_memory_changes(memory: MemoryFiles, given: GivenMemory) -> MemoryChanges:
    """How the memory of now differs from what a session was given."""
    found = {file.path: file for file in memory.files}
    return MemoryChanges(
        new=tuple(file for path, file in found.items() if path not in given),
        # an empty digest: the file was given before digests were recorded
        changed=tuple(f for path, f in found.items() if given.get(path, "") not in ("", f.digest)),
        removed=tuple(path for path in given if path not in found),
    )


def _resolve(sources: MemorySources) -> MemorySources:
    """Resolve links, so that paths can be compared."""
    return msgspec.structs.replace(
        sources,
        cwd=sources.cwd.resolve(),
        root=sources.root.resolve(),
        added=tuple(path.resolve() for path in sources.added),
    )


_Candidate: TypeAlias = tuple[Path, MemoryOrigin]


def _at_start(sources: MemorySources, below: Iterable[Path]) -> Iterator[_Candidate]:
    if sources.has_own:
        yield from ((sources.home / name, "global") for name in sources.names)
        yield from ((path, "global") for path in sources.files)
        yield from ((path, "extension") for path in sources.extensions)
    yield from _in_folders(sources, _down_to(sources.root, sources.cwd))
    yield from _in_folders(sources, below)
    yield from _in_folders(sources, sources.added)


def _in_folders(sources: MemorySources, folders: Iterable[Path]) -> Iterator[_Candidate]:
    for folder in folders:
        origin: MemoryOrigin = "project" if sources.cwd.is_relative_to(folder) else "folder"
        for name in sources.names:
            yield folder / name, origin


def _down_to(root: Path, folder: Path) -> tuple[Path, ...]:
    if not folder.is_relative_to(root):
        return (folder,)
    names = folder.relative_to(root).parts
    return tuple(root.joinpath(*names[:depth]) for depth in range(len(names) + 1))


class _SearchedFolders(NamedTuple):
    folders: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()  # from the agent, by the user
    complete: bool = True
    warnings: tuple[str, ...] = ()  # about ignore files


def _search_below(sources: MemorySources, limit: int) -> _SearchedFolders:
    """Folders below the working directory, breadth-first, without ignored ones and links."""
    try:
        top_rules, names = read_ignore_rules(sources.cwd, (sources.root,))
    except (OSError, RuntimeError, ValueError):
        return _SearchedFolders()
    warnings = dict.fromkeys(top_rules.warnings())
    if limit <= 0 or not sources.trusted(sources.cwd):
        return _SearchedFolders(warnings=tuple(warnings))
    found, hidden = list[Path](), list[Path]()
    complete = True
    pending = deque([(tuple(names), sources.cwd, top_rules)])
    while pending:
        names_here, folder, rules = pending.popleft()
        subfolders = _subfolders(folder)
        complete = complete and subfolders is not None
        for name in subfolders or ():
            below = (*names_here, name)
            if rules.ignores(below, folder=True):
                hider = rules.hider(below, folder=True)
                if hider is not None and not hider.of_git:
                    hidden.append(folder / name)
                continue
            if len(found) == limit:
                complete = False
                pending.clear()
                break
            found.append(folder / name)
            rules_below = rules.enter_folder(below)
            warnings |= dict.fromkeys(rules_below.warnings())
            pending.append((below, folder / name, rules_below))
    return _SearchedFolders(tuple(found), tuple(hidden), complete, tuple(warnings))


def _find_hidden(sources: MemorySources, folders: Iterable[Path], limit: int) -> tuple[str, ...]:
    """Memory files in folders that the user hides from the agent; none of them is read."""
    pending, found = deque(folders), list[Path]()
    while pending and len(found) < limit:
        folder = pending.popleft()
        found.append(folder)
        below = (name for name in _subfolders(folder) or () if name not in ALWAYS_IGNORED)
        pending.extend(folder / name for name in below)
    return _collect(sources, _in_folders(sources, found), frozenset()).hidden


def _subfolders(folder: Path) -> list[str] | None:
    """The names of the folders in a folder, in order; None if it has too many names to look at."""
    try:
        with os.scandir(folder) as scan:
            looked_at = islice(scan, MAX_NAMES)
            found = sorted(e.name for e in looked_at if e.is_dir(follow_symlinks=False))
            return found if next(scan, None) is None else None
    except OSError:
        return []


def _collect(
    sources: MemorySources, candidates: Iterable[_Candidate], seen: frozenset[str]
) -> MemoryFiles:
    files: list[MemoryFile] = []
    problems: list[str] = []
    hidden: list[str] = []
    known, room = _KnownFiles(seen), MAX_TOTAL
    for candidate in candidates:
        read = _read(sources, candidate, known, room)
        if isinstance(read, ReadRefused):
            kept_out = hidden if isinstance(read, _HiddenMemory) else problems
            kept_out.append(f"{one_line(str(candidate[0]))}: {read.why}")
        elif read is not None:
            file, failed = read
            files.append(file)
            problems += failed
            room -= len(file.text)
        if len(files) == MAX_FILES or len(problems) >= 2 * MAX_FILES:
            problems.append("there are too many memory files; the rest was not read")
            break
    return MemoryFiles(tuple(files), tuple(problems), tuple(hidden[: 2 * MAX_FILES]))


class _HiddenMemory(ReadRefused, frozen=True):
    pass


class _KnownFiles:
    """Files that are not read again, under whatever name: hard links have the same inode."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths, self._identities = set(paths), set[tuple[int, int]]()
        for path in paths:
            with suppress(OSError, ValueError):
                found = os.stat(path)  # noqa: PTH116 - for device and inode
                self._identities.add((found.st_dev, found.st_ino))

    def __contains__(self, file: FileContent) -> bool:
        return str(file.path) in self._paths or file.identity in self._identities

    def add(self, file: FileContent) -> None:
        self._paths.add(str(file.path))
        if file.identity[1]:  # some file systems have no inodes
            self._identities.add(file.identity)


def _read(
    sources: MemorySources, candidate: _Candidate, known: _KnownFiles, room: int
) -> tuple[MemoryFile, tuple[str, ...]] | ReadRefused | None:
    """One file; none if it is empty, already known, or missing and not named by its path."""
    path, origin = candidate
    if not os.path.lexists(path):
        missing = path in sources.files
        return (
            ReadRefused("there is no such file; agent.memory_files names it") if missing else None
        )
    own = origin in ("global", "extension")
    if not own and not sources.trusted(path.parent):
        remedy = f"`recollect trust --memory {shlex.quote(str(path.parent))}` asks whether it is"
        return ReadRefused(f"not read, because the folder is not trusted; {remedy}")
    if not own and (hider := find_hider(path, (sources.root, *sources.added), use_git=False)):
        return _HiddenMemory(f"it {hider.reason}")
    roots = (path.parent if own else sources.top_of(path) or sources.root, sources.home)
    # a link is followed if it is the user's own: many users keep such files in one folder
    within = (*roots, resolve_or_keep(path).parent) if own else roots
    found = (read_inside if own else read_unless_secret)(path, within, MAX_BYTES)
    if isinstance(found, ReadRefused):
        return found
    if found in known:
        return None
    elsewhere = not own and not found.path.is_relative_to(sources.home.resolve())
    if elsewhere and not sources.trusted(found.path.parent):
        return ReadRefused("not read, because the folder it links to is not trusted")
    if found.size > room:
        return ReadRefused(f"not read: with its {found.size:,} bytes, memory would be too long")
    text = decode_content(found)
    if isinstance(text, ReadRefused):
        return text
    if not text.strip():
        return None
    text, failed = expand_imports(
        strip_invisible(text), path, roots, sources.import_style, most=max(0, room - len(text))
    )
    known.add(found)
    name = _name(path, sources)
    file = MemoryFile(str(found.path), name, origin, text)
    return file, tuple(f"{name}: {problem}" for problem in failed)


def _name(path: Path, sources: MemorySources) -> str:
    if path.is_relative_to(sources.root):
        return one_line(path.relative_to(sources.root).as_posix())
    return one_line(str(path))


_TAG = re.compile(r"(?i:<(?=\s*/?\s*memory_file\b))")
_SEEN = "memory_files"


def memory_text(files: Iterable[MemoryFile]) -> str:
    return "\n\n".join(
        f'{MEMORY_BEGIN}path="{file.name.replace(chr(34), "&quot;")}" origin="{file.origin}">\n'
        f"{_TAG.sub('&lt;', file.text).strip()}\n{MEMORY_END}"
        for file in files
    )


def memory_message(changes: MemoryChanges) -> Message:
    """Memory found or changed during a session, as a message that also records what it gives."""
    sections = (
        (changes.new, "Memory files for the folders now in use:"),
        (
            changes.changed,
            "These memory files have changed. Each replaces the earlier text of the same path:",
        ),
    )
    texts = [f"{title}\n\n{memory_text(files)}" for files, title in sections if files]
    if changes.removed:
        names = "".join(f"\n  - {one_line(path, 1_000)}" for path in changes.removed)
        texts.append(f"These memory files are no longer in force:{names}")
    given = remember_seen((*changes.new, *changes.changed), changes.removed)
    text, extra = "\n\n".join(texts), json_text(given)
    return Message(role="user", parts=(Text(text=text),), context="memory", extra=extra)


def remember_seen(files: Iterable[MemoryFile], removed: Iterable[str] = ()) -> dict[str, Any]:
    """For the `extra` of a message that gives these files, so that none is given twice."""
    given = {file.path: file.digest for file in files} | dict.fromkeys(removed, None)
    return {_SEEN: given} if given else {}


def seen_memory(messages: Iterable[Message]) -> dict[str, str | None]:
    """The files that a session's messages have given, with their digests; None: withdrawn."""
    found: dict[str, str | None] = {}
    for message in messages:
        if message.context and message.extra:
            extra = json.loads(message.extra)
            given = extra.get(_SEEN) if isinstance(extra, dict) else None
            if isinstance(given, list):  # before digests were recorded
                found |= {path: "" for path in given if isinstance(path, str)}
            elif isinstance(given, dict):
                found |= {k: v for k, v in given.items() if v is None or isinstance(v, str)}
    return found
