"""Programs that go through whole folders: which files they read, and which names they print.

`read_folders` says what a command reads or copies below folders, `list_names` whose names it
prints. Where words cannot be told apart, the answer is the larger one. Pure and linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from recollect.permissions.find_reading import read_find
from recollect.permissions.folder_contents import FolderRead, NameFilter, starting_folder
from recollect.permissions.normal_command import NormalCommand
from recollect.permissions.parsed_line import word_set
from recollect.permissions.program_record import OptionReading, ProgramRecord, read_options, record
from recollect.permissions.program_table import find_record
from recollect.permissions.script_checks import split_tar_bundle

_GREP = record(
    "-EFGPivwxcLlqosbHhnTUzZaIyrRV -e,--regexp= -f,--file= -m,--max-count= -A,--after-context="
    " -B,--before-context= -C,--context= -d,--directories= -D,--devices= --include= --exclude="
    " --exclude-dir= --exclude-from= --color=? --colour=? --label= --binary-files= --recursive"
    " --dereference-recursive --line-number --ignore-case --no-ignore-case --word-regexp"
    " --line-regexp --count --files-with-matches --files-without-match --quiet --silent"
    " --only-matching --no-messages --byte-offset --with-filename --no-filename --initial-tab"
    " --binary --null --null-data --text --extended-regexp --fixed-strings --basic-regexp"
    " --perl-regexp --invert-match --version --help --line-buffered --group-separator=",
    numbers=True,
)
_GREPS = word_set("grep egrep fgrep rgrep ggrep")
_SILENT = (
    "-l", "-L", "-q", "-c", "--files-with-matches", "--files-without-match", "--quiet", "--silent",
    "--count", "--count-matches", "--files",
)  # fmt: skip
_SEARCHERS = word_set("ack ack-grep ugrep ug pt sift hgrep")  # they search the folder by themselves
_ARCHIVERS = word_set("7z 7za 7zr rar pax jar bsdtar")
_COMPRESSORS = word_set("gzip gunzip gzcat zcat bzip2 xz zstd unzstd zstdcat")
_PACKING_MODULES = word_set("zipfile tarfile zipapp")
_LISTING = word_set("ls dir vdir exa eza lsd")
_ALL_NAMES = re.compile(r"-[A-Za-z0-9]*[aAf]|--a")  # of ls
_RECURSIVE = re.compile(r"-[A-Za-z0-9]*[rR]|--re|--tree")
_SHORT = re.compile(r"-[A-Za-z]")
_GLOB = re.compile(r"[*?\[{]")
_NAMES_ONLY = ("--name-only", "--name-status", "--stat", "--numstat", "--raw")
_NO_PATCH = (*_NAMES_ONLY, "--shortstat", "--summary", "--quiet", "--no-patch", "-s", "-q")
_PATCH = ("-p", "-u", "--patch", "--unified", "--patch-with-stat", "--binary", "--cc", "-c")
_SHOW_PATCH = word_set("diff show format-patch range-diff")  # the others only if they are told to
_NO_OBJECT = ("-t", "-s", "-e", "--batch-check")  # of git cat-file
_UNTRACKED = re.compile(r"-[a-z]*[ua]|--i|--al")  # of git stash


def is_pattern(word: str) -> bool:
    """Whether the shell replaces the word by names of files, and nothing else decides it."""
    return bool(_GLOB.search(word)) and not any(sign in word for sign in "$`")


def pattern_read(word: str) -> FolderRead:
    folder = starting_folder(word)
    inside = word.removeprefix("./") if folder == "." else word[len(folder) :]
    return FolderRead(folder=folder, pattern=inside.strip("/"))


def read_folders(command: NormalCommand) -> Iterator[FolderRead]:
    """What a command reads or copies of folders that it goes through itself."""
    words, program = command.words, command.program
    if program in _GREPS or program == "rg":
        reading = read_options(_record_of(program), words[1:], command.doubtful())
        silent = reading.has(*(_SILENT if program == "rg" else _SILENT[:-1]))
        if not silent or (program == "rg" and reading.has("--json")):  # the last of them counts
            yield from _search(command, reading)
    elif program in _SEARCHERS or (program == "ag" and "--hidden" in words):
        yield from _each_folder(command, _plain_operands(words[1:]))
        yield FolderRead()
    elif program == "ag":
        yield FolderRead(hidden=False)
    elif words[:2] == ("git", "grep"):
        yield from _search_tracked(command)
    elif program in ("find", "gfind"):
        yield from _run_on_found(command)
    elif program in ("diff", "colordiff", "sdiff"):
        if not any(word.startswith(("-q", "--br")) for word in words):
            deepest = 0 if any(map(_RECURSIVE.match, words)) else 1
            yield from _each_folder(command, _plain_operands(words[1:]), deepest=deepest)
    else:
        yield from _pack(command)


def _pack(command: NormalCommand) -> Iterator[FolderRead]:
    """Copies and archives: what they hold has other names, or is printed."""
    words, program = command.words, command.program
    recursive = any(word == "--archive" or _RECURSIVE.match(word) for word in words[1:])
    if program == "cp" and (recursive or any(re.match(r"-[A-Za-z]*a", one) for one in words)):
        named = _plain_operands(words[1:])
        into = any(re.match(r"-[A-Za-z]*t|--t", word) for word in words)
        yield from _each_folder(command, named if into else named[:-1])
    elif program == "tar":
        yield from _pack_tar(command)
    elif program == "zip" and recursive:
        yield from _each_folder(command, _plain_operands(words[1:]), _after(words, "-x"))
    elif (
        program in _ARCHIVERS
        or (program in _COMPRESSORS and recursive)
        or (program == "python" and not _PACKING_MODULES.isdisjoint(words[1:4]))
    ):
        yield from _each_folder(command, _plain_operands(words[1:]))
    elif program in ("npm", "pnpm", "yarn"):
        yield from [FolderRead()] if words[1:2] in (("diff",), ("pack",)) else []
    elif words[:2] == ("git", "stash") and any(map(_UNTRACKED.match, words[2:])):
        yield FolderRead()


def list_names(command: NormalCommand) -> tuple[FolderRead, ...] | None:
    """The files whose names a command prints; None if it is none that lists."""
    words, program = command.words, command.program
    if program in _LISTING:
        hidden = any(map(_ALL_NAMES.match, words[1:]))
        deepest = 0 if any(map(_RECURSIVE.match, words[1:])) else 1
        found = _plain_operands(words[1:]) or ("",)
        return tuple(_each_folder(command, found, hidden=hidden, deepest=deepest))
    if program in ("find", "gfind"):
        return tuple(_found(command))
    if program in _GREPS or program == "rg":
        reading = read_options(_record_of(program), words[1:], command.doubtful())
        return tuple(_search(command, reading, lists=True)) or None
    if program in ("fd", "fdfind", "tree", "du"):
        hidden = program == "du" or any(re.match(r"-[A-Za-z]*[Hua]|--hid|--un", x) for x in words)
        return (FolderRead(hidden=hidden), *_each_folder(command, _plain_operands(words[1:])))
    return _list_tracked(command) if program == "git" else None


def _record_of(program: str) -> ProgramRecord:
    return (find_record("rg") if program == "rg" else None) or _GREP


def _plain_operands(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for word in words if not word.startswith("-"))


def _after(words: tuple[str, ...], option: str) -> tuple[NameFilter, ...]:
    at = words.index(option) + 1 if option in words else len(words)
    return tuple(NameFilter(keeps=False, glob=word) for word in _plain_operands(words[at:]))


def _each_folder(
    command: NormalCommand,
    operands: Iterable[str],
    filters: tuple[NameFilter, ...] = (),
    *,
    hidden: bool = True,
    deepest: int = 0,
    otherwise: bool = True,
) -> Iterator[FolderRead]:
    decided = {command.words[at] for at in command.uncertain if at < len(command.words)}
    for word in operands:
        certain = not any(one and one in word for one in decided)
        if not certain and is_pattern(word) and deepest:
            yield pattern_read(word)
            if not hidden and "." in word.rpartition("/")[2]:
                continue  # `ls *.py`: no folder has such a name
        yield FolderRead(
            folder=(word or ".") if certain else starting_folder(word),
            hidden=hidden,
            deepest=deepest if certain else 0,
            filters=filters,
            otherwise=otherwise,
        )


# --- searches -----------------------------------------------------------------------------------


def _search(
    command: NormalCommand, reading: OptionReading, *, lists: bool = False
) -> Iterator[FolderRead]:
    words, program = command.words[1:], command.program
    given = reading.has("--regexp", "--file") or (program == "rg" and reading.has("--files"))
    operands = [words[at] for at in reading.operands[0 if given else 1 :]]
    if program == "rg":
        filters = tuple(_ripgrep_filters(reading))
        hidden = reading.has("--hidden") or _unrestricted(reading) or bool(reading.unlisted)
        if not operands and command.piped and not lists:
            return  # it searches what it is given
        otherwise = not any(one.keeps for one in filters)
    elif _is_recursive(program, reading):
        filters, hidden = tuple(_grep_filters(reading)), True
        otherwise = not filters or not filters[0].keeps
    else:
        return
    yield from _each_folder(command, operands or ("",), filters, hidden=hidden, otherwise=otherwise)


def _is_recursive(program: str, reading: OptionReading) -> bool:
    shortened = any(word.startswith(("--r", "--de", "--di", "$", "`")) for word in reading.unlisted)
    shortened = shortened or any(map(_RECURSIVE.match, reading.unlisted))  # `-5r`
    named = reading.has("-r", "-R", "--recursive", "--dereference-recursive")
    folders = any(value.startswith("r") for value in reading.values("--directories"))
    return program == "rgrep" or shortened or named or folders


def _grep_filters(reading: OptionReading) -> Iterator[NameFilter]:
    for option in reading.options:
        name, value = option.spec.name, option.value or ""
        if name in ("--include", "--exclude", "--exclude-dir"):
            yield NameFilter(name == "--include", value, folders=name == "--exclude-dir")


def _unrestricted(reading: OptionReading) -> bool:
    return sum(one.spec.name in ("-u", "--unrestricted") for one in reading.options) > 1


def _ripgrep_filters(reading: OptionReading) -> Iterator[NameFilter]:
    for option in reading.options:
        value = option.value or ""
        if option.spec.name == "--glob" and value.startswith("!"):
            yield NameFilter(keeps=False, glob=value[1:])
            yield NameFilter(keeps=False, glob=value[1:], folders=True)
        elif option.spec.name in ("--glob", "--iglob") and not value.startswith("!"):
            yield NameFilter(keeps=True, glob=value if option.spec.name == "--glob" else "*")


# --- git ----------------------------------------------------------------------------------------


def _read_git(command: NormalCommand) -> OptionReading:
    git = find_record("git")
    known = None if git is None else git.commands.get(command.words[1])
    doubtful = frozenset(at - 1 for at in command.doubtful() if at)
    return read_options(known or record(), command.words[2:], doubtful)


def _search_tracked(command: NormalCommand) -> Iterator[FolderRead]:
    reading = _read_git(command)
    if reading.has(*_SILENT, "--name-only"):
        return
    outside = reading.unlisted or reading.has("--untracked", "--no-exclude-standard")
    yield from _paths_of_git(command, tracked_only=not outside)


def prints_content(command: NormalCommand) -> bool:
    """Whether git prints the content of what it has."""
    if command.program != "git" or len(command.words) < 2:
        return False
    name, reading = command.words[1], _read_git(command)
    if name == "cat-file":
        return reading.has("--batch") or not reading.has(*_NO_OBJECT)
    if name in ("status", "commit"):
        return reading.has("-v", "--verbose")
    return reading.has(*_PATCH) or (name in _SHOW_PATCH and not reading.has(*_NO_PATCH))


def _paths_of_git(command: NormalCommand, *, tracked_only: bool) -> Iterator[FolderRead]:
    """What stands after `--` limits it; before, a word can also be a revision."""
    words = command.words
    listed = words[1] == "ls-files"
    at = words.index("--") + 1 if "--" in words else 2 if listed else len(words)
    paths = _plain_operands(words[at:])
    decided = any(position >= at for position in command.uncertain)
    if not paths or decided or any(path.startswith(":") for path in paths):
        yield FolderRead(tracked_only=tracked_only)
        return
    for path in paths:
        if _GLOB.search(path):
            kept = (NameFilter(keeps=True, glob=path),)
            yield FolderRead(filters=kept, otherwise=False, tracked_only=tracked_only)
        else:
            yield FolderRead(folder=path, tracked_only=tracked_only)


def _list_tracked(command: NormalCommand) -> tuple[FolderRead, ...] | None:
    name, words = command.words[1:2], command.words
    if name == ("ls-files",):
        others = any(re.match(r"-[A-Za-z]*o|--ot", word) for word in words[2:])
        return tuple(_paths_of_git(command, tracked_only=not others))
    if name in (("status",), ("clean",), ("check-ignore",), ("stash",)):
        return (FolderRead(),)
    if name == ("ls-tree",) or not frozenset(_NAMES_ONLY).isdisjoint(words):
        return (FolderRead(tracked_only=True),)
    if name == ("grep",):
        return tuple(_search_tracked(command)) or (FolderRead(tracked_only=True),)
    return None


# --- find and tar -------------------------------------------------------------------------------


def _found(command: NormalCommand) -> Iterator[FolderRead]:
    words = command.words[1:]
    found = read_find(words)
    starts = found.starts or (".",)
    first = next((at for at, word in enumerate(words) if word in found.starts), 0)
    expression = words[first + len(found.starts) :]
    certain = not command.uncertain
    for start in starts:
        folder = start if certain else starting_folder(start)
        yield FolderRead(folder=folder, found_by=expression if certain else ())


def _run_on_found(command: NormalCommand) -> Iterator[FolderRead]:
    found = read_find(command.words[1:])
    run = [(words[0].rpartition("/")[2], words) for words in found.commands if words]
    if not all(prints_no_content(program, words) for program, words in run):
        yield from _found(command)


def _pack_tar(command: NormalCommand) -> Iterator[FolderRead]:
    found = find_record("tar")
    words = split_tar_bundle(command.words[1:])
    if found is None:
        return
    reading = read_options(found, words)
    creates = reading.has("-c", "--create") or reading.unlisted
    if not creates or reading.has("-x", "-t", "--extract", "--get", "--list"):
        return
    filters = tuple(
        NameFilter(keeps=False, glob=value, folders=folders)
        for value in reading.values("--exclude")
        for folders in (False, True)
    )
    operands = [words[at] for at in reading.operands]
    bases = [f"{value.rstrip('/')}/" for value in reading.values("--directory")] or [""]
    for base in bases:
        joined = [base + word if base and word != "." else word or "." for word in operands]
        joined = [base.rstrip("/") if base and word == "." else word for word in joined]
        yield from _each_folder(command, joined, filters)


# What these print or do with a file has nothing of its content.
PRINT_NO_CONTENT = word_set(
    "[ : b2sum basename break cal cd chgrp chmod chown cksum continue curl date declare df dirname"
    " du echo exa exit export eza false file hostname id kill local ls lsd md5sum mkdir mktemp"
    " nproc popd printenv printf ps pushd pwd read readlink readonly realpath return rm rmdir seq"
    " set sha1sum sha224sum sha256sum sha384sum sha512sum shift sleep stat sum test touch tree"
    " true truncate type typeset uname unset unlink wait wc which"
)


def prints_no_content(program: str, words: Iterable[str]) -> bool:
    """`wc --files0-from=x` prints what is in x and names no file; it can be shortened."""
    lists = program in ("du", "wc") and any(word.startswith("--f") for word in words)
    return program in PRINT_NO_CONTENT and not lists
