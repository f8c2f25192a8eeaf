"""JSON as models write it, repaired only where the repair has one meaning.

Four defects are repaired: a trailing comma, a raw control character in a string, a string in single
quotes, and, if the text is known to end there, closing brackets missing after a complete value. A
string in single quotes ends at the first single quote that is not escaped, and only if the next
character may follow a string: an apostrophe in it makes it unreadable, not shorter.

Everything else is refused with a `JsonDamage` that says where and what: a missing value, a string
or number that breaks off, words without quotes, one key with two values, numbers that cannot be
kept exactly, halves of surrogate pairs. Nothing is guessed, nothing raises, the time is linear.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple, Never

from recollect.codecs.fixes import quote_text
from recollect.json_depth import MAX_DEPTH

MAX_REPAIRED = 1_000_000  # characters of one reply that are read with repairs
MAX_NUMBER = 100  # characters
_BITS = range(-(2**63), 2**64)  # whole numbers that every reader takes
_SHOWN_KEYS = 6  # of the path to a defect
_SPACES = re.compile(r"[ \t\r\n]*+")
_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[{\[]|[}\]]', re.DOTALL)
_DOUBLE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SINGLE = re.compile(r"'[^'\\]*+(?:\\.[^'\\]*+)*+'", re.DOTALL)
_REQUOTED = re.compile(r"\\.|\"", re.DOTALL)
# a number or a word at the very end of the text may be the beginning of a longer one
_SCALAR = re.compile(
    r"(?:(-?(?:0|[1-9][0-9]*+))(\.[0-9]++)?([eE][+-]?[0-9]++)?|(true)|(false)|(null))"
    r"(?=[ \t\r\n,}\]])"
)
_LAST_WORD = re.compile(r"[-+.\w]{1,100}")
_BAD_ESCAPE = re.compile(r"\\(?:[^\"\\/bfnrtu]|u(?![0-9a-fA-F]{4}))", re.DOTALL)
_ESCAPE = re.compile(r"\\.", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonDamage(NamedTuple):
    """Why a text is not read, in words for the model that wrote it."""

    problem: str
    in_string: bool = False  # where a string ends is uncertain, and so is where the object ends


class WrittenFloat(float):
    """A number that knows how it was written: 1.10 as text is not "1.1"."""

    written = ""


def parse_strict(text: str) -> Any:
    """The value of valid JSON (raw control characters in strings are accepted), or None."""
    try:
        return _load(text)
    except (ValueError, RecursionError):
        return None


class JsonRepairer:
    """Reads the calls of one reply."""

    def __init__(self) -> None:
        self._left = MAX_REPAIRED

    def read(self, text: str, *, complete: bool = True) -> Any:
        """The value, or a `JsonDamage`. `complete`: missing closing brackets may be added."""
        if is_nested_too_deep(text):
            return JsonDamage(f"it is nested deeper than {MAX_DEPTH} levels")
        try:
            return _load(text)
        except _Refused as refused:
            return refused.damage
        except (ValueError, RecursionError):
            pass
        if len(text) > self._left:
            return JsonDamage("it is not valid JSON, and too long to be repaired")
        self._left -= len(text)
        try:
            return _DamagedJson(text, complete=complete).read()
        except _Refused as refused:
            return refused.damage


def is_nested_too_deep(text: str) -> bool:
    """Whether brackets outside strings are nested deeper than anything we store."""
    depth = 0
    for match in _BRACKET.finditer(text):
        mark = match[0]
        if mark in ("{", "["):
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif mark in ("}", "]"):
            depth -= 1
    return False


class _Refused(ValueError):
    def __init__(self, problem: str, *, in_string: bool = False) -> None:
        super().__init__(problem)
        self.damage = JsonDamage(problem, in_string)


class _DamagedJson:
    """Reads one value. The path of keys to the place that is read goes into the messages."""

    def __init__(self, text: str, *, complete: bool) -> None:
        self._text, self._complete = text, complete
        self._at = 0
        self._path: list[str] = []
        self._after_string = False  # the last value was a string

    def read(self) -> Any:
        value = self._value()
        if self._next():
            self._refuse(f"has {self._rest()} after its end")
        _refuse_surrogates(self._text, value)
        return value

    def _next(self) -> str:
        """The next character that is not white space; empty at the end."""
        found = _SPACES.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        if len(self._path) > MAX_DEPTH:
            self._refuse("is nested too deeply")
        first = self._next()
        self._after_string = first in ('"', "'") and bool(first)
        if self._after_string:
            return self._string(",}]")
        if first == "{":
            return self._object()
        if first == "[":
            return self._array()
        found = _SCALAR.match(self._text, self._at)
        if found:
            self._at = found.end()
            return _scalar(found)
        if not first or _LAST_WORD.fullmatch(self._text, self._at):
            self._refuse("is cut off")
        if first in ",:}]":
            self._refuse(f"has no value before {self._rest()}")
        return self._refuse(f"has a value that is not JSON: {self._rest()}")

    def _object(self) -> dict[str, Any]:
        self._at += 1
        pairs: list[tuple[str, Any]] = []
        more = True
        while more:
            first = self._next()
            if first == "}":  # an empty object, or a trailing comma
                self._at += 1
                break
            if not first:
                self._refuse("is cut off")
            if first not in "\"'":
                self._refuse(
                    f"has {self._rest()} where a key in double quotes is expected",
                    in_string=bool(pairs),
                )
            key = self._string(":")
            self._path.append(key)
            if self._next() != ":":
                cut = not self._next()
                self._refuse("is cut off" if cut else "has no colon after its key", in_string=True)
            self._at += 1
            pairs.append((key, self._value()))
            more = self._continues("}")
            self._path.pop()
        return _unique(pairs)

    def _array(self) -> list[Any]:
        self._at += 1
        items: list[Any] = []
        more = True
        while more:
            if self._next() == "]":  # an empty list, or a trailing comma
                self._at += 1
                break
            self._path.append(str(len(items)))
            items.append(self._value())
            more = self._continues("]")
            self._path.pop()
        self._after_string = False
        return items

    def _continues(self, closer: str) -> bool:
        """Whether a comma follows, and not the end of the object or list."""
        first = self._next()
        if first == "," or first == closer:
            self._at += 1
            self._after_string = False
            return first == ","
        if not first:
            if not self._complete:
                self._refuse("is cut off")
            return False
        hint = '; write a quotation mark inside a string as \\"' if self._after_string else ""
        return self._refuse(
            f"is followed by {self._rest()} where a comma or {closer} is expected{hint}",
            in_string=self._after_string,
        )

    def _string(self, followers: str) -> str:
        single = self._text[self._at] == "'"
        found = (_SINGLE if single else _DOUBLE).match(self._text, self._at)
        if found is None:
            self._refuse("has a string without a closing quotation mark", in_string=True)
        written = found[0]
        self._at = found.end()
        if single:
            if self._next() and self._next() not in followers:
                self._refuse(
                    "has single quotes, and it is not certain where they end; use double quotes",
                    in_string=True,
                )
            written = '"' + _REQUOTED.sub(_requote, written[1:-1]) + '"'
        try:
            text = json.loads(written, strict=False)
        except ValueError:
            self._refuse(f"has the escape {_first_bad_escape(written)}, which JSON does not know")
        assert isinstance(text, str)
        return text

    def _rest(self) -> str:
        return quote_text(self._text[self._at : self._at + 20])

    def _refuse(self, problem: str, *, in_string: bool = False) -> Never:
        keys = [key[:40] for key in self._path[-_SHOWN_KEYS:]]
        raise _Refused(f"{'.'.join(keys) or 'the object'} {problem}", in_string=in_string)


def _load(text: str) -> Any:
    value = json.loads(
        text,
        strict=False,
        object_pairs_hook=_unique,
        parse_constant=_refuse_constant,
        parse_float=_exact,
        parse_int=_whole,
    )
    _refuse_surrogates(text, value)
    return value


def _scalar(found: re.Match[str]) -> Any:
    whole, fraction, exponent, true, false, _ = found.groups()
    if whole is not None:
        return _exact(found[0]) if fraction or exponent else _whole(whole)
    return True if true else False if false else None


def _requote(found: re.Match[str]) -> str:
    mark = found[0]
    return "'" if mark == "\\'" else '\\"' if mark == '"' else mark


def _first_bad_escape(written: str) -> str:
    for escape in _ESCAPE.finditer(written):
        found = _BAD_ESCAPE.match(written, escape.start())
        if found:
            return found[0]
    return "\\"


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value and repr(value[key]) != repr(item):
            raise _Refused(f"the key {quote_text(key)} has two values; write one of them")
        value[key] = item
    return value


def _refuse_constant(constant: str) -> Never:
    raise _Refused(f"{constant} is not a JSON number")


def _exact(number: str) -> float:
    if len(number) <= MAX_NUMBER:
        value = WrittenFloat(number)
        if math.isfinite(value) and Decimal(repr(value)) == Decimal(number):
            value.written = number
            return value
    raise _Refused(f"the number {quote_text(number)} cannot be kept exactly; write it as a string")


def _whole(number: str) -> int:
    if len(number) > MAX_NUMBER or (value := int(number)) not in _BITS:
        raise _Refused(f"the number {quote_text(number)} is too large; write it as a string")
    return value


def _refuse_surrogates(text: str, value: Any) -> None:
    """No file and no request can hold half of a surrogate pair."""
    if not (_SURROGATE.search(text) or _ESCAPED_SURROGATE.search(text)):
        return
    if _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise _Refused("a \\u escape is half of a surrogate pair; write the character itself")
