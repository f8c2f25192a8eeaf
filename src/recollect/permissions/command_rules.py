"""Judges whether a command line may run, by rules over the words of each sub-command.

A rule is a line of words: `git status` is these two words and no others, `git diff *` these two
and any further ones. It is compared word by word, never as a string. Deny comes first, then ask,
then allow, then the mode's default; a line is judged as strictly as the strictest of its
sub-commands. A line that was not understood asks whatever the rules say, and so does one that
`dangerous_programs` objects to or that names a protected file. Where no user can be asked, ask
means no. A verdict carries the very bytes that were judged. Everything here is pure.
"""

from __future__ import annotations

import shlex
from typing import Literal, TypeAlias

import msgspec

from recollect.errors import BadInput
from recollect.permissions.command_parser import (
    CommandWords,
    ParsedLine,
    SubCommand,
    UnsupportedSyntax,
    Word,
    parse_line,
    program_name,
    tokenize,
)
from recollect.permissions.dangerous_programs import find_objection, find_path_objection
from recollect.permissions.protected_paths import leaves_folder, names_config, names_secret

PermissionDecision: TypeAlias = Literal["allow", "ask", "deny"]
# plan   nothing runs that no rule allows
# ask    the user is asked
# edit   as ask, except that files of the working folder may be written
# free   it runs, unless it was not understood or is objected to
PermissionMode: TypeAlias = Literal["plan", "ask", "edit", "free"]
_DEFAULTS: dict[PermissionMode, PermissionDecision]  # from strict to lax
_DEFAULTS = {"plan": "deny", "ask": "ask", "edit": "ask", "free": "allow"}
_STRICTNESS: tuple[PermissionDecision, ...] = ("allow", "ask", "deny")


class CommandRule(msgspec.Struct, frozen=True):
    words: CommandWords
    is_prefix: bool = False  # any further words may follow

    def __str__(self) -> str:
        return " ".join([*map(shlex.quote, self.words), *(["*"] if self.is_prefix else [])])

    def matches(self, words: CommandWords) -> bool:
        return (words[: len(self.words)] if self.is_prefix else words) == self.words


class CommandRules(msgspec.Struct, frozen=True, kw_only=True):
    deny: tuple[CommandRule, ...] = ()
    ask: tuple[CommandRule, ...] = ()
    allow: tuple[CommandRule, ...] = ()
    mode: PermissionMode = "ask"
    project_ask: tuple[CommandRule, ...] = ()  # ask instead of allow, never instead of deny


class CommandVerdict(msgspec.Struct, frozen=True, kw_only=True):
    decision: PermissionDecision
    reason: str  # one sentence for the user and the model
    source: bytes  # what was judged, and the only thing that may be run
    suggested_rules: tuple[str, ...] = ()  # they would allow it from now on; none: no rule does


def parse_rule(text: str) -> CommandRule:
    """Parse a rule of the settings. `*` stands for further words only as the last word."""
    try:
        tokens = tokenize(text)
    except UnsupportedSyntax as problem:
        raise BadInput(f"the rule {text[:80]!r} cannot be read: {problem}; quote it") from None
    words = [token for token in tokens if isinstance(token, Word)]
    if len(words) < len(tokens):
        raise BadInput(f"the rule {text[:80]!r} has an operator; write one rule for each command")
    is_prefix = bool(words) and words[-1].value == "*" and words[-1].globs
    if is_prefix:
        words.pop()
    if not words or any(word.globs for word in words):
        raise BadInput(
            f"the rule {text[:80]!r} must begin with a command and may have `*` only as last word"
        )
    return CommandRule(tuple(word.value for word in words), is_prefix)


def parse_rules(
    deny: tuple[str, ...] = (),
    ask: tuple[str, ...] = (),
    allow: tuple[str, ...] = (),
    mode: PermissionMode = "ask",
) -> CommandRules:
    return CommandRules(
        deny=tuple(map(parse_rule, deny)),
        ask=tuple(map(parse_rule, ask)),
        allow=tuple(map(parse_rule, allow)),
        mode=mode,
    )


def tighten(own: CommandRules, project: CommandRules) -> CommandRules:
    """The user's rules with a project's, which may deny, ask and be stricter, but never allow."""
    return msgspec.structs.replace(
        own,
        deny=own.deny + project.deny,
        project_ask=own.project_ask + project.ask + project.project_ask,
        mode=min(own.mode, project.mode, key=list(_DEFAULTS).index),
    )


def judge_line(
    text: str, given: CommandRules, *, interactive: bool = True, root: str = ""
) -> CommandVerdict:
    """Judge a line. `root` is the working folder, if absolute paths into it are to count."""
    line = parse_line(text)
    decision, reason = _decide(line, given, root)
    suggested = _suggest_rules(line, given, root) if decision != "allow" else ()
    if decision == "ask" and not interactive:
        decision, reason = "deny", f"{reason}, and nobody can be asked"
    return CommandVerdict(
        decision=decision, reason=reason, source=line.source, suggested_rules=suggested
    )


def _decide(line: ParsedLine, given: CommandRules, root: str) -> tuple[PermissionDecision, str]:
    for command in line.commands:
        if (found := _first_match(given.deny, command.words)) is not None:
            return "deny", f"the rule {str(found)!r} denies it"
    if not line.runnable:
        return "deny", f"it cannot be run: {line.problem}"
    if line.problem:
        return "ask", f"it was not understood: {line.problem}"
    judged = [_judge_sub_command(command, given, root) for command in line.commands]
    judged.append(_judge_whole_line(line, given.mode, root))
    return max(judged, key=lambda one: _STRICTNESS.index(one[0]))


def _first_match(among: tuple[CommandRule, ...], words: CommandWords) -> CommandRule | None:
    """The first rule that matches; `/bin/rm` is also `rm`, which is only ever stricter."""
    forms = {words, (program_name(words[0]), *words[1:])}
    return next((one for one in among if any(map(one.matches, forms))), None)


def _judge_sub_command(
    command: SubCommand, given: CommandRules, root: str
) -> tuple[PermissionDecision, str]:
    words = command.words
    if (found := _first_match(given.ask, words)) is not None:
        return "ask", f"the rule {str(found)!r} asks"
    allowing = [one for one in given.allow if one.matches(words)]
    default = _DEFAULTS[given.mode]
    if not allowing and default != "allow":
        return default, f"no rule allows {words[0][:80]!r}"
    if (found_in_path := find_path_objection(words, root)) is not None:
        return "ask", found_in_path
    named = max((len(one.words) for one in allowing), default=1)
    objected = find_objection(words, globs=command.globs, named=named)
    if objected is not None and not (root and words == ("cd", root)):
        return "ask", objected
    if (found := _first_match(given.project_ask, words)) is not None:
        return "ask", f"the project's rule {str(found)!r} asks"
    return "allow", f"the rule {str(allowing[0])!r} allows it" if allowing else "the mode allows it"


def _judge_whole_line(
    line: ParsedLine, mode: PermissionMode, root: str
) -> tuple[PermissionDecision, str]:
    """Judge where the line writes, and in which folder git would run."""
    for redirection in line.redirections:
        target = redirection.target
        if target == "/dev/null":
            continue
        if names_secret(target) or target.startswith("/dev/"):
            return "ask", f"it redirects {target[:80]!r}"
        if redirection.operator == "<":
            continue
        if leaves_folder(target, root) or names_config(target) or mode in ("plan", "ask"):
            return "ask", f"it writes to {target[:80]!r}"
    commands = [command.words for command in line.commands]
    if ("cd",) in commands:
        return "ask", "it goes to the home folder"
    moves = any(words[0] == "cd" and words[1:] != (root,) for words in commands)
    if moves and any(program_name(words[0]) == "git" for words in commands):
        # a folder can be made to look like a repository, and its settings name programs
        return "ask", "it runs git in another folder"
    return "allow", "nothing is written"


def _suggest_rules(line: ParsedLine, given: CommandRules, root: str) -> tuple[str, ...]:
    """Exact rules for what no rule allows yet, if the line would then run without asking."""
    if line.problem:
        return ()
    new = tuple(CommandRule(command.words) for command in line.commands)
    more = msgspec.structs.replace(given, allow=given.allow + new)
    if _decide(line, more, root)[0] != "allow":
        return ()
    judged = {one: _judge_sub_command(SubCommand(one.words), given, root) for one in new}
    return tuple(str(one) for one, (decision, _) in judged.items() if decision != "allow")
