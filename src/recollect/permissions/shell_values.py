"""What a word can become that the shell decides: whether it may turn out to be an option.

A word with an expansion keeps its source text. Pure and linear.
"""

from __future__ import annotations

import re

# Numbers and absolute paths, whatever happened before.
_PLAIN_VALUE = re.compile(r"\$(?:[?#$!]|HOME|PWD|OLDPWD|UID|RANDOM|SECONDS|LINENO)(?![A-Za-z0-9_])")
_PLAIN_BRACED = re.compile(r"\$\{(?:HOME|PWD|UID|#[A-Za-z_]*|PIPESTATUS\[[0-9]\])\}")
ANY_TEXT = "\0"  # unlike `*` it also stands for a dot at the beginning of a name
_BRACES = re.compile(r"(?<!\$)\{([^{}]*,[^{}]*)\}")
_INNERMOST = re.compile(r"\$\{([^{}]*)\}")
_CHOICE = re.compile(r"(?:\w+|[@*#?!$-]):?([-=+])(.*)", re.DOTALL)
_HAS_CHOICE = re.compile(r"\$\{(?:\w+|[@*#?!$-]):?[-=+]")
_CHOICES = ("-=+", "-=", "+")  # `${x:-a}` and `${x:+a}` hardly ever give their texts at once
_QUOTES = re.compile(r"\\\n|['\"\\]")
_MOST_NESTED = 8
_DECIDED = frozenset("$`*?[{")


def is_plain_value(word: str) -> bool:
    """Whether a word begins with a value that is always a number or an absolute path."""
    return bool(_PLAIN_VALUE.match(word) or _PLAIN_BRACED.match(word) or word.startswith("$(("))


def may_be_option(word: str) -> bool:
    """Whether a word that the shell decides could begin with `-`."""
    if word[:1] == "-":
        return True
    return word[:1] in _DECIDED and not is_plain_value(word)


def expand_braces(word: str, most: int = 64) -> list[str]:
    """The words that `a{b,c}d` becomes, innermost braces first; at most so many."""
    words = [word]
    for _ in range(8):
        found = [(one, _BRACES.search(one)) for one in words]
        if len(words) >= most or not any(match for _, match in found):
            break
        words = [
            one[: match.start()] + part + one[match.end() :] if match else one
            for one, match in found
            for part in (match[1].split(",") if match else ("",))
        ]
    return words[:most]


def without_quotes(text: str) -> str:
    """What the shell, xargs and `read` leave of a text that is quoted as if for them."""
    return _QUOTES.sub("", text)


def chosen_words(word: str) -> tuple[str, ...]:
    """The words that default texts make of a word: `${x:-C}*.md` becomes `C*.md`.

    Every other expansion in braces becomes `ANY_TEXT`, and quotes are taken off.
    """
    if not _HAS_CHOICE.search(word):
        return ()
    words: dict[str, None] = {}
    for kinds in _CHOICES:
        made = word

        def choose(found: re.Match[str], kinds: str = kinds) -> str:
            choice = _CHOICE.fullmatch(found[1])
            if choice is None:
                return ANY_TEXT
            return choice[2] if choice[1] in kinds else ""

        for _ in range(_MOST_NESTED):
            made, count = _INNERMOST.subn(choose, made)
            if not count:
                break
        words.update(dict.fromkeys(without_quotes(made).split()))
    words.pop(word, None)
    return tuple(words)


def expansion_pattern(word: str) -> str:
    """The word as a pattern: every expansion becomes `ANY_TEXT`."""
    pattern: list[str] = []
    at = 0
    while at < len(word):
        character = word[at]
        if character == "$" and at + 1 < len(word):
            at = _skip_expansion(word, at + 1)
            pattern.append(ANY_TEXT)
        elif character == "`":
            close = word.find("`", at + 1)
            at = len(word) if close < 0 else close + 1
            pattern.append(ANY_TEXT)
        elif character == "{":
            close = word.find("}", at + 1)
            at = len(word) if close < 0 else close + 1
            pattern.append(ANY_TEXT)
        else:
            pattern.append(character)
            at += 1
    return "".join(pattern)


def _skip_expansion(word: str, at: int) -> int:
    """The position after what follows a `$`."""
    closing = {"(": ")", "{": "}"}.get(word[at])
    if closing is None:
        if not (word[at].isalpha() or word[at] == "_"):
            return at + 1
        while at < len(word) and (word[at].isalnum() or word[at] == "_"):
            at += 1
        return at
    opening, depth = word[at], 0
    while at < len(word):
        depth += (word[at] == opening) - (word[at] == closing)
        at += 1
        if depth == 0:
            break
    return at
