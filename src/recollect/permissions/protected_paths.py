"""Files that are protected from commands and tools, recognized by the words that name them.

Configuration decides what runs later: settings, memory files, hooks, start-up files
(`protected_names` has the list). Secrets may not even be read. Words are compared as text, also
those that only the shell completes (`.e*`, `$x/.ssh`); links are not resolved here. Pure, linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from recollect.permissions.shell_values import (
    ANY_TEXT,
    chosen_words,
    expand_braces,
    expansion_pattern,
)
from recollect.workspace.protected_names import (
    PROTECTED_NAMES,
    find_protected,
    holds_protected,
)
from recollect.workspace.secret_names import SECRET_NAMES, is_secret_name

# Patterns are tried against these too; the others of `.env.*` look alike.
_SECRET_SAMPLES = (*SECRET_NAMES, ".env.local", ".env.production", ".env.development", ".env.test")
_PROCESS = re.compile(r"/proc/(?:self|thread-self|kcore|[0-9$*?\[{])")
_ENVIRONMENT = re.compile(r"/environ(?![\w.-])")  # `src/environment.py` is a file like others
_DEVICE = re.compile(r"/dev/(?!(?:null|zero|full|u?random|std(?:in|out|err)|fd|shm)(?:/|\Z))")
_DEFAULT = re.compile(r"\$\{\w+:?[-=+?]|\}")  # what stands between them is a value
_CLASSES = re.compile(r"\[[:.=]\w*[:.=]\]")
_BRACKETS = re.compile(r"\[[!^]?\]?[^\]]*\]")
_BRACES = re.compile(r"[{},]")
_PATTERN_SIGNS = re.compile(rf"[*?\[$`{ANY_TEXT}]")
_MAX_NAMES, _MAX_PARTS, _MAX_BRACES, _LONGEST = 200, 20, 60, 60
_STAR = re.compile(r"\*+")
_STARS = re.compile(rf"(?:\*?{ANY_TEXT}\*?)+")
_SLASHES = re.compile(r"/(?:\.?/)+")
# also those of git: `:(top).env`
_PATH_SEPARATORS = re.compile(r"[/=:,@()]+")
_VALUE_SEPARATORS = re.compile(r"[=:,@()]+")
_CODE_SEPARATORS = re.compile(r"[^A-Za-z0-9_.-]+")
_JOINED = re.compile(r"""(['"])\s*[+.]?\s*(['"])""")  # `".e" + "nv"` is one text
_CODE_PATHS = re.compile(r"[A-Za-z0-9_./-]+")
_NAME_SEPARATORS = re.compile(r"[^A-Za-z0-9_.]+")
# a default text or one of the words in braces: `${x:-../y}`, `{/etc/x,y}`
_CHOSEN_ELSEWHERE = re.compile(r"[-{,=+?](?:/(?!tmp/)|~|\.\.(?:[/},]|\Z))")
_ELSEWHERE = re.compile(
    r"\$\{?(?:HOME|OLDPWD)\b|\$\{PWD[^}]|(?:\$\(|`)\s*dirname\b[^)`]*(?:PWD|pwd)"
)
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")
_FIRST_NAMES = tuple({name.path.partition("/")[0] for name in PROTECTED_NAMES})


def normal_path(word: str) -> str:
    """A path without `//` and `/./`; other words stay what they are."""
    if "/" not in word or "://" in word:
        return word
    path = _SLASHES.sub("/", word)
    while path.startswith("./") and len(path) > 2:
        path = path[2:]
    return path


def names_secret(word: str) -> bool:
    collapsed = _SLASHES.sub("/", word)
    if _PROCESS.search(collapsed) or _DEVICE.match(collapsed) or _ENVIRONMENT.search(collapsed):
        return True
    lowered = collapsed.lower()
    if any(is_secret_name(part) for part in _PATH_SEPARATORS.split(lowered)):
        return True
    # `-o.env`, `-qF.env`: the value is in the option's own word
    glued = (lowered[2:], lowered[max(lowered.find("."), 0) :])
    return lowered.startswith("-") and any(is_secret_name(x.partition("/")[0]) for x in glued)


def code_names_secret(code: str) -> bool:
    """Whether code on a line spells the name of a secret."""
    if _PROCESS.search(_SLASHES.sub("/", code)):
        return True
    lowered = f"{code} {_JOINED.sub('', code)}".lower()
    parts = (*_CODE_SEPARATORS.split(lowered), *_NAME_SEPARATORS.split(lowered))
    return any(map(is_secret_name, parts))


def code_names_config(code: str, check_time: Callable[[], None]) -> bool:
    """Whether code on a line spells the name of a file that decides what runs later."""
    texts, seen = f"{code} {_JOINED.sub('', code)}", set[str]()
    for found in _CODE_PATHS.finditer(texts):
        before = texts[found.start() - 1] if found.start() else ""
        member = found[0].startswith(".") and before in (")", "]", "}")  # `f(x).config`
        if member or found[0] in seen:
            continue
        seen.add(found[0])
        if names_config(found[0], check_time):
            return True
    return False


def matches_secret(pattern: str) -> bool:
    """Whether a pattern of file names, or a word with expansions, can become a secret's name."""
    chosen = chosen_words(pattern)
    patterns = [word for word in chosen if _PATTERN_SIGNS.search(word)]
    if len(patterns) > _MAX_PARTS or pattern.count("{") > _MAX_BRACES:
        return True  # more than can be looked at
    split = (*_BRACES.split(pattern), *_DEFAULT.split(pattern))
    parts = (pattern, *patterns, *expand_braces(pattern), *split)
    named = any(map(names_secret, (*chosen, *parts))) or code_names_secret(pattern)
    return named or any(_matches_any(part, _SECRET_SAMPLES) for part in parts[:_MAX_PARTS] if part)


def glob_finds_secret(pattern: str) -> bool:
    """The same for a program's own pattern, which also finds names that begin with a dot."""
    plain = pattern.replace("\\", "")
    return matches_secret(plain) or _matches_any(ANY_TEXT + plain, _SECRET_SAMPLES)


def matches_config(pattern: str, check_time: Callable[[], None] = lambda: None) -> bool:
    """The same for files that decide what runs later."""
    chosen = chosen_words(pattern)
    patterns = [word for word in chosen if _PATTERN_SIGNS.search(word)]
    if len(patterns) > _MAX_PARTS or pattern.count("{") > _MAX_BRACES:
        return True  # more than can be looked at
    words = expand_braces(pattern)
    parts = (*words, *_BRACES.split(pattern), *_NAME_SEPARATORS.split(pattern))
    if any(names_config(part, check_time) for part in (*chosen, *parts) if part):
        return True
    if any("{" in word for word in words):  # not all were expanded, or it is `${x}`
        words.insert(0, pattern)
    possible = (*patterns, *words, *parts)[:_MAX_PARTS]
    return any(_matches_any(part, _FIRST_NAMES, kinds=True) for part in possible if part)


def _matches_any(pattern: str, names: Iterable[str], *, kinds: bool = False) -> bool:
    """`kinds`: `*.json` counts as each name that it matches, not as a kind of file."""
    for found in expansion_pattern(pattern).lower().split("/")[:_MAX_NAMES]:
        part = _STARS.sub(ANY_TEXT, _STAR.sub("*", replace_brackets(found)))
        if not part.strip("*" + ANY_TEXT) or not any(sign in part for sign in f"*?{ANY_TEXT}"):
            continue
        if len(part) - part.count("*") - part.count(ANY_TEXT) > _LONGEST:
            continue  # longer than any of the names
        open_start = part[0] in "*?" + ANY_TEXT
        candidates = [name for name in names if name[0] == "." or kinds or not open_start]
        if part[0] in "*?":  # the shell matches no name that begins with a dot
            candidates = [name for name in candidates if name[0] != "."]
        if any(glob_matches(part, name) for name in candidates):
            return True
    return False


def replace_brackets(pattern: str) -> str:
    """Every `[…]` as `?`. Nothing is searched after the last `]`, so the time is linear."""
    plain = _CLASSES.sub("?", pattern)
    end = plain.rfind("]") + 1
    return _BRACKETS.sub("?", plain[:end]) + plain[end:]


def glob_matches(pattern: str, name: str) -> bool:
    """Match with `*` and `?`; the time is pattern times name at most."""
    at, position, star, mark = 0, 0, -1, 0
    while position < len(name):
        if at < len(pattern) and pattern[at] in ("*", ANY_TEXT):
            star, mark = at, position
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[position]):
            at += 1
            position += 1
        elif star >= 0:
            at, mark = star + 1, mark + 1
            position = mark
        else:
            return False
    return pattern[at:].strip("*" + ANY_TEXT) == ""


def names_config(word: str, check_time: Callable[[], None] = lambda: None) -> bool:
    """Whether the word names settings, memory, hooks or a start-up file, or a folder of them."""
    if word.count("/") > _MAX_NAMES:
        return True  # no ordinary path, and too long to look at
    for path in dict.fromkeys((word, *_VALUE_SEPARATORS.split(word), *_glued_values(word))):
        check_time()
        if find_protected(path) is not None or holds_protected(path):
            return True
    return False


def _glued_values(word: str) -> Iterator[str]:
    """What an option's own word can end in, as in `-o.bashrc` and `-oAGENTS.md`."""
    if word.startswith("-"):
        first, slash, rest = word.partition("/")
        for name in _FIRST_NAMES if first.lower().endswith(_FIRST_NAMES) else ():
            # a long option takes its value after `=`
            glued = name.startswith(".") or not word.startswith("--")
            if glued and first.lower().endswith(name):
                yield f"{name}{slash}{rest}"


def leads_elsewhere(word: str) -> bool:
    """Whether the shell makes another folder of the word: `$HOME/x`, `${PWD%/*}`, `{../x,y}`."""
    if "$" in word and ".." in _VARIABLE.sub("", word).split("/"):
        return True  # `${x}../y`: a variable that is not set is nothing
    chosen = "{" in word and _CHOSEN_ELSEWHERE.search(word) is not None
    return chosen or _ELSEWHERE.match(word) is not None


def leaves_folder(word: str, root: str = "") -> bool:
    """Whether the word, as a path, begins or leads outside the working folder."""
    path = word.rpartition("=")[2] if word.startswith("-") else word
    if root and (path == root or path.startswith(root.rstrip("/") + "/")):
        path = path[len(root.rstrip("/")) + 1 :]
    # an option's value can be glued to its letter: `-t/etc`, `-t../x`
    glued = word.startswith("-") and ("/" in word.partition("=")[0])
    return path.startswith(("/", "~")) or ".." in path.split("/") or glued
