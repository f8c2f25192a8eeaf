"""Whether a line reads a secret that it does not name, because a folder that it reads holds one.

Everything else about a line is judged by its words. This last step asks what really lies in the
folders that it reads or lists, through the function that the judge was given, and only if the line
has such a reader. What cannot be found out counts as there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, product

import msgspec

from recollect.permissions.folder_contents import (
    FindSecrets,
    FolderRead,
    FolderSecrets,
    SecretFile,
)
from recollect.permissions.folder_readers import list_names, prints_content, read_folders
from recollect.permissions.name_flow import reads_of_names
from recollect.permissions.normal_command import NormalCommand
from recollect.permissions.normal_form import NormalLine
from recollect.permissions.parsed_line import word_set
from recollect.permissions.path_objections import writes_files
from recollect.permissions.program_table import find_record
from recollect.permissions.wrapper_removal import ANY_WORDS, FILE_NAME

_MOST_READS = 100
# What is tried where nobody can look: a search for `*.py` alone finds none of them.
_LIKELY = tuple(
    SecretFile(folder + name)
    for name in (".env", ".env.local", ".npmrc", "id_rsa", "credentials.json", "x.pem")
    for folder in ("", "x/", "x/x/")
)
_MOVES_FIRST = re.compile(r"\s*cd\s+(['\"]?)([\w.][\w./ -]*?)\1\s*&&")
_MAY_LEAVE = re.compile(r"\.\.|[$`;\n()~]|(?<![&>])&(?![&>])")
_MOST_MOVES = 4
_CHANGES_INDEX = word_set(
    "add am apply checkout cherry-pick clone commit init merge mv pull read-tree rebase reset"
    " restore rm stash switch update-index worktree"
)
_BARE_NAMES = word_set("ls dir vdir exa eza fd fdfind")  # they print them without the folder


def find_hidden_read(
    text: str, line: NormalLine, find_secrets: FindSecrets, check_time: Callable[[], None]
) -> str:
    """Why the line may print a secret, as a part of a sentence; empty if it does not."""
    reads = dict.fromkeys(islice(_all_reads(line, check_time), _MOST_READS + 1))
    if len(reads) > _MOST_READS:
        return "it reads more folders than can be looked through"
    if not reads and not any(map(_takes_names, line.commands)):
        return ""
    places = _places(text, line, find_secrets)
    makes = any(map(writes_files, line.commands))
    for read, place in product(reads, places):
        check_time()
        found, wider = find_secrets(_join(place, read.folder)), read
        if not found.exists and makes:  # the line itself may make it
            found, wider = find_secrets(place or "."), FolderRead(word=read.word)
        if reason := _judge_read(wider, found, check_time):
            return reason
    reasons = (_judge_option_names(line, place, find_secrets) for place in places)
    return next(filter(None, reasons), "")


def _judge_read(read: FolderRead, found: FolderSecrets, check_time: Callable[[], None]) -> str:
    for file in found.files:
        check_time()
        if read.covers(file):
            shown = file.path if read.folder == "." else f"{read.folder.rstrip('/')}/{file.path}"
            return f"{shown[:80]!r} lies in the folder it reads; name other folders or exclude it"
    if not found.complete and any(map(read.covers, _LIKELY)):
        where = "the folder" if read.folder == "." else repr(read.folder[:80])
        return f"{where} has more files than can be searched for secrets; name a smaller folder"
    return ""


def _all_reads(line: NormalLine, check_time: Callable[[], None]) -> Iterator[FolderRead]:
    changes_index = any(
        one.program == "git" and one.words[1:2] != () and one.words[1] in _CHANGES_INDEX
        for one in line.commands
    )
    written = [one.target for one in line.redirections if one.operator != "<"]
    written += [word for one in line.commands if writes_files(one) for word in one.words]
    shows = any(word.endswith("ignore") for word in written)
    if changes_index and any(map(prints_content, line.commands)):
        yield FolderRead()  # what it has just been given
    for read in chain(_direct_reads(line, check_time), reads_of_names(line, check_time)):
        tracked_only = read.tracked_only and not changes_index
        yield msgspec.structs.replace(read, tracked_only=tracked_only, hidden=read.hidden or shows)


def _direct_reads(line: NormalLine, check_time: Callable[[], None]) -> Iterator[FolderRead]:
    for command in line.commands:
        check_time()
        yield from read_folders(command)


def _places(text: str, line: NormalLine, find_secrets: FindSecrets) -> tuple[str, ...]:
    """The folders in which parts of the line may run; only the one it moves to, if it surely runs
    there as a whole: `cd web && grep -rn x .`."""
    moves = [one for one in line.commands if one.words[0] in ("cd", "pushd", "popd")]
    found = _MOVES_FIRST.match(text)
    if found is not None and len(moves) == 1 and moves[0].words[1:] == (found[2],):
        plain = not _MAY_LEAVE.search(text, found.end()) and ".." not in found[2].split("/")
        if plain and find_secrets(found[2]).exists:
            return (found[2],)
    places = [""]
    for goal in (one.words[-1] for one in moves[:_MOST_MOVES] if len(one.words) > 1):
        places += [goal, _join(places[-1], goal)]
    return tuple(dict.fromkeys(places))


def _join(base: str, folder: str) -> str:
    if not base or folder.startswith(("/", "~")):
        return folder
    return base if folder == "." else f"{base.rstrip('/')}/{folder}"


# --- names that become options ------------------------------------------------------------------


def _judge_option_names(line: NormalLine, place: str, find_secrets: FindSecrets) -> str:
    """`ls | xargs sort`: a file named `-ox` would be an option of sort."""
    for at, command in enumerate(line.commands):
        if not _takes_names(command):
            continue
        listed = [one for one in line.commands if one.captured]
        earlier = line.commands[:at]
        may_make = any(map(_may_make_files, earlier)) or _writes_option_name(line)
        for read in _bare_listings(listed):
            found = find_secrets(_join(place, read.folder))
            if found.has_option_names or not found.complete or may_make:
                return (
                    "a file's name that begins with '-' would become an option of"
                    f" {command.program}; put `--` before the names"
                )
    return ""


def _takes_names(command: NormalCommand) -> bool:
    found = find_record(command.words[0])
    if found is not None and found.nature == "reads":
        return False
    places = [at for at, word in enumerate(command.words) if FILE_NAME in word or word == ANY_WORDS]
    through = any(form[0] == "xargs" for form in command.forms)
    starts = [at for at in places if command.words[at] in (FILE_NAME, ANY_WORDS)]
    ended = "--" in command.words[: starts[0]] if starts else True
    return through and not ended


def _bare_listings(listed: Iterable[NormalCommand]) -> Iterator[FolderRead]:
    for command in listed:
        bare = command.program in _BARE_NAMES
        for read in list_names(command) or () if command.program != "find" else ():
            if bare or read.folder == ".":
                yield read


def _may_make_files(command: NormalCommand) -> bool:
    found = find_record(command.words[0])
    return found is None or found.nature in ("code", "builds") or writes_files(command)


def _writes_option_name(line: NormalLine) -> bool:
    targets = [one.target for one in line.redirections if one.operator != "<"]
    return any(target.rpartition("/")[2].startswith(("-", "$", "`")) for target in targets)
