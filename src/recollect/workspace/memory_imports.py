"""`@path` in a memory file: the other file, in its place or in a list.

`tree` puts each file where it is named, between comments that say where it begins and ends; `flat`
leaves the text as it is and appends every file once. In both, at most `MAX_DEPTH` files lie one in
another, code is not searched, links are resolved and must end in one of the given folders, and
sizes are bounded. Whatever cannot be imported is said in a comment at its place; nothing raises.
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
MAX_TOTAL = 400_000  # characters of all that is imported into one text
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
    """The text of the file at `path` with what it imports; `most` characters of that."""
    importer = _Importer(tuple(roots), most)
    return importer.flat(text, path) if way == "flat" else importer.tree(text, path)


class _File(NamedTuple):
    text: str
    path: Path  # as it was named, so that its own imports begin in its folder
    real: Path


class _Importer:
    """What one text may still import, and what went wrong so far."""

    def __init__(self, roots: tuple[Path, ...], most: int) -> None:
        self.roots, self.room, self.attempts = roots, most, MAX_IMPORTS
        self.problems: list[str] = []

    def tree(self, text: str, path: Path) -> ExpandedText:
        made = self._expanded(text, path, (_real(path),))
        return ExpandedText(made, tuple(self.problems))

    def _expanded(self, text: str, path: Path, chain: tuple[Path, ...]) -> str:
        made: list[str] = []
        for piece in split_at_mentions(text, _importing(text, path)):
            if isinstance(piece, str):
                made.append(piece)
                continue
            read = self._read(piece.path, path, chain)
            named = _named(piece.path)
            if isinstance(read, ReadRefused):
                made.append(self._failed(named, read.why))
            elif read is None:
                made.append(text[piece.start : piece.end])
            else:
                below = self._expanded(read.text, read.path, (*chain, read.real))
                made.append(f"<!-- Imported from: {named} -->\n{below.rstrip()}\n")
                made.append(f"<!-- End of import from: {named} -->")
        return "".join(made)

    def flat(self, text: str, path: Path) -> ExpandedText:
        made, known = [text.rstrip()], {_real(path)}
        waiting: deque[tuple[str, Path, tuple[Path, ...]]] = deque([(text, path, (_real(path),))])
        while waiting:
            text, path, chain = waiting.popleft()
            for mention in _importing(text, path):
                real = _real(resolve_named(path.parent, mention.path))
                if real in known and real not in chain:
                    continue
                read = self._read(mention.path, path, chain)
                named = _named(mention.path)
                if isinstance(read, ReadRefused):
                    made.append(self._failed(named, read.why))
                elif read is not None:
                    known.add(read.real)
                    made.append(
                        f"<!-- Imported from: {named} -->\n{read.text.rstrip()}\n"
                        f"<!-- End of import from: {named} -->"
                    )
                    waiting.append((read.text, read.path, (*chain, read.real)))
        return ExpandedText("\n\n".join(made) + "\n", tuple(self.problems))

    def _read(
        self, named: str, importer: Path, chain: tuple[Path, ...]
    ) -> _File | ReadRefused | None:
        """A file to import; nothing when so much was tried that mentions are left as they are."""
        if self.attempts <= 0:
            return None
        self.attempts -= 1
        if not self.attempts:
            return ReadRefused(f"more than {MAX_IMPORTS} imports; this and the rest are left out")
        path = resolve_named(importer.parent, named)
        if (real := _real(path)) in chain:
            circle = " → ".join(step.name for step in (*chain[chain.index(real) :], real))
            return ReadRefused(f"it imports itself ({_named(circle)})")
        if len(chain) > MAX_DEPTH:
            return ReadRefused(f"more than {MAX_DEPTH} files one in another")
        found = read_inside(path, self.roots, min(MAX_BYTES, self.room) + 1)
        if isinstance(found, ReadRefused):
            return found
        if found.size > MAX_BYTES:
            return ReadRefused(f"it has {found.size:,} bytes, the limit is {MAX_BYTES:,}")
        if found.size > self.room:
            return ReadRefused("what is imported would become too long in all")
        text = decode_text(found.data)
        if isinstance(text, ReadRefused):
            return text
        self.room -= len(text)
        return _File(strip_invisible(text), path, found.path)

    def _failed(self, named: str, why: str) -> str:
        self.problems.append(f"@{named}: {why}")
        return f"<!-- Import failed: @{named}: {why} -->"


def _importing(text: str, path: Path) -> tuple[Mention, ...]:
    """Mentions that mean a file: they look like a path, or there is one. `@someone` is prose."""
    found = []
    for mention in find_mentions(text):
        like_path = "/" in mention.path or "." in mention.path
        if like_path or path_exists(resolve_named(path.parent, mention.path)):
            found.append(mention)
    return tuple(found)


def _named(path: str) -> str:
    """A path for a comment, which it must not end."""
    return one_line(path).replace("--", "-\u2010").replace(">", "\u203a")


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path
