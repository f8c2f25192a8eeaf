"""What a program's words mean, as data, and the one reader of options.

A `ProgramRecord` says which options a program has, which of them take a value, whether `--` ends
them and whether they may follow operands, and what each can do. `read_options` splits words by it
as the program itself would. Where two readings are possible (an option that is on no list, `--` as
the value of another, a word that the shell decides and that could begin with `-`) it says so, and
whoever asked has to treat the command as not understood. Pure and linear.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import msgspec

# What an option, an operand or a whole program can do, beyond what its name promises.
#   code      runs code, as everybody knows of it: allowed by mode `free`, not by a pattern
#   outward   changes what others see: allowed by a pattern that names it, not by a mode
#   refused   runs or writes what its name does not say: only the exact line allows it
Concern: TypeAlias = Literal["code", "outward", "refused"]
Nature: TypeAlias = Literal["reads", "writes", "listed", "builds", "code", "refused"]
#   reads     prints; no option of it runs or writes
#   writes    makes, moves or removes the files it names, and nothing else
#   listed    harmless with the options listed here; any other is refused
#   builds    runs code of the project, as its name promises; other options are `code`
#   code      runs whatever it is given
#   refused   as above, whatever the words


class Objection(NamedTuple):
    concern: Concern
    reason: str  # a part of a sentence


class OptionSpec(NamedTuple):
    name: str  # the last of its spellings stands for all
    value: Literal["none", "required", "optional"] = "none"
    concern: Literal["", "code", "outward", "refused"] = ""
    ends: bool = False  # what follows its value is another program's


class ProgramRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A program, or one of its sub-commands."""

    nature: Nature = "listed"
    options: Mapping[str, OptionSpec] = {}
    single_dash: bool = False  # `-name value`: no letters that stand together
    ends_options: bool = True  # it knows `--`
    permutes: bool = True  # options may follow operands
    numbers: bool = False  # `-5` is an option
    passes_on: bool = False  # what follows `--` goes to another program
    first: frozenset[str] = frozenset()  # what the first operand must be; "": there may be none
    operand: str = ""  # which check every operand must pass: `operand_checks`
    most: int = 1_000  # operands
    commands: Mapping[str, ProgramRecord] = {}
    aliases: Mapping[str, str] = {}
    concern: Literal["", "code", "outward", "refused"] = ""  # even with harmless words
    check: str = ""  # the language its words are written in: `script_checks`
    abbreviates: bool = False  # the beginning of a sub-command's name stands for it

    def full_names(self, word: str) -> tuple[str, ...]:
        """The sub-commands that a word can mean; the word itself if it is on no list."""
        if word in self.commands or word in self.aliases or not self.abbreviates:
            return (self.aliases.get(word, word),)
        plain = _CAPITAL.sub(lambda found: f"-{found[0].lower()}", word)  # npm takes `distTag`
        known = (name for name in (*self.commands, *self.aliases) if name.startswith(plain))
        return tuple(sorted({self.aliases.get(name, name) for name in known})) or (word,)


_CAPITAL = re.compile(r"[A-Z]")
_MARKS: dict[str, Concern] = {"!": "refused", "~": "code", "^": "outward"}


def parse_options(text: str, *, single_dash: bool = False) -> dict[str, OptionSpec]:
    """Options as the tables write them: `-n,--lines=` needs a value, `--color=?` may have one,
    `-abc` are three letters, and after the value of `-m=.` options end. `!` before one: refused;
    `~`: runs code; `^`: outward."""
    options: dict[str, OptionSpec] = {}
    for token in text.split():
        mark = token[0] if token[0] in _MARKS else ""
        body = token[len(mark) :]
        names, equals, optional = body.partition("=")
        value: Literal["none", "required", "optional"] = "none"
        if equals:
            value = "optional" if optional == "?" else "required"
        concern = _MARKS[mark] if mark else ""
        spellings = names.split(",")
        letters = len(spellings) == 1 and not single_dash and names[1] != "-"
        for one in [f"-{letter}" for letter in names[1:]] if letters else spellings:
            name = one if letters else spellings[-1]
            options[one] = OptionSpec(name, value, concern, optional == ".")
    return options


def record(
    options: str = "",
    *,
    nature: Nature = "listed",
    first: str = "",
    commands: Mapping[str, ProgramRecord] | None = None,
    aliases: str = "",
    **further: object,
) -> ProgramRecord:
    """A record in the words of the tables. In `first`, `,` stands for no operand at all; aliases
    are written `i=install`."""
    single_dash = bool(further.get("single_dash"))
    fields: dict[str, object] = {
        "nature": nature,
        "options": parse_options(options, single_dash=single_dash),
        "first": frozenset("" if word == "," else word for word in first.split()),
        "commands": commands or {},
        "aliases": dict(pair.split("=") for pair in aliases.split()),
        **further,
    }
    return ProgramRecord(**fields)  # type: ignore[arg-type]


class ReadOption(NamedTuple):
    spec: OptionSpec
    value: str | None
    at: int  # the position of its word
    value_at: int  # the position of its value's word; -1: none, or in the same word


class OptionReading(NamedTuple):
    """Words as a program takes them. Positions count from its first word."""

    options: tuple[ReadOption, ...] = ()
    operands: tuple[int, ...] = ()
    dashes: int = -1  # where `--` ended the options
    unlisted: tuple[str, ...] = ()  # options on no list, and words that could be one
    problem: str = ""  # why nobody can tell what the words mean

    def has(self, *names: str) -> bool:
        return any(option.spec.name in names for option in self.options)

    def values(self, *names: str) -> tuple[str, ...]:
        found = (option for option in self.options if option.spec.name in names)
        return tuple(option.value or "" for option in found)


_SHORTEST = 4  # characters of a shortened option: `--sc`


class _Reader:
    def __init__(
        self, program: ProgramRecord, words: tuple[str, ...], doubtful: frozenset[int]
    ) -> None:
        self.program, self.words, self.doubtful = program, words, doubtful
        self.options: list[ReadOption] = []
        self.operands: list[int] = []
        self.unlisted: list[str] = []
        self.dashes, self.problem = -1, ""

    def read(self) -> OptionReading:
        at = 0
        while at < len(self.words) and not self.problem:
            word = self.words[at]
            if at in self.doubtful and self.dashes < 0:
                self.unlisted.append(word)
            if self.dashes >= 0 or word == "-" or not word.startswith("-"):
                self.operands.append(at)
                at += 1
                if not self.program.permutes:
                    self.operands.extend(range(at, len(self.words)))
                    break
            elif word == "--":
                at = self._end_options(at)
            elif word.startswith("--") or self.program.single_dash:
                at = self._read_long(at)
            else:
                at = self._read_letters(at)
            if self.options and self.options[-1].spec.ends:
                self.operands.extend(range(at, len(self.words)))
                break
        self._doubt_the_rest()
        return OptionReading(
            tuple(self.options),
            tuple(self.operands),
            self.dashes,
            tuple(self.unlisted),
            self.problem,
        )

    def _end_options(self, at: int) -> int:
        if not self.program.ends_options:
            self.problem = "`--` is not the end of its options"
        self.dashes = at
        return at + 1

    def _read_long(self, at: int) -> int:
        name, equals, value = self.words[at].partition("=")
        spec = self.program.options.get(name)
        if spec is None or (equals and spec.value == "none"):
            if self._is_number(self.words[at]):
                return at + 1
            self.unlisted.append(self.words[at])
            if (shortened := self._find_shortened(name)) is not None:
                self.options.append(ReadOption(shortened, value if equals else None, at, -1))
            return at + 1
        if equals or spec.value != "required":
            self.options.append(ReadOption(spec, value if equals else None, at, -1))
            return at + 1
        return self._take_value(spec, at)

    def _find_shortened(self, name: str) -> OptionSpec | None:
        """The refused option whose beginning is given: `--script-sh=x` is `--script-shell=x`."""
        if not name.startswith("--") or len(name) < _SHORTEST:
            return None
        known = (spec for full, spec in self.program.options.items() if full.startswith(name))
        return next((spec for spec in known if spec.concern == "refused"), None)

    def _read_letters(self, at: int) -> int:
        word = self.words[at]
        if self._is_number(word):
            return at + 1
        for number, letter in enumerate(word[1:], 1):
            spec = self.program.options.get(f"-{letter}")
            if spec is None:
                self.unlisted.append(word)
                return at + 1
            rest = word[number + 1 :]
            if spec.value == "none":
                self.options.append(ReadOption(spec, None, at, -1))
            elif rest or spec.value == "optional":
                self.options.append(ReadOption(spec, rest or None, at, -1))
                return at + 1
            else:
                return self._take_value(spec, at)
        return at + 1

    def _take_value(self, spec: OptionSpec, at: int) -> int:
        if at + 1 >= len(self.words):
            self.problem = f"{spec.name} has no value"
            return at + 1
        value = self.words[at + 1]
        if value == "--":
            self.problem = f"`--` is the value of {spec.name}"
        self.options.append(ReadOption(spec, value, at, at + 1))
        return at + 2

    def _is_number(self, word: str) -> bool:
        return self.program.numbers and word[1:].isdecimal()

    def _doubt_the_rest(self) -> None:
        """A value or an operand that looks like an option counts as one too: the reading must be
        harmless even if our list is wrong about which option takes a value."""
        if not self.program.permutes:
            return
        taken = [option.value_at for option in self.options if option.value_at >= 0]
        if self.dashes >= 0 and not self.program.passes_on:
            taken += [at for at in self.operands if at > self.dashes]
        for word in (self.words[at] for at in taken):
            if looks_like_option(word) and not self._is_listed(word):
                self.unlisted.append(word)

    def _is_listed(self, word: str) -> bool:
        if self._is_number(word):
            return True
        name = word.partition("=")[0]
        if word.startswith("--") or self.program.single_dash:
            spec = self.program.options.get(name)
            return spec is not None and not spec.concern
        for letter in word[1:]:
            spec = self.program.options.get(f"-{letter}")
            if spec is None or spec.concern:
                return False
            if spec.value != "none":
                return True
        return True


def looks_like_option(word: str) -> bool:
    """`-x`, `--word`; not `-`, `- a text` or `-5`."""
    return word[:1] == "-" and (word[1:2].isalpha() or word[1:2] == "-" or word[1:2] == "@")


def read_options(
    program: ProgramRecord, words: tuple[str, ...], doubtful: frozenset[int] = frozenset()
) -> OptionReading:
    """Read the words after a program's name. `doubtful` are the positions of words that the shell
    decides and that could begin with `-`."""
    return _Reader(program, words, doubtful).read()
