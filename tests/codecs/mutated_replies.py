"""Replies damaged in every way, and whether a value was completely written in one.

`mutations(reply, rng, others)` never ends: each is the reply with one to four defects, in the type
of the reply (text, or the bytes of a wire). `occurs(value, reply)` looks for every key, string,
number and boolean of a value in the reply, without the parser under test: a string must stand there
from its opening to its closing quotation mark, between marks that JSON allows around it (or between
`<parameter=…>` tags), a number or boolean must have something after it. Allowed on the way from the
reply to the value: what `argument_coercion` does to names, types and relative paths; arguments that
are JSON in a string; arguments that a stream delivers in pieces.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from recollect.codecs.argument_names import ARGUMENT_ALIASES

R = TypeVar("R", str, bytes)
INSERTED = (
    *('"', "'", "{", "}", "[", "]", ",", ":", "\\", "`", "<", ">", "\n", "\n\n", " ", "    ", "\t"),
    *(',"', '",', '"}', "}}", "}}}", "{{", ",,", '""', '\\"', "\\u", "\\ud800", "```", "\n```\n"),
    *("```json\n", "~~~\n", "<think>", "</think>", "</tool_call>", "<tool_call>", "</function>"),
    *("</parameter>", "<parameter=content>", "TOOL: glob\n", "ARGS: ", "null", "true", "tru", "-"),
    *("1", "0", "e", ".", "NaN", "Infinity", "1e999", "name", '"name": ', '"arguments": {', "\x00"),
    *("é", "\u2028", "“", "”", "data: ", "[DONE]", "\r\n", "// ", "/*", "#", "..."),
)


def mutations(reply: R, rng: random.Random, others: Sequence[R] = ()) -> Iterator[R]:
    """Damaged replies, without end; `others` are replies to splice in."""
    spliced = [_text(other) for other in others]
    for text in _mutations(_text(reply), rng, spliced):
        yield text if isinstance(reply, str) else text.encode("utf-8", "surrogateescape")


def _text(reply: str | bytes) -> str:
    return reply if isinstance(reply, str) else reply.decode("utf-8", "surrogateescape")


def _mutations(reply: str, rng: random.Random, others: Sequence[str]) -> Iterator[str]:
    while True:
        text = reply
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
            text = _damage(text, rng, others)
        yield text


def _damage(text: str, rng: random.Random, others: Sequence[str]) -> str:
    at = rng.randrange(len(text) + 1)
    end = min(len(text), at + rng.choice((1, 1, 2, 3, 8, 30)))
    piece = text[at:end]
    match rng.randrange(12):
        case 0:
            return text[:at]
        case 1:
            return text[at:] if rng.random() < 0.2 else text[:at] + text[end:]
        case 2:
            return text[:end] + piece + text[end:]
        case 3:
            to = rng.randrange(len(text) + 1)
            rest = text[:at] + text[end:]
            return rest[:to] + piece + rest[to:]
        case 4 | 5 | 6:
            return text[:at] + rng.choice(INSERTED) + text[at:]
        case 7:
            other = rng.choice(others) if others else text
            return text[:at] + other[rng.randrange(len(other) + 1) :]
        case 8:
            quotes = rng.choice(("'", "“", "`", "", '\\"'))
            return text[:at] + text[at:].replace('"', quotes, rng.randint(1, 8))
        case 9:
            return text[:at] + "\n" + text[at:].replace(" ", "\n", rng.randint(0, 3))
        case 10:
            fence = rng.choice(("```json\n", "```\n", "~~~\n", "````\n"))
            return text[:at] + fence + text[at:] + rng.choice(("\n" + fence.split("j")[0], ""))
        case _:
            return text[:at] + rng.choice(INSERTED) + text[end:]


class _Written(NamedTuple):
    strings: frozenset[str]
    keys: frozenset[str]
    numbers: frozenset[str]
    words: frozenset[str]


_DOUBLE = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SINGLE = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)
_BEFORE = re.compile(r"[{\[,:]\s*\Z")
_AFTER = re.compile(r"\s*(?:[,:}\]]|\Z|`{3}|~{3}|<|\{|TOOL:)")
_DELIMITER = r"(?=[\s,}\]\"'<\\])"
_NUMBER = re.compile(r"(?<![\w.+-])-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?" + _DELIMITER)
_WORD = re.compile(r"(?<!\w)(?:true|false|null)" + _DELIMITER)
_PARAMETER = re.compile(r"<parameter=([^>\n]*)>")
_FRAGMENT = re.compile(
    r'"(arguments|partial_json|content|text|thinking)"\s*:\s*("(?:[^"\\]|\\.)*")', re.DOTALL
)


def occurs(value: Any, reply: str | bytes, *, root: str = "") -> bool:
    """Whether every leaf of the value, and every key, is completely written in the reply.

    `root`: the folder that relative paths were made absolute with."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return _occurs(value, _written(text), root)


def _occurs(value: Any, written: _Written, root: str) -> bool:
    if isinstance(value, dict):
        return all(
            _key_occurs(key, written) and _occurs(item, written, root)
            for key, item in value.items()
        )
    if isinstance(value, list):
        return all(_occurs(item, written, root) for item in value)
    if value is None:
        return "null" in written.words
    if isinstance(value, bool):
        word = str(value).lower()
        return word in written.words or word in {text.strip().lower() for text in written.strings}
    if isinstance(value, int | float):
        texts = (*written.numbers, *(t.strip() for t in written.strings if len(t) < 100))
        return any(_is_number(text, Decimal(repr(value))) for text in texts)
    assert isinstance(value, str)
    relative = value.removeprefix(root).lstrip("/\\") if root else value
    forms = {value, relative, f"./{relative}", relative or "."}
    return not forms.isdisjoint(written.strings) or value in written.numbers


def _key_occurs(key: str, written: _Written) -> bool:
    aliases = [names[key] for names in ARGUMENT_ALIASES.values() if key in names]
    spellings = {key, *(name for accepted in aliases for name in accepted)}
    return not spellings.isdisjoint(written.keys)


def _is_number(text: str, number: Decimal) -> bool:
    try:
        return Decimal(text) == number
    except InvalidOperation:
        return False


@lru_cache(maxsize=64)
def _written(reply: str) -> _Written:
    sources, strings, keys = [reply, *_joined_fragments(reply)], set[str](), set[str]()
    numbers, words = set[str](), set[str]()
    for source in sources:  # grows: a string may hold the JSON of arguments
        for text in _strings(source):
            if text not in strings and text.lstrip()[:1] in ("{", "["):
                sources.append(text)
            strings.add(text)
        for opening in _PARAMETER.finditer(source):
            keys.add(opening[1].strip())
            for closing in re.finditer("</parameter>", source[opening.end() :]):
                value = source[opening.end() : opening.end() + closing.start()]
                strings |= {value, value.removeprefix("\n").removesuffix("\n")}
                if value.lstrip()[:1] in ("{", "["):
                    sources.append(value.strip())
        numbers.update(_NUMBER.findall(source))
        words.update(_WORD.findall(source))
    return _Written(*map(frozenset, (strings, keys | strings, numbers, words)))


def _strings(source: str) -> Iterator[str]:
    """Every string in quotation marks, whatever stands around the marks further away."""
    for at, mark in enumerate(source):
        if mark not in "\"'":
            continue
        found = (_DOUBLE if mark == '"' else _SINGLE).match(source, at)
        if not found or not _BEFORE.search(source, 0, at) or not _AFTER.match(source, found.end()):
            continue
        inner = found[0][1:-1]
        if mark == "'":
            inner = re.sub(r"\\.|\"", _requote, inner, flags=re.DOTALL)
        try:
            yield json.loads(f'"{inner}"', strict=False)
        except ValueError:
            continue


def _requote(found: re.Match[str]) -> str:
    return {"\\'": "'", '"': '\\"'}.get(found[0], found[0])


def _joined_fragments(reply: str) -> list[str]:
    """What a stream delivers in pieces, one text for each field that may hold them."""
    joined: dict[str, str] = {}
    for field, fragment in _FRAGMENT.findall(reply):
        try:
            joined[field] = joined.get(field, "") + json.loads(fragment, strict=False)
        except ValueError:
            continue
    return list(joined.values())
