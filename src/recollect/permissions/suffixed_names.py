"""Names that a program makes by itself, of a word and a suffix: `cp -b -S .md x AGENTS`.

The name of a backup, of a packed file or of a piece stands nowhere in the line; its two parts do.
Pure; the number of pairs is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise, product

from recollect.permissions.normal_command import NormalCommand
from recollect.permissions.protected_paths import matches_config
from recollect.permissions.shell_values import ANY_TEXT

# the letter of the option with the suffix
_LETTERS = {
    **dict.fromkeys(("cp", "mv", "ln", "install", "gzip", "gunzip", "xz", "lzma", "unxz"), "S"),
    **dict.fromkeys(("sed", "perl", "ruby"), "i"),
    **dict.fromkeys(("csplit", "split"), "b"),
    "patch": "z",
}
_LONG = re.compile(r"--(?:su|in-|add)[a-z-]*\Z")  # also shortened
_IN_PLACE = "i"  # its value is in the same word, and `*` in it stands for the name
_NUMBER = re.compile(r"%[-+ #0-9.']*[a-z]")  # of csplit
_MOST = 400


def find_protected_suffix(command: NormalCommand) -> str:
    """A name made of a word and a suffix that only the user may write; empty if there is none."""
    letter = _LETTERS.get(command.program)
    suffixes = tuple(filter(None, _suffixes(command.words, letter))) if letter else ()
    if not suffixes:
        return ""
    names = [word.rstrip("/").rpartition("/")[2] for word in command.words[1:]]
    # a folder or a pattern can hold any name
    open_ended = any(at in command.uncertain for at in range(1, len(command.words)))
    pairs = list(islice(product([ANY_TEXT] * open_ended + names, suffixes), _MOST + 1))
    if len(pairs) > _MOST:
        return suffixes[0]
    for name, suffix in pairs:
        plain = _NUMBER.sub(ANY_TEXT, suffix) if letter == "b" else suffix
        made = plain.replace("*", name) if letter == _IN_PLACE and "*" in plain else name + plain
        if command.program == "split":
            made = f"{name}{ANY_TEXT}{plain}"
        if made not in (name, ANY_TEXT) and matches_config(made):
            return made.replace(ANY_TEXT, "*")
    return ""


def _suffixes(words: tuple[str, ...], letter: str) -> Iterator[str]:
    for word, following in pairwise((*words[1:], "")):
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if _LONG.match(name):
                yield value if equals or name.startswith("--in-") else following
        elif word.startswith("-") and letter in word:
            value = word.partition(letter)[2]
            yield value if value or letter == _IN_PLACE else following
