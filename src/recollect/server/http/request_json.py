"""Bodies of requests as typed values: strict JSON, so that two readers cannot read it differently.

Refused with a sentence: bytes that are not UTF-8, names that stand twice in an object, NaN and
infinities, more than 100 levels, numbers of thousands of digits, fields of another type.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from recollect.errors import BadInput
from recollect.json_depth import MAX_DEPTH, refuse_deep
from recollect.server.http.problem_details import RequestRefused

LARGE = 100_000  # bytes: from here on parsed in a thread, so that others do not wait
T = TypeVar("T")


async def read_json(request: Request) -> Any:
    """The JSON value in a request's body."""
    data = await request.body()
    return await asyncio.to_thread(parse_json, data) if len(data) > LARGE else parse_json(data)


def parse_json(data: bytes) -> Any:
    try:
        value = json.loads(
            data.decode(),
            object_pairs_hook=_unique_names,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
        return refuse_deep(value)
    except UnicodeDecodeError as error:
        raise bad_json(f"byte {error.start:,} is not UTF-8") from None
    except RecursionError:
        raise bad_json(f"it is nested deeper than {MAX_DEPTH} levels") from None
    except BadInput as error:
        raise bad_json(str(error)) from None
    except ValueError as error:  # also of integers with too many digits
        raise bad_json(str(error)[:200]) from None


def convert_value(value: Any, kind: type[T], what: str, *, strict: bool = True) -> T:
    """A JSON value as a type of ours; a field that does not fit is named."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        detail = f"the {what} is not as described in /openapi.json: {error}"
        raise RequestRefused(422, "invalid", "A value does not fit", detail) from None


def bad_json(why: str) -> RequestRefused:
    return RequestRefused(400, "bad-json", "The body is not JSON", f"cannot read the body: {why}")


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = counts.most_common(1)[0][0]
        raise ValueError(f"the name {twice[:40]!r} stands twice in an object")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number
