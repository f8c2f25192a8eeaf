"""What a command reads without naming it: folders, and the names that a listing prints.

A `FolderRead` says which part of a folder a command reads, by its own words: with or without
hidden files, how deep, which names are left out. Which files with a secret name really lie in a
folder is the one fact that a line does not tell; whoever judges passes a function that looks.
Pure; the time is that of the patterns times the number of such files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeAlias

import msgspec

from recollect.permissions.find_expression import may_find
from recollect.permissions.protected_paths import glob_matches, normal_path, replace_brackets
from recollect.permissions.shell_values import ANY_TEXT, expand_braces, expansion_pattern

_MAX_PARTS = 40  # of a path or a pattern
_VALUE_SEPARATORS = re.compile(r"[=:,@]")


class SecretFile(NamedTuple):
    path: str  # from the folder that was looked through
    tracked: bool = True  # git has it, so `git ls-files` names it
    shown: bool = False  # an ignore file says that searches are to show it though it is hidden


class FolderSecrets(msgspec.Struct, frozen=True):
    """The files with a secret name below a folder."""

    files: tuple[SecretFile, ...] = ()
    complete: bool = True  # False: there is too much to look through
    exists: bool = True  # False: there is no such folder, or it is a file
    has_option_names: bool = False  # the name of a file begins with `-`


FindSecrets: TypeAlias = Callable[[str], FolderSecrets]  # by the folder, absolute or from the root


def assume_secrets(_folder: str) -> FolderSecrets:
    """Where nobody looks, any folder may hold secrets."""
    return FolderSecrets(complete=False)


class NameFilter(NamedTuple):
    keeps: bool
    glob: str
    folders: bool = False  # it is compared with the folders of a path, not with the file's name

    def matches(self, names: list[str]) -> bool:
        if self.keeps:  # a pattern that is not plain keeps everything, and leaves out nothing
            plain = not any(sign in self.glob for sign in "[\\")
            return not plain or any(_name_matches(self.glob, one) for one in (names[-1], names))
        if any(sign in self.glob for sign in "[\\"):
            return False
        compared = names[:-1] if self.folders else names[-1:]
        whole = "/" in self.glob.strip("/") and _name_matches(self.glob, names)
        return whole or any(_name_matches(self.glob, name) for name in compared)


def _name_matches(glob: str, name: str | list[str]) -> bool:
    text = name if isinstance(name, str) else "/".join(name)
    plain = glob.removeprefix("./").removeprefix("**/").strip("/")
    return any(fnmatchcase(text, one) for one in expand_braces(plain))


class FolderRead(msgspec.Struct, frozen=True, kw_only=True):
    """Which files below a folder a command reads."""

    folder: str = "."
    hidden: bool = True  # also names that begin with a dot
    deepest: int = 0  # folders to go down; 0: all
    filters: tuple[NameFilter, ...] = ()  # the last that matches decides
    otherwise: bool = True  # what counts if none matches
    tracked_only: bool = False
    found_by: tuple[str, ...] = ()  # find's expression
    pattern: str = ""  # a pattern of the shell: only what it matches
    word: str = ""  # what a name becomes: `sub/$f`

    def covers(self, file: SecretFile) -> bool:
        names = file.path.split("/")
        if len(names) > _MAX_PARTS:
            return True
        if (self.deepest and len(names) > self.deepest) or (self.tracked_only and not file.tracked):
            return False
        decided = next((one for one in reversed(self.filters) if one.matches(names)), None)
        if not (self.otherwise if decided is None else decided.keeps):
            return False
        dotted = any(name.startswith(".") for name in names)
        if dotted and not self.hidden and not file.shown and decided is None:
            return False
        if self.found_by and not may_find(self.found_by, self.folder, file.path):
            return False
        if self.pattern and not _shell_matches(self.pattern, names):
            return False
        return not self.word or self._may_become(names)

    def _may_become(self, names: list[str]) -> bool:
        """Whether the word that takes the listed name can name this file."""
        path = "/".join(names)
        whole = f"{self.folder.rstrip('/')}/{path}"
        spelled = {path, names[-1], whole, whole.removeprefix("./"), f"./{path}"}
        for one in (*expand_braces(self.word), *_values_in(self.word)):
            pattern = normal_path(replace_brackets(expansion_pattern(one).lower()))
            if pattern[:1] in ("/", "~") or ".." in pattern.split("/"):  # wherever that leads
                pattern, compared = pattern.rpartition("/")[2], {names[-1]}
            else:
                compared = spelled
            if any(glob_matches(pattern, text.lower()) for text in compared):
                return True
        return False


def _values_in(word: str) -> Iterator[str]:
    """What an option's own word can hold: `if=$f`, `--file=$f`, `-f$f`, `@$f`."""
    for part in _VALUE_SEPARATORS.split(word):
        if part != word and any(sign in part for sign in "$`"):
            yield part
    starts = [at for at in map(word.find, "$`") if at >= 0]
    if word.startswith("-") and starts:
        yield word[min(starts) :]


def _shell_matches(pattern: str, names: list[str]) -> bool:
    """Whether the shell replaces the pattern by this path: `*` matches neither `/` nor a dot at
    the beginning of a name."""
    for one in expand_braces(pattern):
        parts = [part for part in one.lower().split("/") if part not in ("", ".")]
        if len(parts) > _MAX_PARTS or _parts_match(parts, [name.lower() for name in names]):
            return True
    return False


def _parts_match(parts: list[str], names: list[str]) -> bool:
    reachable = {0}  # how many of the names the parts so far can have matched
    for part in parts:
        plain = replace_brackets(part)
        following = set[int]()
        for at in reachable:
            if part == "**":
                following |= set(range(at, len(names) + 1))
            if at < len(names) and _part_matches(plain, names[at]):
                following.add(at + 1)
        reachable = following
    return len(names) in reachable


def _part_matches(part: str, name: str) -> bool:
    if name.startswith(".") and part[:1] in ("*", "?"):
        return False
    return glob_matches(part, name)


def starting_folder(word: str) -> str:
    """The folder below which a word lies that the shell completes: `src/*.py` lies in `src`."""
    for own in ("$PWD", "${PWD}", "$(pwd)", "`pwd`", "~+"):
        if word == own or word.startswith(f"{own}/"):
            word = f".{word[len(own) :]}"
    for home in ("$HOME", "${HOME}"):
        if word == home or word.startswith(f"{home}/"):
            word = f"~{word[len(home) :]}"
    certain = len(word)
    for sign in "$`*?[{" + ANY_TEXT:
        at = word.find(sign)
        certain = at if 0 <= at < certain else certain
    if certain == len(word):
        return word or "."
    folder, slash, _ = word[:certain].rpartition("/")
    return folder or ("/" if slash else ".")
