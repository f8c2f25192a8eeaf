"""JSON as models write it, parsed as far as that is safe.

Three defects are repaired here, in linear time up to `MAX_REPAIRED` characters: a trailing comma, a
raw newline in a string, closing brackets missing at the end. Everything else is left to
`json_repair`, whose time grows with the square of quotes and escapes (4 kB of `["` take seconds):
it gets little, and only so much of one reply. Unreadable text is None; nothing here raises.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Never

from recollect.entries import json_text
from recollect.json_depth import MAX_DEPTH

MAX_REPAIRED = 200_000
MAX_BROKEN = 50  # calls of one reply
MAX_LIBRARY = 50_000  # characters of one reply that `json_repair` gets to see
MAX_QUOTES = 400  # and quotation marks and brackets among them

_TOKEN = re.compile(
    r'"(?:[^"\\]++|\\.)*+(?P<end>"?)|[{\[]|[}\]]|,(?=\s*+[}\]])|,(?=\s*+\Z)', re.DOTALL
)
_CLOSERS = {"{": "}", "[": "]"}
# Private characters stand for escapes while the library works: it is slow with backslashes.
_ESCAPES = {r"\"": "\ue000", r"\\": "\ue001", r"\'": "\ue002"}
_ESCAPE = re.compile(r"\\[\"'\\]")
_PRIVATE = re.compile("[\ue000-\ue002]")
_RESTORED = {"\ue000": r"\"", "\ue001": r"\\", "\ue002": "'"}


def parse_strict(text: str) -> Any:
    """The value of valid JSON (raw control characters in strings are accepted), or None."""
    try:
        return json.loads(text, strict=False, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return None


class JsonRepairer:
    """Repairs the calls of one reply."""

    def __init__(self) -> None:
        self._characters, self._marks, self._attempts = MAX_LIBRARY, MAX_QUOTES, MAX_BROKEN

    def read(self, text: str) -> Any:
        if is_nested_too_deep(text):
            return None
        value = parse_strict(text)
        if value is not None or len(text) > MAX_REPAIRED or not self._attempts:
            return value
        self._attempts -= 1
        completed = _complete(text)
        if completed is not None:
            value = parse_strict(completed)
        return value if value is not None else self._repair_by_library(text)

    def _repair_by_library(self, text: str) -> Any:
        if len(text) > self._characters or _PRIVATE.search(text):
            return None
        plain = _ESCAPE.sub(lambda match: _ESCAPES[match[0]], text)
        marks = sum(map(plain.count, "\"'{[“”"))
        if marks > self._marks:
            return None
        self._characters -= len(text)
        self._marks -= marks
        # 34 modules that few replies need
        from json_repair import repair_json

        try:
            value = repair_json(plain, return_objects=True, skip_json_loads=True)
            restored = _PRIVATE.sub(lambda match: _RESTORED[match[0]], json_text(value))
        except Exception:  # noqa: BLE001  hostile text made its own assertions fail; none is ours
            return None
        return parse_strict(restored)


def is_nested_too_deep(text: str) -> bool:
    """Whether brackets outside strings are nested deeper than anything we store."""
    depth = 0
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark in _CLOSERS:
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif mark in ("}", "]"):
            depth -= 1
    return False


def _complete(text: str) -> str | None:
    """The text without trailing commas and with its missing closing brackets."""
    missing: list[str] = []
    kept: list[str] = []
    at = 0
    for match in _TOKEN.finditer(text):
        mark = match[0]
        if mark[0] == '"':
            if not match["end"]:
                return None
        elif mark == ",":
            kept.append(text[at : match.start()])
            at = match.end()
        elif mark in _CLOSERS:
            missing.append(_CLOSERS[mark])
        elif not missing or missing.pop() != mark:
            return None
    kept.append(text[at:])
    return "".join(kept) + "".join(reversed(missing))


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is not JSON")


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refuse(number)
