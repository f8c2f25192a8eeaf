"""A command on the way to its normal form, and the steps that lead there."""

from __future__ import annotations

import re

import msgspec

from recollect.permissions.command_parser import program_name
from recollect.permissions.environment_variables import judge_assignment
from recollect.permissions.parsed_line import CommandWords, SubCommand, word_set
from recollect.permissions.program_record import Concern, Objection
from recollect.permissions.shell_values import may_be_option

READS_INPUT = word_set("read mapfile readarray")
_LONG_OPTION = re.compile(r"--[a-z][a-z-]*\Z")


class NormalCommand(msgspec.Struct, frozen=True, kw_only=True):
    words: CommandWords
    uncertain: frozenset[int] = frozenset()  # words that the shell decides
    splitting: frozenset[int] = frozenset()  # those that may become several words, or none
    forms: tuple[CommandWords, ...] = ()  # as written, and every step to `words`
    allowed_forms: tuple[CommandWords, ...] = ()  # those that a rule may allow
    objections: tuple[Objection, ...] = ()
    stdin_text: str | None = None
    piped: bool = False  # it can read what another command writes
    captured: bool = False  # another command, or the line itself, gets what it writes
    implied: bool = False  # an unknown program may run it: it is judged, but needs no rule

    @property
    def program(self) -> str:
        return program_name(self.words[0])

    @property
    def takes_names(self) -> bool:
        """Whether it makes words, or values, of what it reads."""
        return self.words[0] in READS_INPUT or any(form[0] == "xargs" for form in self.forms)

    def doubtful(self) -> frozenset[int]:
        """Positions after the program's name of words that could turn out to be options."""
        return frozenset(at - 1 for at in self.uncertain if at > 0 and self._may_be_option(at))

    def _may_be_option(self, at: int) -> bool:
        name, equals, _ = self.words[at].partition("=")
        if equals and at not in self.splitting and _LONG_OPTION.match(name):
            return False  # `--format=$x` is this option, whatever the shell makes of its value
        return may_be_option(self.words[at])


def start_normal_form(command: SubCommand, outer: tuple[CommandWords, ...]) -> NormalCommand:
    given = command.assignments
    if command.words[0] == "read":  # it splits its input at spaces, or not at all
        given = tuple((name, value) for name, value in given if name != "IFS" or value.strip())
    judged = (judge_assignment(name, value) for name, value in given)
    return NormalCommand(
        words=command.words,
        uncertain=command.uncertain,
        splitting=command.splitting,
        forms=(*outer, command.words),
        allowed_forms=(command.words,),
        objections=tuple(objected for objected in judged if objected is not None),
        stdin_text=command.stdin_text,
        piped=command.piped,
        captured=command.captured,
    )


def add_objection(step: NormalCommand, concern: Concern, reason: str) -> NormalCommand:
    objection = Objection(concern, reason)
    return msgspec.structs.replace(step, objections=(*step.objections, objection))


def advance(
    step: NormalCommand, words: CommandWords, start: int, *, keep_allowed: bool, front: int = 0
) -> NormalCommand:
    """The step with other words: `front` new ones, then those from position `start` on."""

    def move(positions: frozenset[int]) -> frozenset[int]:
        return frozenset(at - start + front for at in positions if at >= start)

    return msgspec.structs.replace(
        step,
        words=words,
        uncertain=move(step.uncertain),
        splitting=move(step.splitting),
        forms=(*step.forms, words),
        allowed_forms=(*(step.allowed_forms if keep_allowed else ()), words),
    )
