"""Expands `@path` in a memory file: the other file, in place or appended.

`tree` inserts each file where it is mentioned, between comments that mark its start and end; `flat`
leaves the text as it is and appends every file once. In both, imports nest at most `MAX_DEPTH`
deep, code is not searched, links are resolved and must end in one of the given folders, files that
the user hides from the agent stay out, and sizes are bounded. Failed imports become comments in
place; nothing raises.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from recollect.workspace.hidden_paths import find_hider
from recollect.workspace.safe_files import (
    FileContent,
    ReadRefused,
    decode_content,
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
from recollect.workspace.workspace_secrets import SecretFinder

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
    expand = importer.flat if way == "flat" else importer.tree
    return ExpandedText(expand(text, path, (resolve_or_keep(path),)), tuple(importer.problems))


class _ImportedFile(NamedTuple):
    text: str
    path: Path  # as mentioned: its own imports are relative to this folder
    chain: tuple[Path, ...]  # the files that lead to it and itself, links resolved


class _Importer:
    """What one text may still import, and the problems so far."""

    def __init__(self, roots: tuple[Path, ...], most: int) -> None:
        self.roots, self.room, self.attempts = roots, most, MAX_IMPORTS
        self.problems: list[str] = []

    def tree(self, text: str, path: Path, chain: tuple[Path, ...]) -> str:
        parts: list[str] = []
        for piece in split_at_mentions(text, _file_mentions(text, path)):
            if isinstance(piece, str):
                parts.append(piece)
            elif isinstance(read := self._import(piece.path, path, chain), _ImportedFile):
                parts.append(_between_comments(piece.path, self.tree(*read)))
            else:
                parts.append(text[piece.start : piece.end] if read is None else read)
        return "".join(parts)

    def flat(self, text: str, path: Path, chain: tuple[Path, ...]) -> str:
        parts, known = [text.rstrip()], set(chain)
        pending = deque([_ImportedFile(text, path, chain)])
        while pending:
            text, path, chain = pending.popleft()
            for mention in _file_mentions(text, path):
                real = resolve_or_keep(resolve_named(path.parent, mention.path))
                if real in known and real not in chain:
                    continue
                read = self._import(mention.path, path, chain)
                if isinstance(read, _ImportedFile):
                    known.add(read.chain[-1])
                    parts.append(_between_comments(mention.path, read.text))
                    pending.append(read)
                elif read is not None:
                    parts.append(read)
        return "\n\n".join(parts) + "\n"

    def _import(
        self, named: str, importer: Path, chain: tuple[Path, ...]
    ) -> _ImportedFile | str | None:
        """A file to import, or a comment that says why not; none after too many attempts: then
        mentions are left as they are."""
        if self.attempts <= 0:
            return None
        self.attempts -= 1
        read = self._read(resolve_named(importer.parent, named), chain)
        if not isinstance(read, ReadRefused):
            return read
        problem = f"@{_comment_path(named)}: {read.why}"
        self.problems.append(problem)
        return f"<!-- Import failed: {problem} -->"

    def _read(self, path: Path, chain: tuple[Path, ...]) -> _ImportedFile | ReadRefused:
        if not self.attempts:
            return ReadRefused(
                f"more than {MAX_IMPORTS} imports; this one and the rest are left out"
            )
        if (real := resolve_or_keep(path)) in chain:
            cycle = " → ".join(step.name for step in (*chain[chain.index(real) :], real))
            return ReadRefused(f"it imports itself ({_comment_path(cycle)})")
        if len(chain) > MAX_DEPTH:
            return ReadRefused(f"imports are nested more than {MAX_DEPTH} deep")
        found = read_unless_secret(path, self.roots, MAX_BYTES)
        if isinstance(found, ReadRefused):
            return found
        if hider := find_hider(found.path, self.roots, use_git=False):
            return ReadRefused(f"it {hider.reason}")
        if found.size > self.room:
            return ReadRefused("the imports together would be too long")
        text = decode_content(found)
        if isinstance(text, ReadRefused):
            return text
        self.room -= len(text)
        return _ImportedFile(strip_invisible(text), path, (*chain, found.path))


def read_unless_secret(path: Path, roots: Sequence[Path], limit: int) -> FileContent | ReadRefused:
    """Read a file that a project's memory names, unless it is a secret of the workspace."""
    found = read_inside(path, roots, limit)
    if isinstance(found, ReadRefused):
        return found
    if SecretFinder(roots).is_secret(os.path.normpath(path), found.path):
        return ReadRefused("it is a secret of the workspace, which only a prompt can mention")
    return found


def _between_comments(path: str, text: str) -> str:
    named = _comment_path(path)
    start, end = f"<!-- Imported from: {named} -->", f"<!-- End of import from: {named} -->"
    return f"{start}\n{text.rstrip()}\n{end}"


def _file_mentions(text: str, path: Path) -> tuple[Mention, ...]:
    """Mentions of files: they look like a path, or the file exists. `@someone` is prose."""
    return tuple(m for m in find_mentions(text) if _is_path(m.path) or _exists(m.path, path.parent))


def _is_path(named: str) -> bool:
    return "/" in named or "." in named


def _exists(named: str, folder: Path) -> bool:
    try:
        return resolve_named(folder, named).exists()
    except (OSError, ValueError):
        return False


def _comment_path(path: str) -> str:
    """A path inside a comment, which it must not close."""
    return one_line(path).replace("--", "-\u2010").replace(">", "\u203a")
