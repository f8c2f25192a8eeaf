"""Characters that must not stand in a command line: control, invisible and look-alike ones."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from recollect.permissions.parsed_line import UnsupportedSyntax

# Scripts with letters that look like Latin ones; they deceive in one word with Latin letters.
_LOOK_ALIKE = frozenset({"ARMENIAN", "CHEROKEE", "COPTIC", "CYRILLIC", "GREEK", "LISU"})
_BLANK_LETTERS = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Me", "Mn", "Zl", "Zp", "Zs"})


_EMOJI_STYLE = re.compile(
    "(?<=[\u2190-\u2bff\U0001f000-\U0001faff])\ufe0f"
)  # as in a coloured sign


def check_characters(text: str) -> None:
    for character in set(_EMOJI_STYLE.sub("", text)) - {"\n", "\t"}:
        if " " <= character < "\x7f":
            continue
        if unicodedata.category(character) in _HIDDEN or character in _BLANK_LETTERS:
            code = f"U+{ord(character):04X}"
            raise UnsupportedSyntax(f"it has a control or invisible character ({code})")


def check_unquoted(text: str) -> None:
    for character in set(text):
        if unicodedata.normalize("NFKC", character) != character:
            raise UnsupportedSyntax(f"it has a look-alike character (U+{ord(character):04X})")


def check_scripts(words: Iterable[str]) -> None:
    for word in words:
        if word.isascii():
            continue
        for text in word.split():
            names = {unicodedata.name(letter, "") for letter in text if letter.isalpha()}
            scripts = {name.partition(" ")[0] for name in names}
            if scripts & _LOOK_ALIKE and len(scripts) > 1:
                raise UnsupportedSyntax("a word mixes scripts whose letters look alike")
        if word.startswith("-") and not word.partition("=")[0].isascii():
            raise UnsupportedSyntax("an option has letters that are not ASCII")
