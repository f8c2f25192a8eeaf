"""What find would run, remove or name, read from its expression. Pure; linear."""

from __future__ import annotations

import re
from itertools import dropwhile, takewhile
from typing import NamedTuple

from recollect.permissions.find_expression import ANY_NAME, may_find
from recollect.permissions.parsed_line import word_set
from recollect.permissions.program_record import Objection
from recollect.permissions.protected_paths import glob_finds_secret

_FIND_FLAGS = word_set(
    "-H -L -P -a -and -daystart -depth -d -empty -executable -false -follow -ignore_readdir_race"
    " -ls -mount -nogroup -noleaf -not -nouser -o -or -print -print0 -prune -quit -readable -true"
    " -warn -nowarn -writable -xdev"
)
_FIND_VALUED = word_set(
    "-amin -anewer -atime -cmin -cnewer -ctime -group -gid -ilname -iname -inum -ipath -iregex"
    " -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -newermt -newerat"
    " -newerct -path -perm -printf -regex -regextype -samefile -size -type -uid -used -user"
    " -wholename -xtype"
)
_FIND_GLOBS = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"})
_FIND_EXPRESSIONS = frozenset({"-regex", "-iregex"})
_FIND_RUNS = frozenset({"-exec", "-execdir"})
_FIND_ACTS = _FIND_RUNS | {"-delete"}


_FIND_EXPRESSION = re.compile(r"[-(!]")


class FindReading(NamedTuple):
    """What find would run (`{}` stands for a file), and where it starts."""

    commands: tuple[tuple[str, ...], ...] = ()
    places: tuple[int, ...] = ()  # where each of them begins
    deletes: bool = False
    patterns: tuple[str, ...] = ()  # of the names it finds
    has_regex: bool = False  # nobody can tell which names an expression finds
    objection: Objection | None = None
    starts: tuple[str, ...] = ()
    narrowed: bool = False  # a name or emptiness limits what it deletes or passes on
    left_out: frozenset[int] = frozenset()  # positions of patterns after `!`

    def takes_all_of(self, folder: str) -> bool:
        """Whether it passes on whatever is in the working folder."""
        whole = (".", "", folder.rstrip("/"), "$PWD", "${PWD}", "$(pwd)", "`pwd`")
        starts = [start.rstrip("/").removesuffix("/*") for start in self.starts] or ["."]
        return not self.narrowed and any(start in whole or start == "*" for start in starts)


def _is_narrowed(words: tuple[str, ...]) -> bool:
    """Whether a test that limits the names stands before what find does with them, and nothing
    turns it around: `find . ! -name a -delete` and `find . -name a -o -delete` take the rest."""
    acts = [at for at, word in enumerate(words) if word in _FIND_ACTS]
    before = words[: acts[0]] if acts else words
    if not {"-o", "-or", ","}.isdisjoint(words):
        return not may_find(words, ".", ANY_NAME)
    for at, word in enumerate(before):
        if at > 0 and before[at - 1] in ("!", "-not"):
            continue
        pattern = before[at + 1] if word in _FIND_GLOBS and at + 1 < len(before) else ""
        if word == "-empty" or pattern.strip("*?./"):
            return True
    return False


_MOST_PATTERNS = 100


def read_find(words: tuple[str, ...]) -> FindReading:
    """Read find's expression; the first word on no list is objected to."""
    commands: dict[int, tuple[str, ...]] = {}
    patterns: dict[int, str] = {}
    left_out = _left_out(words)
    deletes, at = False, 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in _FIND_VALUED:
            if word in _FIND_GLOBS and at < len(words):
                patterns[at] = words[at]
            at += 1
        elif word in _FIND_RUNS:
            end = _end_of_exec(words, at)
            if word == "-execdir" or end <= at:
                return FindReading(objection=_refuse(f"find {word} is not plain"))
            commands[at] = words[at:end]
            at = end + 1
        elif word == "-delete":
            deletes = True
        elif word.startswith("-") and word not in _FIND_FLAGS and not word[1:].isdecimal():
            why = f"find {word[:40]} is not among what is known to be harmless"
            return FindReading(objection=_refuse(why))
    if (objected := _object_to_patterns(patterns, left_out)) is not None:
        return FindReading(objection=objected)
    has_regex = not _FIND_EXPRESSIONS.isdisjoint(words)
    if has_regex and (commands or deletes):
        return FindReading(objection=_refuse("nobody can tell which files find -regex means"))
    paths = dropwhile(lambda word: word in ("-H", "-L", "-P"), words)
    starts = tuple(takewhile(lambda word: not _FIND_EXPRESSION.match(word), paths))
    return FindReading(
        tuple(commands.values()),
        tuple(commands),
        deletes,
        tuple(patterns.values()),
        has_regex,
        starts=starts,
        narrowed=_is_narrowed(words),
        left_out=left_out,
    )


def _object_to_patterns(patterns: dict[int, str], left_out: frozenset[int]) -> Objection | None:
    if len(patterns) > _MOST_PATTERNS:
        return _refuse("it has too many patterns to look at")
    for at, pattern in patterns.items():
        if at not in left_out and glob_finds_secret(pattern):
            return _refuse(f"{pattern[:80]!r} may hold secrets")
    return None


def _left_out(words: tuple[str, ...]) -> frozenset[int]:
    """Positions of the patterns that `!` turns around."""
    found: set[int] = set()
    at = turned = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in _FIND_VALUED:
            found |= {at} if turned == 1 and word in _FIND_GLOBS else set()
            at += 1
        elif word in _FIND_RUNS:
            at = max(at, _end_of_exec(words, at) + 1)
        turned = turned + 1 if word in ("!", "-not") else 0
    return frozenset(found)


def _end_of_exec(words: tuple[str, ...], start: int) -> int:
    """Where `;` is, or `+` directly after `{}`: anywhere else it is a word of the command."""
    for at in range(start, len(words)):
        if words[at] == ";" or (words[at] == "+" and words[at - 1] == "{}"):
            return at
    return -1


def _refuse(reason: str) -> Objection:
    return Objection("refused", reason)
