"""Importing several files, and what became of each, in words.

A file that cannot be read is an outcome too: it does not stop the others. Only a store that cannot
be written does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from recollect.display.display_text import one_line, pluralize, sanitize
from recollect.display.home_paths import abbreviate_home
from recollect.errors import RecollectError, StoreError
from recollect.runtime.runtime import Runtime
from recollect.transcripts.import_result import ImportProgress, ImportResult
from recollect.transcripts.session_files import find_session_files


class WantedFiles(NamedTuple):
    files: tuple[Path, ...]
    folders: tuple[Path, ...] = ()
    in_folders: frozenset[Path] = frozenset()  # files that nobody named
    others: tuple[Path, ...] = ()  # that hold no sessions, at first sight
    failures: tuple[str, ...] = ()


class ImportOutcome(NamedTuple):
    path: Path
    result: ImportResult | RecollectError | OSError

    @property
    def session(self) -> str:
        return self.result.session if isinstance(self.result, ImportResult) else ""

    @property
    def error(self) -> str:
        if isinstance(self.result, OSError):
            return f"cannot import {self.path}: {self.result.strerror or self.result}"
        return str(self.result) if isinstance(self.result, RecollectError) else ""


def collect_files(
    given: tuple[Path, ...], on_folder: Callable[[Path], None] = lambda _: None
) -> WantedFiles:
    """The files that were named, and those of the folders that were."""
    files, others, folders, failures = list[Path](), list[Path](), list[Path](), list[str]()
    in_folders: set[Path] = set()
    for path in dict.fromkeys(given):
        if not path.is_dir():
            files.append(path)
            continue
        on_folder(path)
        folders.append(path)
        found = find_session_files(path)
        files += found.files
        others += found.others
        failures += found.failures
        in_folders.update(found.files)
    return WantedFiles(
        tuple(dict.fromkeys(files)),
        tuple(folders),
        frozenset(in_folders.difference(given)),
        tuple(others),
        tuple(failures),
    )


async def try_import(
    runtime: Runtime, path: Path, progress: ImportProgress = lambda _done, _total: None
) -> ImportOutcome:
    """Import one file, or say what is wrong: an error does not stop the other imports."""
    try:
        progress(0, 1)
        return ImportOutcome(path, await runtime.import_file(path, progress))
    except StoreError:
        raise
    except (RecollectError, OSError) as error:
        return ImportOutcome(path, error)


async def label_session(runtime: Runtime, session: str) -> str:
    """A session's short id and title, and its project if that is another one."""
    info = await runtime.store.session(session)
    short = (await runtime.store.short_session_ids([session]))[session]
    label = f"{short} {one_line(info.title)}".rstrip()
    if info.project in (None, runtime.project.path):
        return label
    return f"{label} (of {one_line(abbreviate_home(info.project))})"


def describe_import(path: Path, result: ImportResult, label: str) -> Iterator[str]:
    """What an import added, in a line or two."""
    known = f", {result.already:,} known" if result.already else ""
    problems = f", {pluralize(len(result.problems), 'problem')}" if result.problems else ""
    counts = f"{_describe_added(result.added)}{known}{problems}"
    yield sanitize(f"{path.name}: {counts} → session {label}")
    if result.subagents:
        added = _describe_added(sum(one.added for one in result.subagents))
        yield f"  with {pluralize(len(result.subagents), 'subagent')}: {added}"


def describe_problems(outcome: ImportOutcome) -> Iterator[str]:
    """The lines of a file that could not be read, and what else is odd about it."""
    if not isinstance(outcome.result, ImportResult):
        yield outcome.error
        return
    for one in (outcome.result, *outcome.result.subagents):
        for line, reason in one.problems:
            yield f"{one.name}{f', line {line}' if line else ''}: {reason}"
        for warning in one.warnings:
            yield f"{outcome.path.name}: {warning}"


def _describe_added(count: int) -> str:
    return f"{pluralize(count, 'entry')} added" if count else "nothing new"
