"""What a provider's error says, whichever provider sent it, as one value.

`read_error` reads the JSON of an error, of a response or of an event in a stream alike: the object
under "error", a bare sentence, a flat object, a list of one, and an error that a gateway wrapped as
JSON text into the message of its own. It believes structure before prose: codes, types, reasons,
Google's `RetryInfo` and `QuotaFailure`. Any value is accepted; depth and length are bounded.
`load_error` reads the text of one, with raw line breaks in strings and commas too many.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from recollect.codecs.foreign_json import is_too_deep
from recollect.codecs.requested_delays import Wait, parse_wait, wait_in_headers, wait_in_words
from recollect.entries import json_text

MAX_READ = 10_000  # characters of an error's words that are searched
_MAX_WRAPPED = 4  # errors inside each other
_MAX_ITEMS = 50  # details, and violations of one
_MAX_WORD = 200  # characters of a code
_MAX_CODE = 1_000_000  # of one that is a number
_STRAY_COMMAS = re.compile(r",(?:\s{0,100},)+")  # Google's gateway was seen to insert them
_NO_LIMIT = re.compile(r"\blimit: {0,4}0(?!\.?\d)")  # "limit: 0", and not "limit: 0.5"
# in words, from gateways that quote the provider's error as text
_QUOTA_IN_WORDS = re.compile(r"\bquotaid[\\\"']{0,6} {0,4}[:=] {0,4}[\\\"']{0,6}([\w-]{1,200})")
_DELAY_IN_WORDS = re.compile(
    r"\bretrydelay[\\\"']{0,6} {0,4}[:=] {0,4}[\\\"']{0,6}(\d{1,9}(?:\.\d{1,12})?m?s)"
)


class ErrorReport(NamedTuple):
    said: str = ""
    status: int = 0  # that the error itself names
    kinds: tuple[str, ...] = ()  # codes, types and reasons, in lower case
    quotas: tuple[str, ...] = ()  # Google's names of the limits that were exceeded, in lower case
    wait: Wait | None = None  # as a field, or in words
    no_limit: bool = False  # the account's limit is 0


def read_error(value: object, depth: int = 1) -> ErrorReport:
    """`value` is a whole body or event, or what it has under "error"."""
    if isinstance(value, list) and value:  # Gemini, where it would have streamed a list
        value = value[0]
    outer = value if isinstance(value, dict) else {}
    error = outer.get("error") or value
    inner = error if isinstance(error, dict) else {}
    words = error if isinstance(error, str) else _message(inner) or _message(outer)
    wrapped = _unwrap(words, depth)
    if wrapped is not None and wrapped.said:
        words = wrapped.said
    raw = _object(inner.get("metadata")).get("raw")  # the model's provider's error, at OpenRouter
    beneath = _unwrap(raw, depth) if isinstance(raw, str) else None
    if isinstance(raw, str) and raw:
        words = f"{words}: {beneath.said if beneath is not None and beneath.said else raw}"
    own = _read_fields(words, outer, inner)
    return _merge(own, *(report for report in (wrapped, beneath) if report is not None))


def _message(error: dict[str, Any]) -> str:
    return _first_text(error, "message", "detail", "error_description", "msg")


def _unwrap(words: str, depth: int) -> ErrorReport | None:
    """The error that a message holds as JSON text."""
    if depth >= _MAX_WRAPPED or not words[:100].lstrip().startswith(("{", "[")):
        return None
    value = load_error(words)
    return read_error(value, depth + 1) if isinstance(value, dict | list) else None


def load_error(text: str) -> Any:
    """The JSON of an error; None for any other text."""
    with suppress(ValueError, RecursionError):
        return json.loads(text, strict=False)
    with suppress(ValueError, RecursionError):
        return json.loads(_STRAY_COMMAS.sub(",", text), strict=False)
    return None


def _read_fields(words: str, outer: dict[str, Any], inner: dict[str, Any]) -> ErrorReport:
    searched = words[:MAX_READ].lower()
    details = [_object(item) for item in _items(inner.get("details"))]
    violations = [_object(item) for one in details for item in _items(one.get("violations"))]
    metadata = [_object(one.get("metadata")) for one in (*details, inner)]
    quotas = [one.get("quotaId") for one in violations]
    quotas += [one.get("quota_limit") for one in metadata]
    return ErrorReport(
        said=words,
        status=_status(inner) or _status(outer),
        kinds=tuple(_kinds(inner, *details, outer)),
        quotas=(*_words(quotas), *_QUOTA_IN_WORDS.findall(searched)),
        wait=_find_wait(details, metadata, searched),
        no_limit=_NO_LIMIT.search(searched) is not None
        or any(str(one.get("quotaValue")) == "0" for one in violations),
    )


def _kinds(*objects: dict[str, Any]) -> Iterator[str]:
    for value in objects:
        yield from _words(value.get(name) for name in ("code", "type", "status", "reason"))


def _find_wait(
    details: list[dict[str, Any]], metadata: list[dict[str, Any]], searched: str
) -> Wait | None:
    """Fields before words, durations before moments."""
    fields = [one.get("retryDelay") for one in details]
    fields += [one.get("quotaResetDelay") for one in metadata]
    fields += [found[1] for found in islice(_DELAY_IN_WORDS.finditer(searched), 1)]
    fields += [one.get("quotaResetTimeStamp") for one in metadata]
    for field in fields:
        if isinstance(field, str) and (wait := parse_wait(field)) is not None:
            return wait
    for one in metadata:  # OpenRouter repeats its headers here
        headers = {str(n).lower(): str(v) for n, v in _object(one.get("headers")).items()}
        if (wait := wait_in_headers(headers, limited=True)) is not None:
            return wait
    return wait_in_words(searched)


def _merge(own: ErrorReport, *others: ErrorReport) -> ErrorReport:
    """The outer error's words, with everything that the wrapped ones know besides."""
    for other in others:
        own = own._replace(
            status=own.status or other.status,
            kinds=own.kinds + other.kinds,
            quotas=own.quotas + other.quotas,
            wait=other.wait or own.wait,
            no_limit=own.no_limit or other.no_limit,
        )
    return own


def describe_error(value: object) -> str:
    """An error that has no words, as it came."""
    return "an error nested too deeply to be shown" if is_too_deep(value) else json_text(value)


def _status(error: dict[str, Any]) -> int:
    for name in ("code", "status"):
        number = error.get(name)
        if isinstance(number, str) and number.isascii() and number.isdigit():
            number = int(number[:4])
        if isinstance(number, int) and 100 <= number <= 599:
            return number
    return 0


def _first_text(value: dict[str, Any], *names: str) -> str:
    return next((v for name in names if isinstance(v := value.get(name), str) and v), "")


def _words(values: Any) -> Iterator[str]:
    for value in values:
        if isinstance(value, str) and value:
            yield value[:_MAX_WORD].lower()
        elif isinstance(value, int) and 0 < value < _MAX_CODE:
            yield str(value)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return value[:_MAX_ITEMS] if isinstance(value, list) else []
