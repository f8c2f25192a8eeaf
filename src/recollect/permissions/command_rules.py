"""The rules for commands: how one is written, and what it matches.

A rule is a line of words: `git status` is these two words and no others, `git diff *` these two
and any further ones. It is compared word by word, never as a string, with what a command means
(`normal_form`). A rule without a wildcard also allows the line that it gives word for word,
whatever that line is; one that has more than plain words (operators, expansions, several lines) can
only mean that. Everything here is pure.
"""

from __future__ import annotations

import re
import shlex
from typing import Literal, TypeAlias

import msgspec

from recollect.errors import BadInput
from recollect.permissions.command_parser import (
    CommandWords,
    ParsedLine,
    UnsupportedSyntax,
    Word,
    parse_line,
    program_name,
    tokenize,
)
from recollect.permissions.normal_command import NormalCommand
from recollect.permissions.program_record import ProgramRecord, ReadOption, read_options
from recollect.permissions.program_table import find_record
from recollect.permissions.protected_paths import normal_path

# plan          nothing runs that no rule allows
# ask           the user is asked
# edit          as ask, except that files of the working folder may be written
# free          everything ordinary runs, if a sandbox holds it
# unrestricted  everything runs, without a sandbox, except what a rule denies
PermissionMode: TypeAlias = Literal["plan", "ask", "edit", "free", "unrestricted"]
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
MODES: tuple[PermissionMode, ...] = ("plan", "ask", "edit", "free", "unrestricted")  # to lax


# What the shell takes for more than a word at the start of a line, unless it is quoted.
_MORE_THAN_WORDS = re.compile(r"[A-Za-z_]\w*\+?=|(?:!|time|coproc|function)(?:\s|\Z)")


class CommandRule(msgspec.Struct, frozen=True):
    words: CommandWords
    is_prefix: bool = False  # any further words may follow
    line: str = ""  # the whole line, if it has more than plain words

    def __str__(self) -> str:
        if self.line:
            return self.line
        words = [*map(shlex.quote, self.words), *(["*"] if self.is_prefix else [])]
        if words and _MORE_THAN_WORDS.match(words[0]):
            words[0] = f"'{words[0]}'"
        return " ".join(words)

    def matches(self, words: CommandWords) -> bool:
        if self.line:
            return False
        return (words[: len(self.words)] if self.is_prefix else words) == self.words

    def gives_line(self, text: str, line: ParsedLine) -> bool:
        """Whether the rule is this very line, word for word."""
        if self.is_prefix:
            return False
        if self.line:
            return self.line == text.strip()
        one = line.commands[0] if len(line.commands) == 1 else None
        plain = one is not None and not (line.problem or line.compound or line.redirections)
        return one is not None and plain and one.words == self.words


class CommandRules(msgspec.Struct, frozen=True, kw_only=True):
    deny: tuple[CommandRule, ...] = ()
    ask: tuple[CommandRule, ...] = ()
    allow: tuple[CommandRule, ...] = ()
    mode: PermissionMode = "ask"
    project_ask: tuple[CommandRule, ...] = ()  # ask instead of allow, never instead of deny


def parse_rule(text: str) -> CommandRule:
    """Parse a rule that allows. Words that are more to the shell than one plain command, such as
    `CI=1 npm test` and `! git diff`, give a whole line."""
    rule = _parse_words_rule(text)
    if rule.line or rule.is_prefix:
        return rule
    return _parse_line_rule(text) if _MORE_THAN_WORDS.match(text.strip()) else rule


def _parse_words_rule(text: str) -> CommandRule:
    """Parse a rule of the settings. `*` stands for further words only as the last word."""
    if not text.strip() or "\0" in text:
        raise BadInput(f"the rule {text[:80]!r} is empty; begin it with a command")
    try:
        tokens = tokenize(text)
    except UnsupportedSyntax:
        return _parse_line_rule(text)
    words = [token for token in tokens if isinstance(token, Word)]
    if len(words) < len(tokens):
        return _parse_line_rule(text)
    is_prefix = bool(words) and words[-1].value == "*" and words[-1].globs
    if is_prefix:
        words.pop()
    if not words or any(word.globs for word in words):
        raise BadInput(
            f"the rule {text[:80]!r} must begin with a command and may have `*` only as last word;"
            " quote a `*` that is meant as itself"
        )
    if not is_prefix and _ASSIGNMENT.match(text.lstrip()):
        return _parse_line_rule(text)  # its words are not those of the command
    return CommandRule(tuple(word.value for word in words), is_prefix)


def _parse_line_rule(text: str) -> CommandRule:
    """A rule that gives a whole line. A `*` at its end would look like a pattern and be none."""
    if text.rstrip().endswith(" *"):
        raise BadInput(
            f"the rule {text[:80]!r} has more than plain words, so it can only give a whole line,"
            " and `*` stands for nothing in it; write one rule for each command"
        )
    line = parse_line(text)
    anything = line.commands or line.redirections or line.assignments
    if not anything or "not closed" in line.problem:
        raise BadInput(f"the rule {text[:80]!r} cannot be read: {line.problem or 'no command'}")
    return CommandRule((), line=text.strip())


def _parse_stricter_rule(text: str) -> CommandRule:
    """A rule that denies or asks. One that gives a whole line would be walked around by a blank."""
    rule = _parse_words_rule(text)
    if rule.line:
        raise BadInput(
            f"the rule {text[:80]!r} has more than plain words, and rules that deny or ask are for"
            " single commands; write one rule for each command"
        )
    return rule


def parse_rules(
    deny: tuple[str, ...] = (),
    ask: tuple[str, ...] = (),
    allow: tuple[str, ...] = (),
    mode: PermissionMode = "ask",
) -> CommandRules:
    return CommandRules(
        deny=tuple(map(_parse_stricter_rule, deny)),
        ask=tuple(map(_parse_stricter_rule, ask)),
        allow=tuple(map(parse_rule, allow)),
        mode=mode,
    )


def tighten(own: CommandRules, project: CommandRules) -> CommandRules:
    """The user's rules with a project's, which may deny, ask and be stricter, but never allow."""
    return msgspec.structs.replace(
        own,
        deny=own.deny + project.deny,
        project_ask=own.project_ask + project.ask + project.project_ask,
        mode=min(own.mode, project.mode, key=MODES.index),
    )


# --- matching by meaning ------------------------------------------------------------------------


def first_match(among: tuple[CommandRule, ...], command: NormalCommand) -> CommandRule | None:
    """The first rule that matches any form of a command, its paths spelled in any way, its options
    in any order; for rules that only make a verdict stricter."""
    if not among:
        return None
    longest = max(len(one.words) for one in among) + 1  # further words change nothing
    cut = {words[:longest] for words in command.forms}
    forms = {form for words in cut for form in _stricter_forms(words)}
    found = find_record(command.words[0])
    if found is None or found.nature in ("code", "refused"):  # it may be a wrapper
        last = min(len(command.words), 40)
        forms |= {command.words[at : at + longest] for at in range(1, last)}
    for one in among:
        rule = CommandRule(_plain_paths(one.words), one.is_prefix, one.line)
        if any(map(rule.matches, forms)) or _matches_by_options(one, command):
            return one
    return None


def may_match(among: tuple[CommandRule, ...], command: NormalCommand) -> CommandRule | None:
    """The first rule that could match, depending on what the shell makes of a word."""
    for form in command.forms[-1:]:
        certain = min(command.uncertain, default=len(form))
        for one in among:
            if not one.line and len(one.words) > certain and one.words[:certain] == form[:certain]:
                return one
    return None


def _plain_paths(words: CommandWords) -> CommandWords:
    return tuple(normal_path(word) for word in words)


def _stricter_forms(words: CommandWords) -> set[CommandWords]:
    """`/bin/rm ./x` is also `rm x`."""
    plain = _plain_paths(words)
    return {
        words,
        plain,
        (program_name(words[0]), *words[1:]),
        (program_name(words[0]), *plain[1:]),
    }


def _matches_by_options(rule: CommandRule, command: NormalCommand) -> bool:
    """`git push origin --force` and `git push -f` match the rule `git push --force *`."""
    found = find_record(command.words[0])
    if found is None or rule.line or not rule.is_prefix or len(rule.words) < 2:
        return False
    if program_name(rule.words[0]) != command.program:
        return False
    start = 1
    if found.commands:
        start, inner = 2, found.commands.get(found.aliases.get(rule.words[1], rule.words[1]))
        if inner is None or command.words[1:2] != (
            found.aliases.get(rule.words[1], rule.words[1]),
        ):
            return False
        found = inner
    wanted, wanted_operands = _meaning(found, rule.words[start:])
    given, operands = _meaning(found, command.words[start:])
    return wanted <= given and operands[: len(wanted_operands)] == wanted_operands


def _meaning(
    found: ProgramRecord, words: CommandWords
) -> tuple[frozenset[tuple[str, str | None]], CommandWords]:
    """The options in any order, letters taken apart, and the operands."""
    reading = read_options(found, words)
    unlisted = {(word, None) for one in reading.unlisted for word in _letters(one)}
    options = frozenset({*map(_option, reading.options), *unlisted})
    taken = {option.value_at for option in reading.options}
    return options, tuple(words[at] for at in reading.operands if at not in taken)


def _option(option: ReadOption) -> tuple[str, str | None]:
    return option.spec.name, option.value


def _letters(word: str) -> tuple[str, ...]:
    if word.startswith("--") or not word.startswith("-"):
        return (word,)
    return tuple(f"-{letter}" for letter in word[1:])
