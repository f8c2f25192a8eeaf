"""The variables of a line: which may be assigned, and which values they can have.

A line may not change a variable that tells the shell how to read it, where to find programs or
what to run (`PATH`, `IFS`, `BASH_ENV`, `LC_ALL` …). Arithmetic evaluates the *value* of a variable,
and a value such as `a[$(command)]` runs a command; so it may use only variables to which the line
itself assigns whole numbers and nothing else. Where every value that a line assigns to a variable
is literal, `known_values` lists them, and a word with that variable can be judged by its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from recollect.permissions.parsed_line import CommandWords, UnsupportedSyntax, word_set

MAX_VALUES = 32  # of one word or one command
MAX_SUBSTITUTED = 20_000  # characters that known values may add to a line
_SHELL_NAMES = word_set(
    "BASHOPTS CDPATH COLUMNS COPROC DIRSTACK ENV EUID EXECIGNORE FCEDIT FIGNORE FPATH FUNCNAME"
    " FUNCNEST GLOBIGNORE GROUPS HOME IFS IGNOREEOF INPUTRC INSIDE_EMACS LANG LANGUAGE LINENO LINES"
    " MAPFILE NLSPATH OLDPWD OPTARG OPTERR OPTIND PATH PIPESTATUS POSIXLY_CORRECT PPID"
    " PROMPT_COMMAND PROMPT_DIRTRIM PWD RANDOM REPLY SECONDS SHELL SHELLOPTS SHLVL SRANDOM TERM"
    " TIMEFORMAT TMOUT UID _"
    " auto_resume histchars"
)
_SHELL_NAME = re.compile(r"(BASH|COMP_|DYLD_|EPOCH|HIST|LC_|LD_|MAIL|PS[0-9]|READLINE_)")
_READING_NAME = re.compile(r"POSIXLY_CORRECT\b|LC_|LANG\b")  # how the shell reads what follows
_COUNTERS = frozenset({"LINENO", "RANDOM", "SECONDS"})
_SPLITS = re.compile(r"[ \t\n*?\[\]\\~]|\A\Z")  # outside quotes it could become other words
_INTEGER = re.compile(r"-?[0-9]{1,18}\Z")
# Builtins that can assign a variable without the syntax of an assignment, or run text that does.
_ASSIGNING_COMMANDS = word_set(
    ". builtin command declare eval export getopts let local mapfile read readarray readonly source"
    " trap typeset unset"
)


class WordPart(NamedTuple):
    """A literal text, or the source of an expansion; `variable` if its values may be known."""

    text: str
    variable: str = ""
    quoted: bool = False
    literal: bool = True


def names_shell_setting(name: str) -> bool:
    """Whether the shell, or the way it starts programs, gives this variable a meaning."""
    return name in _SHELL_NAMES or _SHELL_NAME.match(name) is not None


def can_assign(words: CommandWords) -> bool:
    """Whether a command may change variables of the shell that runs it."""
    name, following = words[0], words[1:2]
    if name == "time":  # a word of the grammar: what follows runs in this shell
        return any(word in _ASSIGNING_COMMANDS | {"printf", "wait"} for word in words[1:])
    if name in ("printf", "wait"):
        return bool(following) and following[0][:1] in ("-", "$", "`", "{", "*", "?", "[")
    return name in _ASSIGNING_COMMANDS


def changes_reading(words: CommandWords, *, ascii_only: bool) -> bool:
    """Whether a builtin may change the locale or the grammar in which later lines are read."""
    found = [match[0] for match in map(_READING_NAME.match, words[1:]) if match]
    return "POSIXLY_CORRECT" in found or (bool(found) and not ascii_only)


class AssignedValue(NamedTuple):
    """A literal, a pattern of files, a number that the shell computes, or unknown."""

    literal: str | None = None
    pattern: bool = False  # `literal` matches files, and the value is the name of one
    computed: bool = False

    @property
    def is_number(self) -> bool:
        literal = self.literal and not self.pattern and _INTEGER.match(self.literal)
        return self.computed or bool(literal)


class WordValues(NamedTuple):
    """The texts that a word can become; `certain` unless a pattern of files is among them."""

    texts: tuple[str, ...] = ()
    certain: bool = False


class VariableUses:
    """What a line does with variables; filled in while it is read."""

    def __init__(self) -> None:
        self.evaluated: set[str] = set()  # by arithmetic, which may also assign to them
        self._values: dict[str, list[AssignedValue]] = {}
        self._known: dict[str, WordValues] = {}  # once the line is read
        self._room = MAX_SUBSTITUTED

    def assign(self, name: str, value: AssignedValue) -> None:
        if names_shell_setting(name):
            raise UnsupportedSyntax(f"it assigns {name}, which has a meaning for the shell")
        self._values.setdefault(name, []).append(value)

    def known_values(self, name: str) -> WordValues:
        """Every value that a variable can have, or none if that is not known."""
        if name not in self._known:
            values = self._values.get(name, [])
            texts = tuple(dict.fromkeys(one.literal for one in values if one.literal is not None))
            known = WordValues(texts, not any(one.pattern for one in values))
            unknown = name in self.evaluated or any(one.literal is None for one in values)
            if unknown or len(texts) > MAX_VALUES:
                known = WordValues()
            self._known[name] = known
        return self._known[name]

    def holds_number(self, name: str) -> bool:
        """Whether every value that a variable can have is a whole number: it is one word."""
        values = self._values.get(name, [])
        return bool(values) and all(value.is_number for value in values)

    def has_room(self, characters: int) -> bool:
        """Whether so many more characters may be put in the place of variables."""
        self._room -= characters
        return self._room >= 0

    def forget_values(self) -> None:
        """Something in the line may assign any variable."""
        for values in self._values.values():
            values.append(AssignedValue())

    def check_arithmetic(self) -> None:
        for name in sorted(self.evaluated - _COUNTERS):
            values = self._values.get(name, [])
            if not values or not all(value.is_number for value in values):
                raise UnsupportedSyntax(
                    f"arithmetic evaluates {name}, whose value may hold a command"
                )


def substitute_values(parts: Iterable[WordPart], uses: VariableUses) -> WordValues:
    """The values of a word whose variables are known; none if they are not, or are too many."""
    values, certain = [""], True
    for part in parts:
        if part.literal:
            values = [value + part.text for value in values]
            continue
        choices = uses.known_values(part.variable)
        splits = not part.quoted and any(map(_SPLITS.search, choices.texts))
        if not choices.texts or len(values) * len(choices.texts) > MAX_VALUES:
            return WordValues()
        if splits and choices.certain:
            return WordValues()
        length = sum(map(len, values)) * len(choices.texts)
        if not uses.has_room(length + len(values) * sum(map(len, choices.texts))):
            return WordValues()
        certain = certain and choices.certain
        values = [value + choice for value in values for choice in choices.texts]
    return WordValues(tuple(values), certain)
