"""Carries out `search_file_content`: lines that match a regular expression.

Only files that git would know are searched. Where ripgrep is installed it narrows the search to
some files; what is shown we always read ourselves, through checked descriptors. The model writes
the expression, so it runs in `regex` with a time limit, on pieces of bounded size, and never blocks
the event loop. Matches, characters and seconds are bounded, and the answer says what it left out.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TypeAlias

import regex

from recollect.settings import data_directory
from recollect.tools.directory_listing import parse_pattern
from recollect.tools.directory_walk import DirectoryWalk
from recollect.tools.file_reader import decode_text
from recollect.tools.glob_pattern import GlobPattern
from recollect.tools.resolve_path import quote, resolve_path
from recollect.tools.safe_open import (
    MAX_BYTES,
    CheckedFile,
    open_file,
    open_folder,
    open_in_folder,
    read_descriptor,
)
from recollect.tools.tool import ToolContext, ToolFailed

MAX_MATCHES = 200
MAX_PER_FILE = 50
MAX_PATTERN = 1_000  # characters
MAX_LINE = 500  # characters of a line that are shown, around what matched
MAX_SECONDS = 15.0
MAX_NARROWED = 5_000_000  # bytes of names that ripgrep may print
MAX_PIECE_SECONDS = 1.0  # an ordinary expression takes a thousandth of it
PIECE_CHARACTERS = 65_536  # characters searched at once: going back over more could take gigabytes


_FileCandidate: TypeAlias = tuple[str, AbstractContextManager[CheckedFile]]  # a path, not yet open


class SearchTimeout(Exception):
    """Not a TimeoutError: that is an OSError, and files that cannot be read are skipped."""


class SearchDeadline:
    """When a search has to end; `stop` ends it at once."""

    def __init__(self, seconds: float = MAX_SECONDS) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._end - time.monotonic()

    def stop(self) -> None:
        self._end = 0.0


async def search_contents(
    pattern: str,
    path: str,
    include: str,
    ignore_case: bool,  # noqa: FBT001 - the model's own parameter
    context: ToolContext,
) -> str:
    wanted = compile_pattern(pattern, ignore_case=ignore_case)
    files = parse_pattern(include) if include else None
    deadline = SearchDeadline()
    run = _ContentSearch(context.roots, wanted, files, deadline).run
    path = context.locate(path)
    narrowed = await _narrow_with_ripgrep(context.roots, path, pattern, ignore_case=ignore_case)
    try:
        return await asyncio.to_thread(run, path, narrowed)
    finally:
        deadline.stop()  # a thread cannot be cancelled; it checks this instead


def compile_pattern(pattern: str, *, ignore_case: bool) -> regex.Pattern[str]:
    if not pattern or len(pattern) > MAX_PATTERN:
        raise ToolFailed(f"the pattern must have 1 to {MAX_PATTERN:,} characters")
    flags = regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0)
    try:
        return regex.compile(pattern, flags)
    except (regex.error, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise ToolFailed(
            f"{quote(pattern)} is not a regular expression ({str(error)[:200]}); "
            "put a backslash before each of . ( ) [ ] { } * + ? | ^ $ that is meant literally"
        ) from None


def find_matches(
    text: str, wanted: regex.Pattern[str], deadline: SearchDeadline, most: int = MAX_PER_FILE
) -> Iterator[tuple[int, str]]:
    """The lines of a text that match, each once, with their numbers. Raises `SearchTimeout` when it
    takes too long."""
    line, counted, shown, given = 1, 0, 0, 0
    for at in _match_positions(text, wanted, deadline):
        line += text.count("\n", counted, at)
        counted = at
        if line == shown or (at == len(text) and text.endswith("\n")):
            continue
        yield line, _line_around(text, at)
        shown, given = line, given + 1
        if given >= most:
            return


def _match_positions(
    text: str, wanted: regex.Pattern[str], deadline: SearchDeadline
) -> Iterator[int]:
    for start, end in _split_pieces(text):
        left = min(deadline.left, MAX_PIECE_SECONDS)
        if left <= 0:
            raise SearchTimeout
        piece = text[start:end]
        try:
            for found in wanted.finditer(piece, timeout=left, concurrent=True):
                at_seam = found.start() == len(piece) and end < len(text)
                if not at_seam:  # an empty match there belongs to the next piece
                    yield start + found.start()
        except TimeoutError:
            raise SearchTimeout from None


def _split_pieces(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = min(start + PIECE_CHARACTERS, len(text))
        if end < len(text):
            newline = text.rfind("\n", start, end)
            end = newline + 1 if newline > start else end
        yield start, end
        start = end


def _line_around(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    if end - start <= MAX_LINE:
        return text[start:end].rstrip("\r")
    first = max(start, min(at - MAX_LINE // 4, end - MAX_LINE))
    last = min(end, first + MAX_LINE)
    return ("…" if first > start else "") + text[first:last] + ("…" if last < end else "")


class _ContentSearch:
    """One search: what it found, and what it left out."""

    def __init__(
        self,
        roots: Sequence[Path],
        wanted: regex.Pattern[str],
        include: GlobPattern | None,
        deadline: SearchDeadline,
    ) -> None:
        self._roots, self._wanted, self._include = roots, wanted, include
        self._deadline = deadline
        self._lines: list[str] = []
        self._notes: list[str] = []
        self._matches = self._files = self._too_large = 0

    def run(self, path: str, narrowed: Sequence[str] | None) -> str:
        with resolve_path(self._roots, path) as resolved:
            is_file = resolved.info is not None and stat.S_ISREG(resolved.info.st_mode)
        try:
            if is_file:
                with open_file(self._roots, path) as file:
                    self._look(file, file.path)
            else:
                with open_folder(self._roots, path) as folder:
                    self._under(folder, narrowed)
        except SearchTimeout:
            self._notes.append("the search took too long and was ended; simplify or narrow it")
        return self._report(path)

    def _under(self, folder: CheckedFile, narrowed: Sequence[str] | None) -> None:
        walk = DirectoryWalk(folder, self._roots)
        walked = ((file.path, open_in_folder(file.folder, file.name)) for file in walk)
        for path, opened in walked if narrowed is None else self._named(folder, narrowed):
            if not self._includes(path):
                continue
            with suppress(OSError, ToolFailed), opened as file:
                self._look(file, folder.path / path)
            if self._matches >= MAX_MATCHES:
                self._notes.append(f"only {MAX_MATCHES} matches are shown; narrow the search")
                break
        if walk.cut:
            self._notes.append(walk.cut)

    def _named(self, folder: CheckedFile, names: Sequence[str]) -> Iterable[_FileCandidate]:
        own = Path(os.path.realpath(data_directory()))
        for name in names:
            if not (folder.path / name).is_relative_to(own):
                yield name, open_file(self._roots, str(folder.path / name))

    def _includes(self, path: str) -> bool:
        if self._include is None:
            return True
        names = path.split("/")
        return self._include.matches(names) or self._include.matches(names[-1:])

    def _look(self, file: CheckedFile, path: Path) -> None:
        if file.info.st_size > MAX_BYTES:
            self._too_large += 1
            return
        text = decode_text(read_descriptor(file.descriptor, MAX_BYTES))
        if text is None:
            return
        most = min(MAX_PER_FILE, MAX_MATCHES - self._matches)
        before = self._matches
        for number, line in find_matches(text, self._wanted, self._deadline, most):
            if self._matches == before:
                self._files += 1
                self._lines.append(quote(path))
            self._matches += 1
            self._lines.append(f"{number}→{line}")
        if self._matches - before == MAX_PER_FILE:
            self._lines.append(f"[at most {MAX_PER_FILE} matches of a file are shown]")

    def _report(self, path: str) -> str:
        if self._too_large:
            self._notes.append(f"{self._too_large} files over {MAX_BYTES:,} bytes were left out")
        notes = [f"[{note}]" for note in self._notes]
        what = f"{quote(self._wanted.pattern)} in {quote(path)}"
        if not self._matches:
            return "\n".join([f"No match for {what}.", *notes])
        matches = f"{self._matches} match{'es' if self._matches > 1 else ''}"
        files = f"{self._files} file{'s' if self._files > 1 else ''}"
        return "\n".join([f"{matches} in {files} for {what}:", *self._lines, *notes])


# --- ripgrep -----------------------------------------------------------------------------------

_RIPGREP_OPTIONS = (
    "--no-config --no-messages --files-with-matches --null --hidden --no-require-git"
    " --no-ignore-global --no-ignore-exclude --no-ignore-dot --no-ignore-parent --glob=!.git"
    " --multiline --max-filesize=20M --threads=2 --color=never"
)


def find_ripgrep(roots: Sequence[Path]) -> str | None:
    """Where ripgrep is; a program inside the roots is not trusted to be it."""
    found = shutil.which("rg") or ""
    real = Path(os.path.realpath(found))
    inside = any(real.is_relative_to(os.path.realpath(root)) for root in roots)
    return found if found.startswith("/") and not inside else None


async def _narrow_with_ripgrep(
    roots: Sequence[Path], path: str, pattern: str, *, ignore_case: bool
) -> tuple[str, ...] | None:
    """The files in which ripgrep finds a match, relative to the root; None: search all files.

    Only for the whole of a root: below it, ripgrep would not know the ignore files above.
    """
    program = find_ripgrep(roots)
    if program is None or not await asyncio.to_thread(_is_root, roots, path):
        return None
    case = "--ignore-case" if ignore_case else "--case-sensitive"
    options = (*_RIPGREP_OPTIONS.split(), case, f"--regexp={pattern}")
    with open_folder(roots, path) as folder:
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *options,
                ".",
                cwd=folder.path,
                env={"LC_ALL": "C.UTF-8"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except (OSError, ValueError):  # a program for another machine, or a NUL in the pattern
            return None
        said = await _read_to_end(process)
    if said is None or process.returncode not in (0, 1):
        return None  # it may not accept the expression
    names = (os.fsdecode(name).removeprefix("./") for name in said.split(b"\0") if name)
    return tuple(sorted(names))


async def _read_to_end(process: asyncio.subprocess.Process) -> bytes | None:
    """All that a process writes; None if that is too much or takes too long."""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(MAX_SECONDS / 2):
            try:
                await process.stdout.readexactly(MAX_NARROWED + 1)
            except asyncio.IncompleteReadError as end:
                await process.wait()
                return end.partial
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return None


def _is_root(roots: Sequence[Path], path: str) -> bool:
    with resolve_path(roots, path) as resolved:
        return any(resolved.path == Path(os.path.realpath(root)) for root in roots)
