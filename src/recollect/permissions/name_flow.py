"""Names that a line computes, and the commands that open the files they name.

`ls -A | xargs cat`, `cat $(ls -A)`, `for f in $(find …); do cat "$f"; done`: a name that comes from
a command counts as reading what that command lists. Where a name can come from anything else (a
file, code, a text that another program rewrites) every file of the folder counts that the word can
become. What a command prints is followed to the whole line, not from pipe to pipe. Pure; linear in
the number of commands times the words that take a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise

import msgspec

from recollect.permissions.folder_contents import FolderRead
from recollect.permissions.folder_readers import (
    PRINT_NO_CONTENT,
    is_pattern,
    list_names,
    pattern_read,
    prints_no_content,
)
from recollect.permissions.interpreter_code import codes_of
from recollect.permissions.normal_command import READS_INPUT, NormalCommand
from recollect.permissions.normal_form import NormalLine
from recollect.permissions.parsed_line import word_set
from recollect.permissions.program_table import find_record
from recollect.permissions.shell_values import is_plain_value
from recollect.permissions.wrapper_removal import ANY_WORDS

# They print no names, or only those that they are given.
_QUIET = PRINT_NO_CONTENT | word_set("command whoami xargs")
_PASSES_ON = word_set("cat comm grep egrep fgrep head nl rg sort tac tail tee uniq")
_TEXTS = word_set("echo printf")
_SELECTS = word_set("awk cut gawk mawk sed tr")
_SELECTION = re.compile(
    r"\s*\{\s*print\s+\$(?:\d+|NF)\s*;?\s*\}\s*|\d+(?:,(?:\d+|\$))?[pdq]|s(.)\^?\.\\?/\1\1g?"
    r"|\\n|\\0| |\\r|\n"
)
_GIT_QUIET = word_set(
    "add blame branch check-ignore checkout commit config describe fetch log ls-files merge-base mv"
    " pull rebase remote reset restore rev-list rev-parse rm shortlog status switch"
    " symbolic-ref tag"
)
_NAMES_ONLY = re.compile(r"-[A-Za-z]*[lL]|--files-with")
_ENDINGS = ("\\n", "\\0", "\n", " ")
_ECHO_ESCAPE = re.compile(r"\\[0-7bcefnrtvx]")
_ECHO_PART = re.compile(r"-[eE]*n")
# options that cut elsewhere than at lines and NULs
_XARGS_CUTS = re.compile(r"-(?:-d[a-z]*(?:=|\Z)|[0rtx]*d)(.*)", re.DOTALL)
_READ_CUTS = re.compile(r"-[rest]*[dnN](.*)", re.DOTALL)
_WHOLE_NAMES = ("\\n", "\n", "\\0", "", " ", ",", ":", ";", "\t", "\\t", "|")
_REWRITES = re.compile(r"\$\{\w+(?:[%#/^,]|:[ 0-9(-]?\d)")
_LISTS_IN_CODE = re.compile(
    r"\b(?:listdir|scandir|walk|iterdir|fwalk|readdir(?:Sync)?|opendir|children|entries|each_child"
    r"|r?glob|iglob|globSync|globstar|Find|find_each|Dir|make_archive|tarfile|copytree|cpSync)\b|<\s*[\w./]*\*[^>]*>"
)
_OPENS_IN_CODE = re.compile(
    r"open|read|slurp|File\b|cat\b|copy|tar|zip|fileinput|linecache|<\s*\$?\w*\s*>|-[np]\b|archive"
)
_RUNS_IN_CODE = re.compile(
    r"sys(?:tem|cmd)|popen|subprocess|\bexec|spawn|child_process|\bqx|`", re.IGNORECASE
)
_READER_IN_CODE = re.compile(
    r"\b(?:awk|base64|cat|cp|diff|find|grep|head|ls|nl|od|rg|sed|strings|tac|tail|tar|xargs|xxd|zip)\b"
)
# `$(<list)`; `$_` is the last word of the command before
_FROM_ELSEWHERE = re.compile(r"(?:\$\(|`)\s*<|\$_(?!\w)|\$\{_\W")
_SELECTING = re.compile(r"-[a-zA-Z]*o|--only|--rep|-r")  # of grep and rg: a part of a line
_COUNTS_BYTES = re.compile(r"-[a-z]*c|--by")  # of head and tail
_FORMAT = re.compile(r"(?:--(?:format|pretty|printf)|-c)(?:=|\Z)|-c[^a-z]")
_PLAIN_FORMAT = re.compile(
    r"(?:--\w+=|-c)?(?:t?format:)?(?:%\([a-zA-Z:]+\)|%(?![xC])[a-zA-Z]{1,2}|[ ,|:])*"
)
_LITERAL_GLOB = re.compile(r"""\bi?r?glob(?:Sync)?\(\s*[rf]?(['"])([^'"]*)\1""")
_LITERAL_FOLDER = re.compile(
    r"""\b(?:listdir|scandir|walk|readdir\w*|copytree|cpSync)\(\s*(['"])([\w./-]+)\1"""
)


def reads_of_names(line: NormalLine, check_time: Callable[[], None]) -> Iterator[FolderRead]:
    """What a line reads through names that it computes, and through patterns."""
    commands = line.commands
    sources = tuple(dict.fromkeys(_sources(line, check_time)))
    unknown = _has_unknown_source(line)
    for word in _opened_words(line):
        if is_pattern(word):
            yield pattern_read(word)
        elif _REWRITES.search(word) or unknown:
            yield FolderRead(word=word)
        else:
            yield from (msgspec.structs.replace(one, word=word) for one in sources)
    for command in commands:
        for code in codes_of(command):
            yield from _reads_of_code(code, sources if command.piped else ())
            if command.piped and unknown and _OPENS_IN_CODE.search(code):
                yield FolderRead()
        if command.program == "zip" and "-@" in command.words:
            yield from sources
            yield from [FolderRead()] if unknown or not sources else []


def _reads_of_code(code: str, given: Iterable[FolderRead]) -> Iterator[FolderRead]:
    """Code that lists a folder and opens files, or opens the files it is given the names of."""
    if _RUNS_IN_CODE.search(code) and _READER_IN_CODE.search(code):
        yield FolderRead()
    if not _OPENS_IN_CODE.search(code):
        return
    yield from given
    calls = len(_LISTS_IN_CODE.findall(code))
    globs = [found[2] for found in _LITERAL_GLOB.finditer(code)]
    folders = [found[2] for found in _LITERAL_FOLDER.finditer(code)]
    imported = len(re.findall(r"import\s+glob|from\s+glob|glob\.|require\(\W*glob", code))
    if calls > len(globs) + len(folders) + imported:
        yield FolderRead()
        return
    yield from (FolderRead(folder=folder) for folder in folders)
    for glob in (one for text in globs for one in text.split()):
        yield FolderRead(word=f"$x{glob.replace('**/', '$x')}")  # `$x`: the folder of the code


def _sources(line: NormalLine, check_time: Callable[[], None]) -> Iterator[FolderRead]:
    for command in line.commands:
        check_time()
        if command.captured:
            yield from list_names(command) or ()
            for at in sorted(command.uncertain):
                if at < len(command.words) and is_pattern(command.words[at]):
                    yield pattern_read(command.words[at])
    yield from (pattern_read(word) for word in line.other_words if is_pattern(word))


def listed_names(line: NormalLine) -> Iterator[FolderRead]:
    """The files whose names the commands of a line print for others."""
    return _sources(line, lambda: None)


def _has_unknown_source(line: NormalLine) -> bool:
    """Whether a name can come from something that lists no folder."""
    captured = [command for command in line.commands if command.captured]
    kinds = {_kind_of(command) for command in captured}
    kinds |= {"text" for command in captured if command.stdin_text}
    joined = "part" in kinds and (len(captured) > 1 or any(one.uncertain for one in captured))
    if "unknown" in kinds or {"text", "selects"} <= kinds or joined:
        return True
    if any(_cuts_input(one) or _formats_variable(one.words) for one in line.commands):
        return True
    words = (word for one in line.commands for word in one.words)
    targets = (one.target for one in line.redirections)
    if any(map(_FROM_ELSEWHERE.search, chain(words, targets, line.other_words))):
        return True
    reads_file = any(one.operator == "<" and one.target != "/dev/null" for one in line.redirections)
    for command in line.commands:
        fed = command.piped or command.stdin_text is not None
        if any(form[0] == "xargs" for form in command.forms):
            named = any(word.startswith(("-a", "--ar")) for word, _ in _options_of_xargs(command))
            if not fed or named:
                return True
        elif command.words[0] in READS_INPUT and reads_file:
            return True
    return False


def _kind_of(command: NormalCommand) -> str:
    words, program = command.words, command.program
    if program == "rg" and _takes_parts(program, words):
        return "selects"
    if list_names(command) is not None:
        return "lists"
    if program in _TEXTS:
        return _kind_of_text(words)
    if _makes_names(program, words):
        return "unknown"
    operands = [word for word in words[1:] if not word.startswith("-")]
    if program.endswith(("grep", "rg")) and any(map(_NAMES_ONLY.match, words[1:])):
        return "quiet"
    if _takes_parts(program, words):
        return "selects"
    if program in _PASSES_ON:
        return "quiet" if _reads_input(program, operands) else "unknown"
    if program in _SELECTS:
        scripts = [word for word in operands if not word.isdecimal()]
        plain = program == "cut" or all(_SELECTION.fullmatch(word) for word in scripts)
        return "selects" if plain else "unknown"
    if program == "git":
        return "quiet" if words[1:2] and words[1] in _GIT_QUIET else "unknown"
    found = find_record(words[0])
    builds = found is not None and found.nature == "builds" and found.check != "interpreter"
    return "quiet" if builds or (program in _QUIET and program != "date") else "unknown"


def _makes_names(program: str, words: tuple[str, ...]) -> bool:
    """`basename .envx x`, `git log --format=%x2eenv`"""
    return (program == "basename" and len(words) > 2) or (
        program in ("git", "stat") and _has_format(words)
    )


def _reads_input(program: str, operands: list[str]) -> bool:
    searched = 1 if program.endswith(("grep", "rg")) else 0
    counted = program in ("head", "tail") and operands and operands[0].lstrip("+").isdecimal()
    return len(operands) <= searched + bool(counted)


def _takes_parts(program: str, words: tuple[str, ...]) -> bool:
    """`head -c 4`, `grep -o x`: what they print need not be a whole line."""
    cuts = _COUNTS_BYTES if program in ("head", "tail") else _SELECTING
    known = program in ("head", "tail", "rg") or program.endswith("grep")
    return known and any(map(cuts.match, words[1:]))


def _has_format(words: tuple[str, ...]) -> bool:
    """`git log --format=%x2eenv`: a text of the line's own."""
    given = [
        following if word in ("-c", "--format", "--printf", "--pretty") else word
        for word, following in pairwise((*words[1:], ""))
        if _FORMAT.match(word) and (word != "-c" or words[0] == "stat")
    ]
    return not all(map(_PLAIN_FORMAT.fullmatch, given))


def _formats_variable(words: tuple[str, ...]) -> bool:
    """`printf -v x .%s env`"""
    if words[0] != "printf" or not words[1:2] or not words[1].startswith("-v"):
        return False
    return _formats(("printf", *words[3 if words[1] == "-v" else 2 :]))


def _kind_of_text(words: tuple[str, ...]) -> str:
    """`part`: what is printed next continues its last word."""
    if words[0] == "printf":
        if _formats(words):
            return "unknown"
        return "text" if words[1:2] and words[1].endswith(_ENDINGS) else "part"
    if any(map(_ECHO_ESCAPE.search, words[1:])):
        return "unknown"  # of dash, and of bash with `-e`
    return "part" if any(map(_ECHO_PART.match, words[1:2])) else "text"


def _cuts_input(command: NormalCommand) -> bool:
    """`xargs -d x`, `read -n 4`: only a part of a word, or of a line, is the name."""
    if not command.takes_names:
        return False
    pairs = ((_XARGS_CUTS, _options_of_xargs(command)),)
    if command.words[0] in READS_INPUT:
        pairs = ((_READ_CUTS, pairwise((*command.words, ""))),)
    return any(
        found is not None and (found[1] or following) not in _WHOLE_NAMES
        for cuts, words in pairs
        for word, following in words
        for found in (cuts.match(word),)
    )


def _formats(words: tuple[str, ...]) -> bool:
    separated = words[1:2] in (("%s\\n",), ("%s\\0",), ("%s ",))
    plain = separated or (words[1:2] == ("%s",) and not words[3:])
    return not plain and any("%" in word or "\\" in word for word in words[1:])


def _opened_words(line: NormalLine) -> Iterator[str]:
    """Words that the shell decides and that name what a command opens."""
    for one in line.redirections:
        if one.operator == "<" and one.uncertain:
            yield one.target
    for command in line.commands:
        yield from _argument_files(command)
        if _opens_nothing(command):
            continue
        for at in sorted(command.uncertain):
            word = command.words[at] if at < len(command.words) else ""
            if at and _may_name_file(command, at, word):
                yield word


def _options_of_xargs(command: NormalCommand) -> Iterator[tuple[str, str]]:
    """The words of each xargs before what it runs, each with the next."""
    for form in command.forms:
        own = form[1 : max(1, len(form) - len(command.words) + 2)] if form[0] == "xargs" else ()
        yield from pairwise((*own, ""))


def _argument_files(command: NormalCommand) -> Iterator[str]:
    """`xargs -a $f` prints what is in the file."""
    for word, following in _options_of_xargs(command):
        value = word.partition("=")[2] or word[2:]
        if word in ("-a", "--arg-file"):
            value = following or ANY_WORDS  # of another xargs
        if word.startswith(("-a", "--ar")) and any(sign in value for sign in "$`"):
            yield value


def _opens_nothing(command: NormalCommand) -> bool:
    program, words = command.program, command.words
    if program == "git":
        return words[1:2] != () and words[1] in _GIT_QUIET
    found = find_record(words[0])
    if found is not None and found.nature == "builds" and found.check != "interpreter":
        return True
    return prints_no_content(program, words)


def _may_name_file(command: NormalCommand, at: int, word: str) -> bool:
    if word.startswith(("<(", ">(", "$((")) or (is_plain_value(word) and "/" not in word):
        return False
    searches = command.program.endswith("grep") or command.program in ("rg", "sed", "awk", "jq")
    if searches and at not in command.splitting and _is_first_operand(command, at):
        return False  # a quoted pattern stays one word: `grep "$x" file`
    return is_pattern(word) or any(sign in word for sign in "$`")


def _is_first_operand(command: NormalCommand, at: int) -> bool:
    """Whether it is surely the pattern or script, because no option gives one."""
    options = [word for word in command.words[1:] if word.startswith("-")]
    operands = [i for i, one in enumerate(command.words) if i and not one.startswith("-")]
    given = any("e" in word or "f" in word for word in options)
    return bool(operands) and operands[0] == at and not given
