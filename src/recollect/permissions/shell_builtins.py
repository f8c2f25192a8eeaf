"""The shell's own commands: which of them only steer a line, and which change what it means."""

from __future__ import annotations

import re
from collections.abc import Callable

from recollect.permissions.environment_variables import judge_assignment
from recollect.permissions.program_record import Objection, ProgramRecord, record
from recollect.permissions.protected_paths import leaves_folder
from recollect.permissions.script_checks import CheckedWords

# They need no rule: they run and change nothing.
CONTROL_WORDS = frozenset({":", "break", "continue", "exit", "return", "shift", "wait"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SET_FLAGS = re.compile(r"[-+][eufvx]+\Z")
SET_NAMES = frozenset({"errexit", "nounset", "noglob", "pipefail", "verbose", "xtrace"})
SHOPT_NAMES = frozenset({"failglob", "globstar", "inherit_errexit", "nullglob"})


def _refuse(given: CheckedWords) -> Objection:
    return Objection("refused", f"{given.program} changes what the shell does next")


def _check_set(given: CheckedWords) -> Objection | None:
    words = list(given.words)
    while words:
        word = words.pop(0)
        if word[:1] in ("-", "+") and word[1:].endswith("o") and words:
            flags, name = word[:-1], words.pop(0)
            if name not in SET_NAMES or (len(flags) > 1 and not _SET_FLAGS.match(flags)):
                return _refuse(given)
        elif not _SET_FLAGS.match(word):
            return _refuse(given)
    return None


def _check_names(given: CheckedWords) -> Objection | None:
    """Operands must be names; a subscript would be evaluated. Values are judged as assignments."""
    if given.reading.problem or given.reading.unlisted:
        return _refuse(given)
    for at in given.reading.operands:
        name, equals, value = given.words[at].partition("=")
        if not _NAME.match(name) or (at in given.splitting and not equals):
            return _refuse(given)
        objected = judge_assignment(name, value)
        if objected is not None and (equals or objected.concern == "refused"):
            return objected
    return None


def _check_shopt(given: CheckedWords) -> Objection | None:
    known = given.words[:1] in (("-s",), ("-u",)) and {*given.words[1:]} <= SHOPT_NAMES
    return None if known else _refuse(given)


def _check_cd(given: CheckedWords) -> Objection | None:
    operands = given.operands()
    if operands in (("-",), (".",)) or (given.root and operands == (given.root,)):
        return None
    outside = not operands or leaves_folder(operands[0], given.root)
    if outside or given.reading.operands[0] in given.uncertain or len(operands) > 1:
        return Objection("code", "it goes to a folder that is not in the working folder")
    return None


BUILTIN_CHECKS: dict[str, Callable[[CheckedWords], Objection | None]] = {
    "cd": _check_cd,
    "names": _check_names,
    "set": _check_set,
    "shopt": _check_shopt,
}
BUILTINS: dict[str, ProgramRecord] = {
    **dict.fromkeys((*CONTROL_WORDS, "times", "umask", "ulimit"), record(nature="reads")),
    "cd": record("-LPe", check="cd"),
    "export": record("-p", check="names"),
    "readonly": record("-p", check="names"),
    **dict.fromkeys(("declare", "typeset", "local"), record("-xrgp", check="names")),
    "unset": record("-v", check="names"),
    "jobs": record("-lnprs"),
    "read": record("-rs -d= -n= -N= -p= -t= -u=", check="names"),
    **dict.fromkeys(("mapfile", "readarray"), record("-t -d= -n= -s= -O=", check="names")),
    "set": record(check="set", permutes=False, nature="builds"),
    "shopt": record("-su", check="shopt"),
}
