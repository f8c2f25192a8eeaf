"""Words that a line computes from its own texts: `echo .env | xargs cat`, `${x%x}`.

What a command prints can become the words of another, and an expansion can rewrite the value of a
variable. The texts from which that can begin are in the line, so they are judged as if they were
the words. What files' names make of a word is `name_flow`'s concern. Pure; linear, because the
values and the rewritten words are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain, islice, pairwise

from recollect.permissions.find_expression import ANY_NAME, may_find
from recollect.permissions.folder_contents import FolderRead
from recollect.permissions.name_flow import listed_names
from recollect.permissions.normal_command import NormalCommand
from recollect.permissions.normal_form import NormalLine
from recollect.permissions.parsed_line import ParsedLine, word_set
from recollect.permissions.path_objections import is_outside, writes_files
from recollect.permissions.protected_paths import (
    leaves_folder,
    matches_config,
    matches_secret,
    names_config,
    names_secret,
    replace_brackets,
)
from recollect.permissions.shell_values import chosen_words, without_quotes

_SECRET_PARTS = (".env", ".ssh", ".aws", ".npmrc", ".netrc", "id_rsa")
_REMOVERS = word_set("rm rmdir shred truncate unlink")
_LAST_WORD = re.compile(r"\$_(?!\w)|\$\{_\W")  # of the command before
_REPOSITORY = re.compile(r"--(?:absolute-)?git-")
_BARE = re.compile(r"(?:\./)*(?:\$\w+|\$\{\w+\}|\$@|\$\(.*\)|`.*`)/*\Z", re.DOTALL)
_REWRITTEN = re.compile(r"\$\{(\w+)(%%|##|//|\^\^|,,|[%#/^,:])([^{}$`]*)\}")
_DELIMITER = re.compile(r"-(?:-d[a-z]*=|-d[a-z]*\Z|[0rtx]*d)(.?)", re.DOTALL)
_SLICE = re.compile(r" ?(-?\d+)(?::(-?\d+))?\Z")
_MOST_VALUES, _LONGEST = 40, 300


def object_to_computed(line: ParsedLine, normal: NormalLine, root: str) -> str:
    """Why a word that the line computes may not be used; empty if nothing is wrong with it."""
    writes = writes_somewhere(normal) or any(map(writes_files, normal.commands))
    decided = [word for one in normal.commands for word in _decided_words(one)]
    decided += [one.target for one in normal.redirections if one.uncertain]
    if reason := _object_to_rewritten(line, decided, root, writes=writes):
        return reason
    if reason := _object_to_removal(normal, root):
        return reason
    firsts = {form[0] for one in normal.commands for form in one.forms}
    if "xargs" in firsts or any("$" in word or "`" in word for word in decided):
        return _object_to_passed(line, normal, decided, root, writes=writes)
    return ""


def writes_somewhere(normal: NormalLine) -> bool:
    targets = [one.target for one in normal.redirections if one.operator != "<"]
    return any(not target.startswith("/dev/") for target in targets)


def _decided_words(command: NormalCommand) -> list[str]:
    return [command.words[at] for at in command.uncertain if at < len(command.words)]


def _object_to_passed(
    line: ParsedLine, normal: NormalLine, decided: list[str], root: str, *, writes: bool
) -> str:
    if writes and any(map(_names_repository, normal.commands)):
        return "git names its own folder, and the line writes"
    decided = [*decided, *(value for _, value in line.assignments)]  # `b=$a`
    for name, value in (*line.assignments, *_appended(line)):
        if any(part in without_quotes(value).lower() for part in _SECRET_PARTS):
            return f"the value of {name} may become the name of a secret"
        used = writes and any(f"${name}" in word or f"${{{name}" in word for word in decided)
        if used and (is_outside(value, root) or any(map(_may_be_config, _names_in(value)))):
            return f"the value of {name} leads outside the working folder, or is protected"
    chosen = (made for word in normal.other_words for made in chosen_words(word))
    if writes and any(map(_may_be_config, chosen)):
        return "a default text becomes the name of a file that only the user writes"
    delimiters = "".join(_delimiters(normal))
    for text, expanded in _passed_texts(normal):
        for word in _names_in(text, delimiters):
            protected = names_config(word) or leaves_folder(word, root)
            protected = protected or (expanded and matches_config(word))
            secret = names_secret(word) or (expanded and matches_secret(word))
            if secret or (writes and protected):
                return f"{word[:80]!r} is passed on to another command"
    return ""


def _names_repository(command: NormalCommand) -> bool:
    asked = command.captured and command.words[:2] == ("git", "rev-parse")
    return asked and any(map(_REPOSITORY.match, command.words[2:]))


def _render(words: tuple[str, ...]) -> str:
    """What `printf %s.%s AGENTS md` prints, as far as its format is plain."""
    if words[0] != "printf" or len(words) < 2:
        return ""
    at = 1 if not words[1].startswith("-v") else 3 if words[1] == "-v" else 2
    text, *values = (*words[at:], "")
    for value in values[:_MOST_VALUES]:
        text = text.replace("%s", value, 1)
    return text[:_LONGEST]


def _may_be_config(word: str) -> bool:
    return names_config(word) or matches_config(word)


def _names_in(text: str, delimiters: str = "") -> Iterator[str]:
    """The words of a text, also as xargs and `read` take quotes and backslashes off them."""
    plain = without_quotes(text)
    cut = text.translate(dict.fromkeys(map(ord, delimiters), " "))
    yield from dict.fromkeys(chain(text.split(), plain.split(), cut.split()))


def _delimiters(normal: NormalLine) -> Iterator[str]:
    """The characters at which an option makes xargs or `read` cut."""
    for command in normal.commands:
        for form in command.forms if command.takes_names else ():
            for word, following in pairwise((*form, "")):
                found = _DELIMITER.match(word)
                value = "" if found is None else found[1] or following
                yield value[:1]


def _appended(line: ParsedLine) -> Iterator[tuple[str, str]]:
    """`x=.e; x+=nv`: what a variable holds that is assigned more than once."""
    values: dict[str, list[str]] = {}
    for name, value in line.assignments:
        values.setdefault(name, []).append(value)
    yield from ((name, "".join(parts)) for name, parts in values.items() if len(parts) > 1)


def _passed_texts(normal: NormalLine) -> Iterator[tuple[str, bool]]:
    """What commands print by their own words or take names from, and whether it is a pattern for
    the shell or expanded by it; only xargs and `read` split a text with spaces in it."""
    all_words = (word for one in normal.commands for word in one.words)
    targets = (one.target for one in normal.redirections)
    if any(map(_LAST_WORD.search, chain(all_words, targets, normal.other_words))):
        yield from ((one.words[-1], True) for one in normal.commands)
    takes = any(one.takes_names for one in normal.commands)
    splits = any(form[0] == "xargs" for one in normal.commands for form in one.forms)
    for command in normal.commands:
        if command.words[0] in ("echo", "printf"):
            apart = splits or command.captured
            words = (*command.words[1:], _render(command.words))
            printed = (word for word in words if apart or " " not in word.strip())
            yield from ((word, command.captured) for word in printed)
        if command.stdin_text and (command.takes_names or (takes and command.captured)):
            yield command.stdin_text, True


# --- expansions that rewrite --------------------------------------------------------------------


def _object_to_rewritten(line: ParsedLine, decided: list[str], root: str, *, writes: bool) -> str:
    rewritten = [word for word in decided if _REWRITTEN.search(word)]
    literal = (word for word in (*(v for _, v in line.assignments), *line.other_words) if word)
    values = list(islice(dict.fromkeys(literal), _MOST_VALUES + 1)) if rewritten else []
    if len(values) > _MOST_VALUES:
        return "an expansion rewrites more values than can be looked at"
    for word in dict.fromkeys(rewritten):
        for value in values:
            made = _REWRITTEN.sub(partial(_rewrite, value), word)
            if matches_secret(made):
                return f"{word[:40]!r} becomes {made[:80]!r}, which may hold secrets"
            if writes and (matches_config(made) or is_outside(made, root)):
                return f"{word[:40]!r} becomes {made[:80]!r}, which only the user writes"
    return ""


def _rewrite(value: str, found: re.Match[str]) -> str:
    """What the shell makes of a value; the value itself where that is not known."""
    operator, argument = found[2], found[3].replace("\\", "").replace('"', "")
    value = value[:_LONGEST]
    if operator in ("%", "%%", "#", "##"):
        return _cut(value, operator, argument)
    if operator in ("/", "//"):
        searched, _, put = argument.partition("/")
        count = -1 if operator == "//" else 1
        if searched[:1] in ("#", "%") and len(searched) > 1:
            searched = searched[1:]
        return value.replace(searched, put, count) if searched else value
    if operator == ":":
        return _slice(value, argument)
    first = len(operator) == 1
    changed = value.upper() if operator[0] == "^" else value.lower()
    return changed[:1] + value[1:] if first else changed


def _cut(value: str, operator: str, pattern: str) -> str:
    ends = operator[0] == "%"
    lengths = range(len(value) + 1)
    for length in reversed(lengths) if len(operator) > 1 else lengths:
        part = value[len(value) - length :] if ends else value[:length]
        if length and fnmatchcase(part, pattern):
            return value[: len(value) - length] if ends else value[length:]
    return value


def _slice(value: str, argument: str) -> str:
    found = _SLICE.match(argument)
    if found is None:
        return value
    start, length = int(found[1]), found[2]
    rest = value[start:] if start >= 0 else value[len(value) + start :]
    return rest if length is None else rest[: int(length)]


# --- names of everything ------------------------------------------------------------------------


def _object_to_removal(normal: NormalLine, root: str) -> str:
    """`ls -A | xargs rm -rf`, `rm -rf $(ls)`: the whole folder, by a listing."""
    removes = any(
        one.program in _REMOVERS and any(map(_BARE.match, _decided_words(one)))
        for one in normal.commands
    )
    if removes and any(_is_everything(read, root) for read in listed_names(normal)):
        return "it changes or removes whatever is in the working folder"
    return ""


def _is_everything(read: FolderRead, root: str) -> bool:
    whole = read.folder.rstrip("/") in (".", "", root.rstrip("/"))
    named = replace_brackets(read.pattern).strip("*?./")
    narrowed = named or (read.found_by and not may_find(read.found_by, ".", ANY_NAME))
    return whole and not read.filters and not narrowed
