"""Why a rule or a mode alone does not allow a command: what its words can do beyond its name.

A known program is judged by its record, with its options read as the program reads them; a program
that is on no list by words that usually carry a command; and every word by the files it names.
Pure and linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from recollect.permissions.normal_command import NormalCommand
from recollect.permissions.parsed_line import word_set
from recollect.permissions.path_objections import is_outside, object_to_paths
from recollect.permissions.program_record import (
    Concern,
    Objection,
    OptionReading,
    ProgramRecord,
    read_options,
)
from recollect.permissions.program_table import find_record
from recollect.permissions.protected_paths import (
    leaves_folder,
    names_secret,
)
from recollect.permissions.script_checks import (
    SCRIPT_CHECKS,
    CheckedWords,
    split_tar_bundle,
)
from recollect.permissions.shell_builtins import BUILTIN_CHECKS

_CHECKS = {**SCRIPT_CHECKS, **BUILTIN_CHECKS}
_PUBLISHES = word_set("publish unpublish upload push deploy")
_LASTING = frozenset(
    tuple(pair.split())
    for pair in (
        "poetry config", "composer config", "bundle config", "conda config", "pdm config",
        "pre-commit install", "husky install", "husky init", "lefthook install", "direnv allow",
        "mise trust", "rustup default", "rustup override",
    )
)  # fmt: skip
_INPUT = ("-", "/dev/stdin")
_NOT_PLACES = ("-c", "-k", "-m", "-e", "-E")  # their values are code, or expressions
_STREAMS = ("/dev/", "/proc/")  # what stands there is not in the line
# In programs that are on no list these usually carry code, a command or another configuration.
_SUSPICIOUS_WORD = re.compile(
    r"-[cefxCDEFIPSX]\Z|-?-(?:c|conf|config|eval|expression|file|filter|import|init|interpreter|load"
    r"|log-?file|o|out|output|pre|program|rc|require|run"
    r"|(?:[a-z0-9]+[-_])*(?:cmd|command|exec|hook|plugin|script|shell))(?:[-_][\w-]*)?(?:=.*)?\Z"
    r"|-[CDEFIPSX].|alias\Z|dlx\Z|e(?:val|xec|xtension)\Z|plugin\Z|run\Z|s(?:cript|hell)\Z",
    re.DOTALL,
)

# --- operands -----------------------------------------------------------------------------------

_INSIDE = re.compile(r"[A-Za-z0-9_.][^=]*\Z", re.DOTALL)
_SCRIPT_WORD = re.compile(r"[\w@./:=,+*-]+\Z")  # npm passes it to a shell
_BRANCH = re.compile(r"[A-Za-z0-9_][\w./-]*\Z")  # not an address, not `a:b`
_CONFIG_KEY = re.compile(r"[\w*^-]+\.[\w.*^-]+\Z")
_SETTING_NAME = re.compile(r"(?!.*(?:key|pass|secret|token))[a-z][a-z-]*\Z")
_OPERANDS: dict[str, Callable[[str, str], bool]] = {
    "": lambda _word, _root: True,
    "inside": lambda word, root: bool(
        (root and word.startswith(root.rstrip("/") + "/") and not leaves_folder(word, root))
        or (_INSIDE.match(word) and not leaves_folder(word, root))
    ),
    "script word": lambda word, _root: bool(_SCRIPT_WORD.match(word)),
    "branch": lambda word, _root: bool(_BRANCH.match(word)),
    "config key": lambda word, _root: bool(_CONFIG_KEY.match(word)),
    "setting name": lambda word, _root: bool(_SETTING_NAME.match(word)),
    "date format": lambda word, _root: word.startswith("+"),
}


def find_objections(
    command: NormalCommand,
    *,
    root: str = "",
    named: int = 1,
    check_time: Callable[[], None] = lambda: None,
) -> Iterator[Objection]:
    """Everything a rule alone does not allow; none if it does.

    `named` is how many of the words the rule names itself: if the program is on no list, those
    need no second look. `check_time` is called for each word; it raises when no time is left."""
    yield from command.objections
    yield from _object_to_words(command, root, named)
    yield from object_to_paths(command, root, check_time)


def _object_to_words(command: NormalCommand, root: str, named: int) -> Iterator[Objection]:
    words, program = command.words, command.program
    found = find_record(words[0])
    if program.startswith(("ld-linux", "ld.so")):
        yield Objection("refused", f"{program} can run anything")
    elif found is None:
        yield from _object_to_unknown(command, named)
        yield from _object_to_publishing(command)
    elif words[1:] == ("--version",) or found.nature == "reads":
        return
    elif found.nature == "refused":
        yield Objection("refused", f"{program} can run or write anything")
    elif found.nature == "code":
        streams = program in (".", "source") and words[1:2] != () and words[1].startswith(_STREAMS)
        yield Objection("refused" if streams else "code", f"{program} can run or write anything")
        yield from _object_to_publishing(command)
    elif found.nature == "writes":
        if any("$" in words[at] or "`" in words[at] for at in command.uncertain):
            yield Objection("code", f"the shell decides which files {program} writes")
        elif command.doubtful():
            yield Objection("code", "file names replace a pattern, and a name can be an option")
    elif found.commands and words[1:2]:
        yield from _object_to_subcommand(command, found, root)
    else:
        yield from _object_by_record(command, found, 1, root)


def _object_to_unknown(command: NormalCommand, named: int) -> Iterator[Objection]:
    program = command.program[:40]
    later = [(at, word) for at, word in enumerate(command.words) if at >= named]
    suspect = next((word for _, word in later if _SUSPICIOUS_WORD.match(word)), None)
    if suspect is not None:
        yield Objection("code", f"{program} {suspect[:40]} may carry a command")
    elif command.doubtful():
        yield Objection("code", f"the shell decides which options {program} gets")


def _object_to_publishing(command: NormalCommand) -> Iterator[Objection]:
    """`poetry publish`, `gem push`; and what makes a tool act by itself later."""
    operands = [word for word in command.words[1:] if not word.startswith("-")][:2]
    if not _PUBLISHES.isdisjoint(operands):
        yield Objection(
            "outward", f"{command.program} {' '.join(operands)[:40]} changes what others see"
        )
    if operands and (command.program, operands[0]) in _LASTING:
        why = f"{command.program} {operands[0]} changes what runs later"
        yield Objection("refused", why)


def _object_to_subcommand(
    command: NormalCommand, found: ProgramRecord, root: str
) -> Iterator[Objection]:
    program, name = command.program, command.words[1]
    if name in ("run", "run-script") and [*_operands(command)][1:2] == ["env"]:
        yield Objection("refused", f"{program} run env runs what follows")
    concern: Concern = "code" if found.nature == "builds" else "refused"
    if name.startswith("-"):
        yield from _object_by_record(command, found, 1, root)
    elif (inner := found.commands.get(name)) is None:
        yield Objection(concern, f"{program} {name[:40]} can run or write anything, or is an alias")
    elif inner.commands and command.words[2:3]:
        deeper = inner.commands.get(command.words[2])
        if deeper is None:
            yield Objection(concern, f"{program} {name} {command.words[2][:40]} can run anything")
        else:
            yield from _object_by_record(command, deeper, 3, root)
    else:
        yield from _object_by_record(command, inner, 2, root)


def _operands(command: NormalCommand) -> Iterator[str]:
    return (word for word in command.words[1:] if not word.startswith("-"))


def _object_by_record(
    command: NormalCommand, found: ProgramRecord, start: int, root: str
) -> Iterator[Objection]:
    words = command.words[start:]
    if found.check == "tar":
        words = split_tar_bundle(words)
    doubtful = frozenset(at + 1 - start for at in command.doubtful() if at + 1 >= start)
    splitting = frozenset(at - start for at in command.splitting if at >= start)
    uncertain = frozenset(at - start for at in command.uncertain if at >= start)
    given = CheckedWords(
        command.program, words, OptionReading(), uncertain, splitting, command.stdin_text, root
    )
    if found.check not in ("find", "test", "set", "printf"):
        reading = read_options(found, words, doubtful)
        given = given._replace(reading=reading)
        yield from _object_to_reading(given, found)
    elif doubtful and found.check == "find":
        yield Objection("refused", "the shell decides what find does")
    if found.check and (objected := _CHECKS[found.check](given)) is not None:
        yield objected
    if found.concern:
        name = " ".join(command.words[:start])
        yield Objection(found.concern, f"{name} changes more than files of the folder")


def _object_to_values(given: CheckedWords, found: ProgramRecord) -> Iterator[Objection]:
    """`python -m unittest -s ../x`, `python -X pycache_prefix=../x`."""
    if found.operand != "inside" and found.check != "interpreter":
        return
    for option in given.reading.options:
        name, value = option.spec.name, (option.value or "").rpartition("=")[2]
        if name not in _NOT_PLACES and value and is_outside(value, given.root):
            writes: Concern = "refused" if name == "-X" else "code"
            yield Objection(writes, f"{value[:80]!r} is outside the working folder")


def _object_to_reading(given: CheckedWords, found: ProgramRecord) -> Iterator[Objection]:
    reading = given.reading
    concern: Concern = "code" if found.nature == "builds" else "refused"
    if reading.problem:
        yield Objection("refused", f"its words cannot be told apart: {reading.problem}")
    split = [one.value or "" for one in reading.options if one.value_at in given.splitting]
    for word in (*reading.unlisted[:1], *split[:1]):
        yield Objection(concern, f"{word[:40]!r} is not among the options known to be harmless")
    for option in reading.options:
        if given.program == "make" and option.value in _INPUT and given.stdin_text is None:
            yield Objection("refused", "make takes its code from standard input")
        value = option.value if option.value and option.spec.name != "--exclude" else ""
        if names_secret(value) and "\n" not in value:
            yield Objection("refused", f"{value[:80]!r} may hold secrets")
        if option.spec.concern:
            name = option.spec.name
            yield Objection(option.spec.concern, f"{given.program} {name} can run or write")
    yield from _object_to_values(given, found)
    operands = given.operands()
    if found.first and (operands[0] if operands else "") not in found.first:
        shown = " ".join(operands)[:40]
        yield Objection(concern, f"{shown!r} is not among what is known to be harmless")
    if len(operands) > found.most:
        yield Objection(concern, "it has more operands than are known to be harmless")
    if not all(_OPERANDS[found.operand](word, given.root) for word in operands):
        yield Objection(concern, "it has an operand that is not plain")
