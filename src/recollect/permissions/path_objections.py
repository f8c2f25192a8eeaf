"""Which files the words of a command name, and what it would do with them: secrets that it reads,
files that decide what runs later, and places outside the working folder. Pure and linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from recollect.permissions.find_reading import FindReading, read_find
from recollect.permissions.interpreter_code import codes_of
from recollect.permissions.normal_command import NormalCommand
from recollect.permissions.parsed_line import word_set
from recollect.permissions.program_record import (
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
from recollect.permissions.shell_values import chosen_words
from recollect.permissions.suffixed_names import find_protected_suffix

_PRINTERS = frozenset({"echo", "printf", "true", "false", ":"})
_READERS_WITH_OPTIONS = word_set(
    "ag awk bat batcat date fd fdfind file find gawk gfind hostname mawk nawk rg sed sort test ["
    " tree uniq xxd read export set"
)
_GIT_WRITERS = word_set("apply checkout clean clone init mv reset restore rm")
_PATHSPEC_MAGIC = re.compile(r":(?:\([^)]*\)|[/!^]+:?)")  # before a path that git is given
_ALSO_WRITE = word_set(
    "ar as cpp csplit dd install m4 mktemp objcopy split sponge sqlite3 tar tee truncate unzip wget"
    " zip"
)
# `cp -r x/. .` and `cp -rT x .` copy what is in a folder, with its hidden files
_COPIES_HIDDEN = re.compile(r"(?:.*/)?\.\.?/*\Z|-[A-Za-z]*T|--no-t")
# where a program is to write, or to work
_PLACE = re.compile(
    r"-[Co]|-MF|-?-(?:out-?(?:dir|file|put)?|[\w-]*(?:output|dest|destination|basetemp|coverprofile"
    r"|file-pattern|log-?file|aux-info|dump(?:base|dir)|keylog|snapshot-blob|warnings)"
    r"|(?:[\w-]+-)?dir(?:ectory)?|cache|cwd|log|junit-?xml|prefix|report|root|target)\Z",
    re.IGNORECASE,
)
_PASSED_ON = re.compile(r"-W[apl],.*?-(?:M?MD|MF|Map|a[a-z]*)[,=](.+)", re.DOTALL)  # of gcc
_WRITING_MODULES = word_set(
    "compileall ensurepip gzip sqlite3 tarfile venv virtualenv zipapp zipfile"
)
# the working folder by another name, and everything in it
_WHOLE_FOLDER = re.compile(r"(?:\.|\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`|~\+)?/*(?:\./*)*[*?]*/*\Z")
_HERE = re.compile(r"(?:\.|\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`|~\+)/*(?:\./*)*\Z")
# `$x/*` is `/*` if x is not set, and `$x*` is `*`
_EMPTY_START = re.compile(r"\$(?:\w+|\{\w+\})(?:/+[*?]*|[*?]+)\Z")
_REMOVERS = word_set("chgrp chmod chown mv rm shred truncate")
_EXCLUDING = word_set("grep egrep fgrep ggrep tar du fd fdfind")
_EXCLUSIONS = ("--exclude=", "--exclude-dir=")  # what they name is left out
_INCLUDE = re.compile(r"--inc(?:l(?:u(?:de?)?)?)?\Z")  # of grep, which lets it be shortened
_EXPRESSION = "--expression"  # of sed
_TEMPORARY = "/tmp/"  # noqa: S108 - a sandbox has its own


def _only_reads(command: NormalCommand) -> bool:
    """Whether nothing is written, whatever paths are named."""
    if command.program == "git":
        return not _writes_by_git(command)
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
    return named or in_place or deletes or command.program in _ALSO_WRITE or _writes_by_git(command)


def _writes_by_git(command: NormalCommand) -> bool:
    return command.program == "git" and not _GIT_WRITERS.isdisjoint(command.words[1:2])


def object_to_paths(
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
        yield from _object_to_config(command, root, check_time)
    makes_folder = words[:1] == ("git",) and words[1:2] in (("clone",), ("init",), ("worktree",))
    if words[:2] in (("git", "diff"), ("git", "grep")):
        # git compares and searches whatever is there if a path leaves its folder
        outside = next((word for word in words[2:] if leaves_folder(word, root)), None)
        if outside is not None:
            yield Objection("refused", f"{outside[:80]!r} is outside the working folder")
    if makes_folder or (writes_files(command) and not _writes_by_git(command)):
        yield from _object_to_written(command, root)
    elif not _only_reads(command):
        yield from _object_to_places(command, root)
    yield from _object_to_code(command, check_time)


def _object_to_code(command: NormalCommand, check_time: Callable[[], None]) -> Iterator[Objection]:
    found, operands = find_record(command.words[0]), _plain_words(command)
    runs_file = command.words[0] in (".", "source") or (found and found.check == "interpreter")
    if runs_file and operands and operands[0].startswith(("<(", "/dev/fd/")):
        yield Objection("refused", f"{command.program} takes its code from another command")
    codes = codes_of(command)
    if found is not None and found.nature == "code":  # `split --filter='cat > x'`
        codes = (*codes, *(word for word in command.words[1:] if " " in word))
    if any(map(code_names_secret, codes)):
        yield Objection("refused", "its code names what may hold secrets")
    if any(code_names_config(code, check_time) for code in codes):
        yield Objection("refused", "its code names a file that decides what runs later")


def _plain_words(command: NormalCommand) -> list[str]:
    return [word for word in command.words[1:] if not word.startswith("-")]


def _find_excluded(command: NormalCommand) -> frozenset[int]:
    """Where the names stand that a search or an archive leaves out."""
    found = find_record(command.words[0]) if command.program in _EXCLUDING else None
    if found is None:
        return frozenset()
    given = read_options(found, command.words[1:]).options
    left_out = [one for one in given if f"{one.spec.name}=" in _EXCLUSIONS]
    if command.program == "tar" and not command.words[1].startswith("-"):
        # `tar xf --exclude x` reads a file of that name, and takes x out of it
        left_out = [one for one in left_out if one.value_at < 0]
    return frozenset(1 + (one.at if one.value_at < 0 else one.value_at) for one in left_out)


def _object_to_config(
    command: NormalCommand, root: str, check_time: Callable[[], None]
) -> Iterator[Objection]:
    writes = writes_files(command)
    if _removes_all_by_git(command, root):
        yield Objection("refused", "it changes or removes the whole working folder")
    if made := find_protected_suffix(command):
        yield Objection("refused", f"it may make {made[:80]!r}, which decides what runs later")
    excluded = _find_excluded(command)
    for at, word in enumerate(command.words[1:], 1):
        check_time()
        if at in excluded:
            continue
        # git takes its paths for patterns, whatever the shell makes of them
        is_pattern = at in command.uncertain or command.program == "git"
        named = matches_config if is_pattern and writes else names_config
        path = _PATHSPEC_MAGIC.sub("", word) if command.program == "git" else word
        if named(path, check_time) and not (command.program == "git" and word == "HEAD"):
            yield Objection("refused", f"{word[:80]!r} decides what runs later")


def _removes_all_by_git(command: NormalCommand, root: str) -> bool:
    """`git rm -rf .`, `git rm -r ':(glob)*'`"""
    words = command.words
    if words[:2] != ("git", "rm") or not {"--cached", "-n", "--dry-run"}.isdisjoint(words):
        return False
    paths = (_PATHSPEC_MAGIC.sub("", word) or "." for word in words[2:] if word[:1] != "-")
    return any(_is_whole_folder(path, root, uncertain=True) for path in paths)


def _object_to_places(command: NormalCommand, root: str) -> Iterator[Objection]:
    """`npm pack --pack-destination ..`, `make -C..`, `python -m venv ../x`."""
    words = (*command.words, "")
    module = command.program == "python" and not _WRITING_MODULES.isdisjoint(words[1:4])
    for at, word in enumerate(words[1:-1], 1):
        name, equals, value = word.partition("=")
        if passed := _PASSED_ON.match(word):
            name, value = "-o", passed[1]
        elif word.startswith("-MF") and len(word) > len("-MF"):
            name, value = word[:3], word[3:]
        elif word.startswith(("-C", "-o")) and not word.startswith("--") and len(word) > len("-C"):
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
    scripts, excluded = _find_scripts(program, reading), _find_excluded(command)
    for option in reading.options:  # also one that is glued to its letter: `cp -t.. a`
        place = 1 + (option.at if option.value_at < 0 else option.value_at)
        if (program, option.spec.name) == ("sed", _EXPRESSION) or place in excluded:
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


def _find_scripts(program: str, reading: OptionReading) -> frozenset[int]:
    """Where among the words scripts and expressions stand: `/^#/d` is no path."""
    if program == "csplit":
        return frozenset(at + 1 for at in reading.operands)  # it writes what its options name
    if program != "sed":
        return frozenset()
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
        possible = (word, *chosen_words(word))
        return any(_WHOLE_FOLDER.match(one) or _EMPTY_START.match(one) for one in possible)
    return word.rstrip("/") in (".", "..")


def is_outside(path: str, root: str) -> bool:
    if f"{path}/".startswith(_TEMPORARY) and ".." not in path.split("/"):
        return f"{root}/".startswith(f"{path}/")  # it holds the working folder
    if path in ("/dev/null", "/dev/stdout", "/dev/stderr"):
        return False
    return leads_elsewhere(path) or leaves_folder(path, root)
