"""Why a rule or a mode alone does not allow a command: what its words can do beyond its name.

A known program is judged by its record, with its options read as the program reads them; a program
that is on no list by words that usually carry a command; and every word by the files it names.
Pure and linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from recollect.permissions.interpreter_code import codes_of
from recollect.permissions.normal_command import NormalCommand
from recollect.permissions.parsed_line import word_set
from recollect.permissions.program_record import (
    Concern,
    Objection,
    OptionReading,
    ProgramRecord,
    read_options,
)
from recollect.permissions.program_table import find_record
from recollect.permissions.protected_paths import (
    code_names_config,
    code_names_secret,
    glob_finds_secret,
    leads_elsewhere,
    leaves_folder,
    matches_config,
    matches_secret,
    names_config,
    names_secret,
)
from recollect.permissions.script_checks import (
    SCRIPT_CHECKS,
    CheckedWords,
    FindReading,
    read_find,
    split_tar_bundle,
)
from recollect.permissions.shell_builtins import BUILTIN_CHECKS

_CHECKS = {**SCRIPT_CHECKS, **BUILTIN_CHECKS}
_PRINTERS = frozenset({"echo", "printf", "true", "false", ":"})
_READERS_WITH_OPTIONS = word_set(
    "ag awk bat batcat date fd fdfind file find gawk gfind hostname mawk nawk rg sed sort test ["
    " tree uniq xxd read export set"
)
_GIT_WRITERS = word_set("apply checkout clean clone init mv reset restore rm")
_ALSO_WRITE = word_set("dd install split sponge tar tee truncate unzip wget zip")
# `cp -r x/. .` and `cp -rT x .` copy what is in a folder, with its hidden files
_COPIES_HIDDEN = re.compile(r"(?:.*/)?\.\.?/*\Z|-[A-Za-z]*T|--no-t")
_PUBLISHES = word_set("publish unpublish upload push deploy")
_LASTING = frozenset(
    tuple(pair.split())
    for pair in (
        "poetry config", "composer config", "bundle config", "conda config", "pdm config",
        "pre-commit install", "husky install", "husky init", "lefthook install", "direnv allow",
        "mise trust", "rustup default", "rustup override",
    )
)  # fmt: skip
# where a program is to write, or to work
_PLACE = re.compile(
    r"-[Co]|-?-(?:out-?(?:dir|file|put)?|[\w-]*(?:output|dest|destination|basetemp|coverprofile)"
    r"|(?:[\w-]+-)?dir(?:ectory)?|cache|cwd|log|junit-?xml|prefix|report|root|target)\Z",
    re.IGNORECASE,
)
_WRITING_MODULES = word_set("compileall ensurepip gzip tarfile venv virtualenv zipfile")
# the working folder by another name, and everything in it
_WHOLE_FOLDER = re.compile(r"(?:\.|\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`|~\+)?/*(?:\./*)*[*?]*/*\Z")
_HERE = re.compile(r"(?:\.|\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`|~\+)/*(?:\./*)*\Z")
_EMPTY_START = re.compile(r"\$(?:\w+|\{\w+\})/+[*?]*\Z")  # `$x/*` is `/*` if x is not set
_REMOVERS = word_set("chgrp chmod chown mv rm shred truncate")
_EXCLUDING = word_set("grep egrep fgrep ggrep tar du fd fdfind")
_EXCLUSIONS = ("--exclude=", "--exclude-dir=")  # what they name is left out
_INCLUDE = re.compile(r"--inc(?:l(?:u(?:de?)?)?)?\Z")  # of grep, which lets it be shortened
_INPUT = ("-", "/dev/stdin")
_EXPRESSION = "--expression"  # of sed
_STREAMS = ("/dev/", "/proc/")  # what stands there is not in the line
_TEMPORARY = "/tmp/"  # noqa: S108 - a sandbox has its own
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
    yield from _object_to_paths(command, root, check_time)


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
    operands = given.operands()
    if found.first and (operands[0] if operands else "") not in found.first:
        shown = " ".join(operands)[:40]
        yield Objection(concern, f"{shown!r} is not among what is known to be harmless")
    if len(operands) > found.most:
        yield Objection(concern, "it has more operands than are known to be harmless")
    if not all(_OPERANDS[found.operand](word, given.root) for word in operands):
        yield Objection(concern, "it has an operand that is not plain")


# --- paths --------------------------------------------------------------------------------------


def _only_reads(command: NormalCommand) -> bool:
    """Whether nothing is written, whatever paths are named."""
    if command.program == "git":
        return command.words[1:2] == () or command.words[1] not in _GIT_WRITERS
    found = find_record(command.words[0])
    if command.program == "sed" and found is not None:
        return not read_options(found, command.words[1:]).has("--in-place")
    reads = found is not None and found.nature == "reads"
    return reads or command.program in _READERS_WITH_OPTIONS


def _changes_in_place(command: NormalCommand, found: ProgramRecord | None) -> bool:
    if command.program in ("perl", "ruby") and found is not None:
        return read_options(found, command.words[1:]).has("-i")
    return command.program == "sed" and not _only_reads(command)


def writes_files(command: NormalCommand) -> bool:
    """Whether the program makes, changes or removes the files it names."""
    found = find_record(command.words[0])
    in_place = _changes_in_place(command, found)
    deletes = command.program == "find" and "-delete" in command.words
    named = found is not None and found.nature == "writes"
    return named or in_place or deletes or command.program in _ALSO_WRITE


def _object_to_paths(
    command: NormalCommand, root: str, check_time: Callable[[], None]
) -> Iterator[Objection]:
    words = command.words
    prints = words[0] in _PRINTERS
    found = read_find(words[1:]) if command.program in ("find", "gfind") else FindReading()
    excludes = command.program in _EXCLUDING
    for at, word in enumerate(words[1:], 1):
        check_time()
        if at - 1 in found.left_out or (excludes and word.startswith(_EXCLUSIONS)):
            continue
        decided = at in command.uncertain
        option, equals, value = word.partition("=")
        value = value if equals else words[at + 1] if at + 1 < len(words) else ""
        listed = bool(_INCLUDE.match(option)) and glob_finds_secret(value)
        if listed or (matches_secret(word) if decided else names_secret(word) and not prints):
            yield Objection("refused", f"{word[:80]!r} may hold secrets")
    if prints:
        return
    if not _only_reads(command):
        yield from _object_to_config(command, check_time)
    makes_folder = words[:1] == ("git",) and words[1:2] in (("clone",), ("init",), ("worktree",))
    if words[:2] in (("git", "diff"), ("git", "grep")):
        # git compares and searches whatever is there if a path leaves its folder
        outside = next((word for word in words[2:] if leaves_folder(word, root)), None)
        if outside is not None:
            yield Objection("refused", f"{outside[:80]!r} is outside the working folder")
    if writes_files(command) or makes_folder:
        yield from _object_to_written(command, root)
    elif not _only_reads(command):
        yield from _object_to_places(command, root)
    yield from _object_to_code(command)


def _object_to_code(command: NormalCommand) -> Iterator[Objection]:
    found, operands = find_record(command.words[0]), _plain_words(command)
    runs_file = command.words[0] in (".", "source") or (found and found.check == "interpreter")
    if runs_file and operands and operands[0].startswith(("<(", "/dev/fd/")):
        yield Objection("refused", f"{command.program} takes its code from another command")
    codes = codes_of(command)
    if any(map(code_names_secret, codes)):
        yield Objection("refused", "its code names what may hold secrets")
    if any(map(code_names_config, codes)):
        yield Objection("refused", "its code names a file that decides what runs later")


def _plain_words(command: NormalCommand) -> list[str]:
    return [word for word in command.words[1:] if not word.startswith("-")]


def _object_to_config(
    command: NormalCommand, check_time: Callable[[], None]
) -> Iterator[Objection]:
    writes = writes_files(command)
    for at, word in enumerate(command.words[1:], 1):
        check_time()
        named = matches_config if at in command.uncertain and writes else names_config
        if named(word) and not (command.program == "git" and word == "HEAD"):
            yield Objection("refused", f"{word[:80]!r} decides what runs later")


def _object_to_places(command: NormalCommand, root: str) -> Iterator[Objection]:
    """`npm pack --pack-destination ..`, `make -C..`, `python -m venv ../x`."""
    words = (*command.words, "")
    module = command.program == "python" and not _WRITING_MODULES.isdisjoint(words[1:4])
    for at, word in enumerate(words[1:-1], 1):
        name, equals, value = word.partition("=")
        if word.startswith(("-C", "-o")) and not word.startswith("--") and len(word) > len("-C"):
            name, value = word[:2], word[2:].removeprefix("=")
        elif not equals:
            value = words[at + 1]
        goal = value if _PLACE.match(name) else word if module else ""
        if name == "--prefix" and goal.startswith("/"):
            continue  # `./configure --prefix=/usr/local` only notes it
        if goal and is_outside(goal, root):
            yield Objection("refused", f"{goal[:80]!r} is outside the working folder")


def _object_to_written(command: NormalCommand, root: str) -> Iterator[Objection]:
    words, program = command.words, command.program
    found = find_record(words[0])
    reading = OptionReading() if found is None else read_options(found, words[1:])
    scripts = _sed_scripts(reading) if program == "sed" else frozenset[int]()
    for option in reading.options:  # also one that is glued to its letter: `cp -t.. a`
        if program == "sed" and option.spec.name == _EXPRESSION:
            continue
        if option.value and (is_outside(option.value, root) or names_config(option.value)):
            yield Objection("refused", f"{option.value[:80]!r} is outside, or decides what runs")
    for at, word in enumerate(words[1:], 1):
        if program == "cp" and _copies_hidden(words, at):
            yield Objection("refused", "it copies over what is there, hidden files too")
        if at in command.uncertain and program in ("cp", "ln", "mv"):
            yield from _object_to_glob(word, words[-1], root)
        if program in _REMOVERS and _is_whole_folder(word, root, uncertain=at in command.uncertain):
            last = program == "mv" and at == len(words) - 1  # `mv a .` puts something there
            if not last or word not in (".", "./"):
                yield Objection("refused", "it changes or removes the whole working folder")
        if at not in scripts and is_outside(word.removeprefix("of="), root):
            yield Objection("refused", f"{word[:80]!r} is outside the working folder")


def _sed_scripts(reading: OptionReading) -> frozenset[int]:
    """Where among the words the scripts of sed stand: `/^#/d` is no path."""
    if reading.values(_EXPRESSION):
        given = [one.value_at for one in reading.options if one.spec.name == _EXPRESSION]
        return frozenset(at + 1 for at in given if at >= 0)
    return frozenset(at + 1 for at in reading.operands[:1])


def _object_to_glob(word: str, target: str, root: str) -> Iterator[Objection]:
    """`cp evil/* .` puts whatever is there in the working folder, memory files too."""
    if word.rpartition("/")[2].strip("*") == "":
        top = bool(_HERE.match(target)) or target.rstrip("/") == root.rstrip("/") != ""
        why = "the shell decides which files it puts there"
        yield Objection("refused" if top else "code", why)


def _copies_hidden(words: tuple[str, ...], at: int) -> bool:
    """Whether a source is a folder's content rather than the folder; `cp a .` is not."""
    if _COPIES_HIDDEN.match(words[at]) is None:
        return False
    return words[at].startswith("-") or at < len(words) - 1


def _is_whole_folder(word: str, root: str, *, uncertain: bool) -> bool:
    if not word or (root and word.rstrip("/*") == root.rstrip("/")):
        return bool(word)
    if uncertain:
        return bool(_WHOLE_FOLDER.match(word) or _EMPTY_START.match(word))
    return word.rstrip("/") in (".", "..")


def is_outside(path: str, root: str) -> bool:
    if path.startswith(_TEMPORARY) and ".." not in path.split("/"):
        return False
    if path in ("/dev/null", "/dev/stdout", "/dev/stderr"):
        return False
    return leads_elsewhere(path) or leaves_folder(path, root)
