"""What an answer that is no reply means: a pure function from status, headers and body.

Whatever a server sends instead of a reply becomes one error with one clear sentence, in the
server's own words where it has some. Only the upper levels of a body are looked at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from recollect.codecs.provider_errors import bad_reply_from, make_printable, provider_error_from
from recollect.errors import ApiKeyRefused, ProviderBusy, ProviderFailed
from recollect.models.retry import FailedAttempt, may_recover, requested_delay

MAX_ERROR_BODY = 64_000  # bytes of an error's body that are read
_NO_VARIABLE = "the settings (none is named for this endpoint)"


def classify_response(
    status: int, headers: Mapping[str, str], body: bytes, *, variable: str, now: float
) -> FailedAttempt:
    """The failed attempt that this answer is."""
    if 300 <= status < 400:
        where = make_printable(headers.get("location", "nowhere"), 200)
        said = f"it points to another address, {where}, where a key is not taken"
        return FailedAttempt(
            ProviderFailed(said, status, "set the address in the settings"), again=False
        )
    text = body.decode("utf-8", "replace")
    said, kind = provider_message(body)
    error = provider_error_from(said, status, kind)
    if isinstance(error, ApiKeyRefused):
        error = ApiKeyRefused(error.said, status, variable or _NO_VARIABLE)
    again = isinstance(error, ProviderBusy) and may_recover(text)
    return FailedAttempt(
        error, again=again, wait=requested_delay(headers, text, now) if again else None
    )


def provider_message(body: bytes) -> tuple[str, str]:
    """The provider's words and its kind of error, from any of the forms in use."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return _describe_body(body), ""
    if isinstance(value, list) and value:  # Gemini, when it would have sent a list
        value = value[0]
    if isinstance(value, str):
        return value, ""
    if not isinstance(value, dict):
        return _describe_body(body), ""
    error = value.get("error", value)
    if isinstance(error, str):  # Ollama
        return error, ""
    if not isinstance(error, dict):
        error = value
    said = _first_text(error, "message", "detail", "error_description", "msg")
    kind = _first_text(error, "code", "type", "status")
    return _add_upstream_message(error, said) or _describe_body(body), kind


def _add_upstream_message(error: dict[str, Any], said: str) -> str:
    """OpenRouter wraps what the model's own provider said."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return f"{said}: {raw}" if isinstance(raw, str) and raw else said


def _first_text(value: dict[str, Any], *names: str) -> str:
    return next((v for name in names if isinstance(v := value.get(name), str) and v), "")


def _describe_body(body: bytes) -> str:
    """Short plain text speaks for itself; of anything else, what it is."""
    what = bad_reply_from(body).what
    if what.startswith("text (") and len(body) <= 500:
        return body.decode("utf-8", "replace")
    return what
