"""The patterns of an ignore file, and which paths they match, as in git.

Matching is linear in pattern and name for any pattern: each name of a path has its own expression,
in which no star is tried twice. (pathspec's expressions backtrack: five stars and a name of 100
letters take 0.3 s, measured, and twice the letters sixteen times as long.) Rules are found by the
letters that a path must have, so that a path is not compared with every rule of a long file. git's
`[[:alpha:]]` is not supported. Which ignore files hold for a path is decided in `hidden_paths`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

MAX_RULES = 20_000  # of one ignore file
MAX_PATTERN = 4_096  # characters: no path is longer
# A star, an escaped letter, a bracket (its first letter may be `]`), or any other letter.
_TOKEN = re.compile(r"(\*)|\\(.)|\[([!^]?+)(\]?+[^\\\]]*+(?:\\.[^\\\]]*+)*+)\]|(.)", re.DOTALL)
_MEMBER = re.compile(r"\\?+(.)(?:-\\?+(.))?", re.DOTALL)  # of a bracket: a letter or a range
_WILDCARD = re.compile(r"[*?\[\\]")
_TAIL = re.compile(r"[*?\]]")
_NOT_TEXT = re.compile("[\0\udc80-\udcff]")  # bytes that are not UTF-8, as Python decodes them


class NameGlob(msgspec.Struct, frozen=True):
    """A pattern for one name of a path."""

    head: str  # the letters before the first wildcard; the whole name if there is none
    tail: str = ""  # the letters after the last wildcard
    middle: str = ""  # letters between two of them, if head and tail are empty
    plain: bool = False
    expression: re.Pattern[str] | None = None  # none: a plain name, or one star between the two

    def fullmatch(self, name: str) -> bool:
        if self.plain:
            return name == self.head
        if self.expression is not None:
            return self.expression.fullmatch(name) is not None
        long_enough = len(name) >= len(self.head) + len(self.tail)
        return long_enough and name.startswith(self.head) and name.endswith(self.tail)


NamePatterns: TypeAlias = Sequence["NameGlob | re.Pattern[str] | None"]  # none means `**`


class IgnoreRule(msgspec.Struct, frozen=True):
    names: tuple[NameGlob | None, ...]  # one for each name of a path; none means `**`
    ignores: bool
    only_folders: bool


class _RuleKey(NamedTuple):
    """Letters that a path must have for a rule to match it."""

    kind: str  # what `text` is of the last name: `whole`, `tail`, `head`, `middle`; or `any`
    text: str
    first: str | None = None  # the first name of the path


class IgnoreRuleSet:
    """The rules of one file, in order; the last that matches a path decides."""

    def __init__(self, rules: Iterable[IgnoreRule] = (), problem: str = "") -> None:
        self._rules = tuple(rules)
        self.problem = problem  # why these are not all rules; the end of a sentence
        self._by_path: dict[tuple[str, ...], list[int]] = {}
        self._by_key: dict[_RuleKey, list[int]] = {}
        for number, rule in enumerate(self._rules):
            plain = [name.head for name in rule.names if name is not None and name.plain]
            if len(plain) == len(rule.names):
                self._by_path.setdefault(tuple(plain), []).append(number)
            else:
                self._by_key.setdefault(_key_of(rule), []).append(number)
        # how many letters the keys of each kind have: nothing else is looked up
        looked_up = (key for key in self._by_key if key.kind not in ("whole", "any"))
        self._sizes = tuple(sorted({(key.kind, len(key.text)) for key in looked_up}))

    def __len__(self) -> int:
        return len(self._rules)

    def decide(self, names: Sequence[str], *, folder: bool) -> bool | None:
        """Whether the path is ignored; none if no rule matches it."""
        path = tuple(names)
        for number in sorted(self._candidates(path), reverse=True):
            rule = self._rules[number]
            if (folder or not rule.only_folders) and match_names(rule.names, path):
                return rule.ignores
        return None

    def _candidates(self, path: tuple[str, ...]) -> Iterator[int]:
        yield from self._by_path.get(path, ())
        if not self._by_key:
            return
        last = path[-1]
        texts = {("whole", last), ("any", "")}
        for kind, size in self._sizes:
            places = range(len(last) - size + 1) if kind == "middle" else ()
            texts |= {(kind, last[place : place + size]) for place in places}
            if kind != "middle" and size <= len(last):
                texts.add((kind, last[:size] if kind == "head" else last[-size:]))
        for kind, text in texts:
            yield from self._by_key.get(_RuleKey(kind, text), ())
            yield from self._by_key.get(_RuleKey(kind, text, path[0]), ())


def _key_of(rule: IgnoreRule) -> _RuleKey:
    first, last = rule.names[0], rule.names[-1]
    known = first.head if first is not None and first.plain and len(rule.names) > 1 else None
    if last is None:
        return _RuleKey("any", "", known)
    if last.plain:
        return _RuleKey("whole", last.head, known)
    found = (("tail", last.tail), ("head", last.head), ("middle", last.middle), ("any", ""))
    kind, text = next(one for one in found if one[1] or one[0] == "any")
    return _RuleKey(kind, text, known)


def parse_ignore_file(text: str, *, of_git: bool = True) -> IgnoreRuleSet:
    """The rules of an ignore file. git's may name bytes that are not UTF-8; in others they mean
    that the file was saved in another encoding, so that its rules miss what they should hide."""
    rules: list[IgnoreRule] = []
    problem = ""
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if (bare := _pattern_of(line)) is None:
            continue
        if not of_git and _NOT_TEXT.search(bare):
            problem = problem or f"is not UTF-8 text (line {number:,})"
        elif len(bare) > MAX_PATTERN:
            limit = f"more than {MAX_PATTERN:,} characters"
            problem = problem or f"has a pattern of {limit} (line {number:,})"
        elif (rule := _rule(bare)) is not None:
            if len(rules) == MAX_RULES:
                problem = problem or f"has more than {MAX_RULES:,} rules"
                break
            rules.append(rule)
    return IgnoreRuleSet(rules, problem)


def _pattern_of(line: str) -> str | None:
    """What a line says without the blanks at its end; none for a comment."""
    line = line.removesuffix("\r")
    bare = line.rstrip(" ")
    if len(bare) != len(line) and (len(bare) - len(bare.rstrip("\\"))) % 2:
        bare += " "  # a blank escaped by a backslash
    return None if not bare or bare.startswith("#") else bare


def _rule(bare: str) -> IgnoreRule | None:
    ignores = not bare.startswith("!")
    pattern = bare if ignores else bare[1:]
    only_folders = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    anchored = "/" in pattern
    parts = pattern.removeprefix("/").split("/")
    if not pattern or (len(parts) > 1 and "" in parts):
        return None
    names: list[NameGlob | None] = [] if anchored else [None]
    for part in parts:
        is_any = anchored and len(part) > 1 and not part.strip("*")
        if (name := parse_name(part)) is None:
            return None
        names.append(None if is_any else name)
    return IgnoreRule(tuple(names), ignores, only_folders)


def parse_name(glob: str) -> NameGlob | None:
    """The pattern for one name; none if it can match no name, as with an unclosed bracket."""
    if (wildcard := _WILDCARD.search(glob)) is None:
        return NameGlob(glob, plain=True)
    head = glob[: wildcard.start()]
    tail = "" if "\\" in glob else _TAIL.split(glob)[-1]
    if "[" not in tail and not glob[len(head) : len(glob) - len(tail)].strip("*"):
        return NameGlob(head, tail)
    expression = compile_name(glob)
    if expression is None:
        return None
    inside = "" if head or tail or "\\" in glob or "[" in glob else max(_TAIL.split(glob), key=len)
    return NameGlob(head, tail, inside, expression=expression)


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


def match_names(pattern: NamePatterns, names: Sequence[str]) -> bool:
    """Whether the pattern matches the whole path; a final `**` needs at least one name."""
    if len(pattern) == 2 and pattern[0] is None and (name := pattern[1]) is not None:
        return bool(name.fullmatch(names[-1]))  # anywhere: by far the most common
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
