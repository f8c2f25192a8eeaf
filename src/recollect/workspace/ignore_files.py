"""Which files and folders of a project are left alone, by its ignore files.

Patterns mean what git says they mean: nested files, the last match decides, `!` takes back, what is
below an ignored folder cannot be taken back. Deciding takes time linear in pattern and name for
any pattern: a pattern becomes one expression for each name of a path, in which no star is tried
twice. (pathspec's expressions do try: five stars and a name of 100 letters take it 0.3 s, measured,
and twice the letters sixteen times as long.) git's `[[:alpha:]]` is not known here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from recollect.workspace.safe_files import FileContent, read_inside

IGNORE_FILES = (".gitignore", ".geminiignore", ".recollectignore")
# Folders that are large and nobody's own work, whatever the ignore files say.
ALWAYS_IGNORED = frozenset(
    {".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", "dist", "__pycache__"}
    | {".venv", "venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    | {".hypothesis", ".gradle", ".idea", ".cache"}
)
MAX_BYTES = 100_000  # of one ignore file
MAX_RULES = 1_000  # in force at the same time
MAX_PATTERN = 500  # characters


class IgnoreRule(msgspec.Struct, frozen=True):
    names: tuple[re.Pattern[str] | None, ...]  # one for each name of a path; none is `**`
    ignores: bool
    only_folders: bool

    def fits(self, names: Sequence[str]) -> bool:
        match self.names:
            case (None, re.Pattern() as name):  # wherever it stands: by far the most
                return name.fullmatch(names[-1]) is not None
            case _:
                return _fits(self.names, names)


class IgnoreLevel(msgspec.Struct, frozen=True):
    depth: int  # how many names lie between the top and the folder of the ignore file
    rules: tuple[IgnoreRule, ...]


class IgnoreRules(msgspec.Struct, frozen=True):
    """What is ignored below `top`, as far as the ignore files on the way have been read."""

    top: Path
    files: tuple[str, ...] = IGNORE_FILES
    levels: tuple[IgnoreLevel, ...] = ()

    def enter_folder(self, names: Sequence[str]) -> IgnoreRules:
        """The same with the ignore files of one more folder, named from the top."""
        room = MAX_RULES - sum(len(level.rules) for level in self.levels)
        found: list[IgnoreRule] = []
        for file in self.files:
            paths = [self.top.joinpath(*names, file)]
            if file == ".gitignore" and not names:
                paths.insert(0, self.top / ".git" / "info" / "exclude")
            for path in paths:
                if not os.path.lexists(path):  # usual, and far cheaper than to resolve it
                    continue
                read = read_inside(path, (self.top,), MAX_BYTES)
                if isinstance(read, FileContent):
                    found.extend(parse_ignore_file(read.data.decode("utf-8-sig", "replace")))
        if not found or room <= 0:
            return self
        level = IgnoreLevel(len(names), tuple(found[:room]))
        return msgspec.structs.replace(self, levels=(*self.levels, level))

    def ignores(self, names: Sequence[str], *, folder: bool) -> bool:
        """Whether this path is ignored, when no folder above it is."""
        return (folder and names[-1] in ALWAYS_IGNORED) or is_ignored(
            names, self.levels, folder=folder
        )


def is_ignored(
    names: Sequence[str], levels: Sequence[IgnoreLevel], *, folder: bool = False
) -> bool:
    """Whether ignore files leave a path out: the deepest that says anything decides. Whoever walks
    does not enter an ignored folder."""
    for level in reversed(levels):
        below = tuple(names[level.depth :])
        for rule in reversed(level.rules):
            if (folder or not rule.only_folders) and rule.fits(below):
                return rule.ignores
    return False


def read_ignore_rules(
    folder: Path, files: tuple[str, ...] = IGNORE_FILES
) -> tuple[IgnoreRules, list[str]]:
    """The rules that hold in a folder, with those of the repository above it; and its names."""
    folder = folder.resolve()
    top = next((f for f in (folder, *folder.parents) if (f / ".git").exists()), folder)
    names = list(folder.relative_to(top).parts)
    ignoring = IgnoreRules(top, files)
    for depth in range(len(names) + 1):
        ignoring = ignoring.enter_folder(names[:depth])
    return ignoring, names


def parse_ignore_file(text: str) -> tuple[IgnoreRule, ...]:
    """The rules of an ignore file, in its order; names in a row become one expression."""
    lines = text.removeprefix("\ufeff").split("\n", 4 * MAX_RULES)[: 4 * MAX_RULES]
    found = [rule for line in lines if (rule := _rule(line)) is not None][:MAX_RULES]
    rules: list[IgnoreRule] = []
    for (anywhere, ignores, only_folders), several in groupby(found, _kind):
        alike = list(several)
        if anywhere and len(alike) > 1:
            joined = re.compile("|".join(f"(?:{_anywhere(r)})" for r in alike), re.DOTALL)
            alike = [IgnoreRule((None, joined), ignores, only_folders)]
        rules += alike
    return tuple(rules)


def _kind(rule: IgnoreRule) -> tuple[bool, bool, bool]:
    return bool(_anywhere(rule)), rule.ignores, rule.only_folders


def _anywhere(rule: IgnoreRule) -> str:
    """The expression of a rule for a name wherever it stands; nothing for any other rule."""
    match rule.names:
        case (None, re.Pattern() as name):
            return str(name.pattern)
        case _:
            return ""


def _rule(line: str) -> IgnoreRule | None:
    line = line.removesuffix("\r")
    bare = line.rstrip(" ")
    if len(bare) != len(line) and (len(bare) - len(bare.rstrip("\\"))) % 2:
        bare += " "  # one blank that a backslash protects
    if not bare or bare.startswith("#") or len(bare) > MAX_PATTERN:
        return None
    ignores = not bare.startswith("!")
    pattern = bare if ignores else bare[1:]
    only_folders = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    anchored = "/" in pattern
    parts = pattern.removeprefix("/").split("/")
    if not pattern or (len(parts) > 1 and "" in parts):
        return None
    names: list[re.Pattern[str] | None] = []
    for part in parts:
        if anchored and len(part) > 1 and not part.strip("*"):
            names.append(None)
        elif (name := _name(part)) is not None:
            names.append(name)
        else:
            return None
    if not anchored:
        names.insert(0, None)
    return IgnoreRule(tuple(names), ignores, only_folders)


def _name(glob: str) -> re.Pattern[str] | None:
    """One name's pattern; none when it can fit no name, as with a bracket that is never closed."""
    chunks = [""]  # expressions between the stars
    position = 0
    while position < len(glob):
        letter = glob[position]
        position += 1
        if letter == "*":
            chunks.append("")
        elif letter == "?":
            chunks[-1] += "."
        elif letter == "[":
            made, position = _class(glob, position)
            if not made:
                return None
            chunks[-1] += made
        elif letter == "\\":
            if position == len(glob):
                return None
            chunks[-1] += re.escape(glob[position])
            position += 1
        else:
            chunks[-1] += re.escape(letter)
    first, *rest = chunks
    if not rest:
        return re.compile(first, re.DOTALL)
    # the first place where a chunk fits is as good as any later one, so none is tried twice
    middle = "".join(f"(?>.*?{chunk})" for chunk in rest[:-1] if chunk)
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)


def _class(glob: str, position: int) -> tuple[str, int]:
    """The expression of a bracket and where it ends; none when it is never closed."""
    negated = glob[position : position + 1] in ("!", "^")
    position += negated
    members: list[str] = []
    first = position
    while position < len(glob):
        letter = glob[position]
        if letter == "]" and position > first:
            inside = "".join(members)
            return (f"[{'^' if negated else ''}{inside}]" if inside else "(?!)"), position + 1
        low, position = _letter(glob, position)
        high = low
        if glob[position : position + 1] == "-" and glob[position + 1 : position + 2] not in (
            "",
            "]",
        ):
            high, position = _letter(glob, position + 1)
        if low and high and low <= high:
            members.append(f"{re.escape(low)}-{re.escape(high)}")
    return "", position


def _letter(glob: str, position: int) -> tuple[str, int]:
    """One letter of a bracket, which a backslash may stand before, and what is behind it."""
    position += glob[position] == "\\"
    return glob[position : position + 1], position + 1


def _fits(pattern: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    """Whether the pattern fits the whole path; `**` at the end wants at least one name."""
    last = len(pattern) - 1
    reached = {0}  # how many names the pattern so far may have used up
    for number, part in enumerate(pattern):
        if part is None:
            least = min(reached) + (number == last)
            reached = set(range(least, len(names) + 1))
        else:
            reached = {n + 1 for n in reached if n < len(names) and part.fullmatch(names[n])}
        if not reached:
            return False
    return len(names) in reached
