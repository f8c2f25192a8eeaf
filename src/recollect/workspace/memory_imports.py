"""Expands `@path` in a memory file: the other file, in place or appended.

`tree` inserts each file where it is mentioned, between comments that mark its start and end; `flat`
leaves the text as it is and appends every file once. In both, imports nest at most `MAX_DEPTH`
deep, code is not searched, links are resolved and must end in one of the given folders, and sizes
are bounded. Failed imports become comments in place; nothing raises.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from recollect.workspace.safe_files import (
    ReadRefused,
    decode_text,
    path_exists,
    read_inside,
    resolve_named,
    resolve_or_keep,
)
from recollect.workspace.untrusted_text import (
    Mention,
    find_mentions,
    one_line,
    split_at_mentions,
    strip_invisible,
)

MAX_DEPTH = 5
MAX_IMPORTS = 100  # attempts for one text
MAX_BYTES = 200_000  # of one file
MAX_TOTAL = 400_000  # characters imported into one text
ImportStyle: TypeAlias = Literal["tree", "flat"]


class ExpandedText(NamedTuple):
    text: str
    problems: tuple[str, ...] = ()


def expand_imports(
    text: str,
    path: Path,
    roots: Sequence[Path],
    way: ImportStyle = "tree",
    *,
    most: int = MAX_TOTAL,
) -> ExpandedText:
    """The text of the file at `path` with its imports, at most `most` characters of them."""
    importer = _Importer(tuple(roots), most)
    return importer.flat(text, path) if way == "flat" else importer.tree(text, path)


class _ImportedFile(NamedTuple):
    text: str
    path: Path  # as mentioned: its own imports are relative to this folder
    real: Path


class _Importer:
    """What one text may still import, and the problems so far."""

    def __init__(self, roots: tuple[Path, ...], most: int) -> None:
        self.roots, self.room, self.attempts = roots, most, MAX_IMPORTS
        self.problems: list[str] = []

    def tree(self, text: str, path: Path) -> ExpandedText:
        made = self._expand(text, path, (resolve_or_keep(path),))
        return ExpandedText(made, tuple(self.problems))

    def _expand(self, text: str, path: Path, chain: tuple[Path, ...]) -> str:
        parts: list[str] = []
        for piece in split_at_mentions(text, _file_mentions(text, path)):
            if isinstance(piece, str):
                parts.append(piece)
                continue
            read = self._read(piece.path, path, chain)
            named = _comment_path(piece.path)
            if isinstance(read, ReadRefused):
                parts.append(self._failed(named, read.why))
            elif read is None:
                parts.append(text[piece.start : piece.end])
            else:
                below = self._expand(read.text, read.path, (*chain, read.real))
                parts.append(f"<!-- Imported from: {named} -->\n{below.rstrip()}\n")
                parts.append(f"<!-- End of import from: {named} -->")
        return "".join(parts)

    def flat(self, text: str, path: Path) -> ExpandedText:
        parts, known = [text.rstrip()], {resolve_or_keep(path)}
        pending: deque[tuple[str, Path, tuple[Path, ...]]] = deque(
            [(text, path, (resolve_or_keep(path),))]
        )
        while pending:
            text, path, chain = pending.popleft()
            for mention in _file_mentions(text, path):
                real = resolve_or_keep(resolve_named(path.parent, mention.path))
                if real in known and real not in chain:
                    continue
                read = self._read(mention.path, path, chain)
                named = _comment_path(mention.path)
                if isinstance(read, ReadRefused):
                    parts.append(self._failed(named, read.why))
                elif read is not None:
                    known.add(read.real)
                    parts.append(
                        f"<!-- Imported from: {named} -->\n{read.text.rstrip()}\n"
                        f"<!-- End of import from: {named} -->"
                    )
                    pending.append((read.text, read.path, (*chain, read.real)))
        return ExpandedText("\n\n".join(parts) + "\n", tuple(self.problems))

    def _read(
        self, named: str, importer: Path, chain: tuple[Path, ...]
    ) -> _ImportedFile | ReadRefused | None:
        """A file to import; none after too many attempts: then mentions are left as they are."""
        if self.attempts <= 0:
            return None
        self.attempts -= 1
        if not self.attempts:
            return ReadRefused(
                f"more than {MAX_IMPORTS} imports; this one and the rest are left out"
            )
        path = resolve_named(importer.parent, named)
        if (real := resolve_or_keep(path)) in chain:
            cycle = " → ".join(step.name for step in (*chain[chain.index(real) :], real))
            return ReadRefused(f"it imports itself ({_comment_path(cycle)})")
        if len(chain) > MAX_DEPTH:
            return ReadRefused(f"imports are nested more than {MAX_DEPTH} deep")
        found = read_inside(path, self.roots, MAX_BYTES)
        if isinstance(found, ReadRefused):
            return found
        if found.size > self.room:
            return ReadRefused("the imports together would be too long")
        text = decode_text(found.data)
        if isinstance(text, ReadRefused):
            return text
        self.room -= len(text)
        return _ImportedFile(strip_invisible(text), path, found.path)

    def _failed(self, named: str, why: str) -> str:
        self.problems.append(f"@{named}: {why}")
        return f"<!-- Import failed: @{named}: {why} -->"


def _file_mentions(text: str, path: Path) -> tuple[Mention, ...]:
    """Mentions of files: they look like a path, or the file exists. `@someone` is prose."""
    found = []
    for mention in find_mentions(text):
        is_path = "/" in mention.path or "." in mention.path
        if is_path or path_exists(resolve_named(path.parent, mention.path)):
            found.append(mention)
    return tuple(found)


def _comment_path(path: str) -> str:
    """A path inside a comment, which it must not close."""
    return one_line(path).replace("--", "-\u2010").replace(">", "\u203a")
