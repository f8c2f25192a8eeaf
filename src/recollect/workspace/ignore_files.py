"""The patterns of an ignore file, and which paths they match, as in git.

Matching is linear in pattern and name for any pattern: each name of a path has its own expression,
in which no star is tried twice. (pathspec's expressions backtrack: five stars and a name of 100
letters take 0.3 s, measured, and twice the letters sixteen times as long.) git's `[[:alpha:]]` is
not supported. Which ignore files hold for a path is decided in `hidden_paths`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

import msgspec

MAX_RULES = 1_000  # of one ignore file
MAX_PATTERN = 500  # characters
# A star, an escaped letter, a bracket (its first letter may be `]`), or any other letter.
_TOKEN = re.compile(r"(\*)|\\(.)|\[([!^]?+)(\]?+(?:\\.|[^\\\]])*+)\]|(.)", re.DOTALL)
_MEMBER = re.compile(r"\\?+(.)(?:-\\?+(.))?", re.DOTALL)  # of a bracket: a letter or a range


class IgnoreRule(msgspec.Struct, frozen=True):
    names: tuple[re.Pattern[str] | None, ...]  # one for each name of a path; none means `**`
    ignores: bool
    only_folders: bool


def parse_ignore_file(text: str) -> tuple[IgnoreRule, ...]:
    """The rules of an ignore file, in order; consecutive plain names become one expression."""
    lines = text.removeprefix("\ufeff").split("\n", 4 * MAX_RULES)[: 4 * MAX_RULES]
    found = [rule for line in lines if (rule := _rule(line)) is not None][:MAX_RULES]
    rules: list[IgnoreRule] = []
    for (anywhere, ignores, only_folders), several in groupby(found, _kind):
        alike = list(several)
        if anywhere and len(alike) > 1:
            joined = re.compile("|".join(f"(?:{_anywhere(r)})" for r in alike), re.DOTALL)
            alike = [IgnoreRule((None, joined), ignores, only_folders)]
        rules += alike
    return tuple(rules)


def _kind(rule: IgnoreRule) -> tuple[bool, bool, bool]:
    return bool(_anywhere(rule)), rule.ignores, rule.only_folders


def _anywhere(rule: IgnoreRule) -> str:
    """The expression of a rule that matches a name anywhere; empty for any other rule."""
    match rule.names:
        case (None, re.Pattern() as name):
            return str(name.pattern)
        case _:
            return ""


def _rule(line: str) -> IgnoreRule | None:
    line = line.removesuffix("\r")
    bare = line.rstrip(" ")
    if len(bare) != len(line) and (len(bare) - len(bare.rstrip("\\"))) % 2:
        bare += " "  # a blank escaped by a backslash
    if not bare or bare.startswith("#") or len(bare) > MAX_PATTERN:
        return None
    ignores = not bare.startswith("!")
    pattern = bare if ignores else bare[1:]
    only_folders = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    anchored = "/" in pattern
    parts = pattern.removeprefix("/").split("/")
    if not pattern or (len(parts) > 1 and "" in parts):
        return None
    names: list[re.Pattern[str] | None] = [] if anchored else [None]
    for part in parts:
        is_any = anchored and len(part) > 1 and not part.strip("*")
        if (name := compile_name(part)) is None:
            return None
        names.append(None if is_any else name)
    return IgnoreRule(tuple(names), ignores, only_folders)


def compile_name(glob: str) -> re.Pattern[str] | None:
    """The expression for one name; none if it can match no name, as with an unclosed bracket."""
    chunks = [""]  # expressions between the stars
    for star, escaped, negated, members, letter in _TOKEN.findall(glob):
        if star:
            chunks.append("")
        elif members:
            chunks[-1] += _class(members, "^" if negated else "")
        elif letter and letter in "[\\":
            return None
        else:
            chunks[-1] += "." if letter == "?" else re.escape(escaped or letter)
    first, *rest = chunks
    if not rest:
        return re.compile(first, re.DOTALL)
    # the first match of a chunk is as good as any later one, so none is tried twice
    middle = "".join(f"(?>.*?{chunk})" for chunk in rest[:-1] if chunk)
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)


def _class(members: str, negation: str) -> str:
    ranges = [(low, high or low) for low, high in _MEMBER.findall(members)]
    inside = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high)
    return f"[{negation}{inside}]" if inside else "(?!)"


def match_names(pattern: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    """Whether the pattern matches the whole path; a final `**` needs at least one name."""
    match pattern:
        case (None, re.Pattern() as name):  # anywhere: by far the most common
            return name.fullmatch(names[-1]) is not None
    last = len(pattern) - 1
    reached = {0}  # how many names the pattern so far may have matched
    for number, part in enumerate(pattern):
        if part is None:
            least = min(reached) + (number == last)
            reached = set(range(least, len(names) + 1))
        else:
            reached = {n + 1 for n in reached if n < len(names) and part.fullmatch(names[n])}
        if not reached:
            return False
    return len(names) in reached
