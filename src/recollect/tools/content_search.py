"""Carries out `search_file_content`: lines that match a regular expression.

Ignored files are not searched. Where ripgrep is installed it narrows the search to some of the
files that we found; what is shown we always read ourselves, through checked descriptors, so that
the answer is the same with ripgrep and without. The model writes
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
from typing import NamedTuple, TypeAlias

import regex

from recollect.tools.at_path import drop_pattern_sign
from recollect.tools.directory_listing import parse_pattern
from recollect.tools.directory_walk import DirectoryWalk, WalkedFile
from recollect.tools.glob_pattern import GlobPattern
from recollect.tools.ignored_files import refuse_hidden
from recollect.tools.resolve_path import quote, resolve_path
from recollect.tools.safe_open import (
    MAX_BYTES,
    CheckedFile,
    open_file,
    open_folder,
    open_in_folder,
    read_descriptor,
)
from recollect.tools.secret_access import KeptSecrets, refuse_secret
from recollect.tools.tool import ToolContext, ToolFailed
from recollect.workspace.text_format import decode_text

MAX_MATCHES = 200
MAX_PER_FILE = 50
MAX_NAMED = 3  # files that were left out
MAX_PATTERN = 1_000  # characters
MAX_LINE = 500  # characters of a line that are shown, around what matched
MAX_SECONDS = 15.0
MAX_NARROWED = 5_000_000  # bytes of names that ripgrep may print
MAX_PIECE_SECONDS = 1.0  # an ordinary expression takes a thousandth of it
PIECE_CHARACTERS = 65_536  # characters searched at once: going back over more could take gigabytes


_FileCandidate: TypeAlias = tuple[Path, AbstractContextManager[CheckedFile]]  # not yet open


class SearchTimeout(Exception):
    """Not a TimeoutError: that is an OSError, and files that cannot be read are skipped."""


class SearchFull(Exception):
    """There are more matches than may be shown."""


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
    context: ToolContext,
    *,
    ignore_case: bool,
    respect_git_ignore: bool,
) -> str:
    wanted = compile_pattern(pattern, ignore_case=ignore_case)
    path = context.locate(path)
    include = drop_pattern_sign(include, context.root / path, context.roots)
    files = parse_pattern(include) if include else None
    deadline = SearchDeadline()
    search = _ContentSearch(context, wanted, files, deadline, use_git=respect_git_ignore)
    try:
        narrowed = None
        if program := find_ripgrep(context.roots):
            listed = await asyncio.to_thread(search.list_files, path)
            narrowed = await _narrow_with_ripgrep(program, listed, pattern, ignore_case=ignore_case)
        return await asyncio.to_thread(search.run, path, narrowed)
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


class _ListedFiles(NamedTuple):
    """The files of a folder that a search may look into; none if it begins in a file."""

    folder: Path
    paths: tuple[str, ...]  # from the folder


class _ContentSearch:
    """One search: what it found, and what it left out."""

    def __init__(
        self,
        context: ToolContext,
        wanted: regex.Pattern[str],
        include: GlobPattern | None,
        deadline: SearchDeadline,
        *,
        use_git: bool,
    ) -> None:
        self._context, self._roots = context, context.roots
        self._kept = KeptSecrets(context)
        self._wanted, self._include = wanted, include
        self._deadline, self._use_git = deadline, use_git
        self._lines: list[str] = []
        self._notes: list[str] = []
        self._walk_notes: tuple[str, ...] = ()
        self._too_large: list[Path] = []
        self._matches = self._files = 0

    def list_files(self, path: str) -> _ListedFiles | None:
        """The files that a search of this folder looks into; None for a single file."""
        if self._is_file(path):
            return None
        with open_folder(self._roots, path) as folder:
            walk = self._walk(folder)
            paths = tuple(file.path for file in walk if self._wants(file, folder.path))
        self._note_walk(walk)
        return _ListedFiles(folder.path, paths)

    def run(self, path: str, narrowed: _ListedFiles | None) -> str:
        try:
            if narrowed is not None:
                self._look_at_all(
                    (narrowed.folder / name, open_file(self._roots, str(narrowed.folder / name)))
                    for name in narrowed.paths
                )
            elif self._is_file(path):
                with open_file(self._roots, path) as file:
                    refuse_hidden(self._roots, path, file.path)
                    refuse_secret(self._context, path, file.path)
                    self._look(file, file.path)
            else:
                with open_folder(self._roots, path) as folder:
                    self._under(folder)
            self._notes += self._walk_notes
        except SearchFull:
            self._notes.append(f"only {MAX_MATCHES} matches are shown; narrow the search")
        except SearchTimeout:
            self._notes.append("the search took too long and was ended; simplify or narrow it")
        return self._report(path)

    def _is_file(self, path: str) -> bool:
        with resolve_path(self._roots, path) as resolved:
            refuse_hidden(self._roots, path, resolved.path)
            return resolved.info is not None and stat.S_ISREG(resolved.info.st_mode)

    def _walk(self, folder: CheckedFile) -> DirectoryWalk:
        return DirectoryWalk(folder, self._roots, use_git=self._use_git, counts=self._includes)

    def _under(self, folder: CheckedFile) -> None:
        self._too_large = []  # this looks at all files again
        walk = self._walk(folder)
        self._look_at_all(
            (folder.path / file.path, open_in_folder(file.folder, file.name))
            for file in walk
            if self._includes(file.path) and not self._kept.keeps(folder.path / file.path)
        )
        self._note_walk(walk)

    def _look_at_all(self, files: Iterable[_FileCandidate]) -> None:
        for path, opened in files:
            with suppress(OSError, ToolFailed), opened as file:
                self._look(file, path)
            if self._matches >= MAX_MATCHES:
                raise SearchFull

    def _note_walk(self, walk: DirectoryWalk) -> None:
        self._walk_notes = tuple(filter(None, (walk.cut, walk.left_out.note())))

    def _includes(self, path: str) -> bool:
        if self._include is None:
            return True
        names = path.split("/")
        return self._include.matches(names) or self._include.matches(names[-1:])

    def _wants(self, file: WalkedFile, folder: Path) -> bool:
        """Whether a file is one for ripgrep, which would pass over large files in silence."""
        if not self._includes(file.path) or self._kept.keeps(folder / file.path):
            return False
        with suppress(OSError):
            info = os.stat(file.name, dir_fd=file.folder, follow_symlinks=False)
            if stat.S_ISREG(info.st_mode) and info.st_size > MAX_BYTES:
                self._too_large.append(folder / file.path)
                return False
        return True

    def _look(self, file: CheckedFile, path: Path) -> None:
        if file.info.st_size > MAX_BYTES:
            self._too_large.append(path)
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
        if kept := self._kept.note():
            self._notes.append(kept)
        if self._too_large:
            self._notes.append(_describe_large(self._too_large))
        notes = [f"[{note}]" for note in self._notes]
        what = f"{quote(self._wanted.pattern)} in {quote(path)}"
        if not self._matches:
            return "\n".join([f"No match for {what}.", *notes])
        matches = f"{self._matches} match{'es' if self._matches > 1 else ''}"
        files = f"{self._files} file{'s' if self._files > 1 else ''}"
        return "\n".join([f"{matches} in {files} for {what}:", *self._lines, *notes])


def _describe_large(files: Sequence[Path]) -> str:
    what, them = ("1 file", "it") if len(files) == 1 else (f"{len(files):,} files", "them")
    named = ", ".join(quote(path) for path in files[:MAX_NAMED])
    more = ", …" if len(files) > MAX_NAMED else ""
    return (
        f"{what} over {MAX_BYTES:,} bytes left out: {named}{more}; search {them} with a command "
        f"such as grep -n, or read parts of {them} with read_file, offset and limit"
    )


# --- ripgrep -----------------------------------------------------------------------------------

MAX_WORDS = 200_000  # bytes of names in one command line: far below what Linux accepts
_RIPGREP_OPTIONS = (
    "--no-config --no-messages --files-with-matches --null --no-ignore --hidden --text"
    " --multiline --max-filesize=20M --threads=2 --color=never"
)


def find_ripgrep(roots: Sequence[Path]) -> str | None:
    """Where ripgrep is; a program inside the roots is not trusted to be it."""
    found = shutil.which("rg") or ""
    real = Path(os.path.realpath(found))
    inside = any(real.is_relative_to(os.path.realpath(root)) for root in roots)
    return found if found.startswith("/") and not inside else None


async def _narrow_with_ripgrep(
    program: str, listed: _ListedFiles | None, pattern: str, *, ignore_case: bool
) -> _ListedFiles | None:
    """Those of the files in which ripgrep finds a match; None: look into all of them."""
    if listed is None:
        return None
    case = "--ignore-case" if ignore_case else "--case-sensitive"
    options = (*_RIPGREP_OPTIONS.split(), case, f"--regexp={pattern}", "--")
    found: set[bytes] = set()
    try:
        async with asyncio.timeout(MAX_SECONDS / 2):
            for names in _batches(listed.paths):
                process = await asyncio.create_subprocess_exec(
                    program,
                    *options,
                    *names,
                    cwd=listed.folder,
                    env={"LC_ALL": "C.UTF-8"},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                )
                said = await _read_to_end(process)
                if said is None or process.returncode not in (0, 1):
                    return None  # it may not accept the expression
                found.update(said.split(b"\0"))
    except (OSError, ValueError, TimeoutError):
        return None  # a program for another machine, a NUL in the pattern, or too many files
    paths = tuple(path for path in listed.paths if os.fsencode(f"./{path}") in found)
    return _ListedFiles(listed.folder, paths)


def _batches(paths: Iterable[str]) -> Iterator[list[bytes]]:
    """The paths as words of command lines that are not too long."""
    batch: list[bytes] = []
    size = 0
    for path in paths:
        word = os.fsencode(f"./{path}")
        if batch and size + len(word) > MAX_WORDS:
            yield batch
            batch, size = [], 0
        batch.append(word)
        size += len(word) + 1
    if batch:
        yield batch


async def _read_to_end(process: asyncio.subprocess.Process) -> bytes | None:
    """All that a process writes; None if that is too much."""
    assert process.stdout is not None
    try:
        try:
            await process.stdout.readexactly(MAX_NARROWED + 1)
        except asyncio.IncompleteReadError as end:
            await process.wait()
            return end.partial
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return None
