"""Errors as the three providers send them: a status and a body in the provider's own form."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from recollect.profiles import WireName
from recollect.testing.wire_reply import WireReply

__all__ = ["provider_error"]

_GOOGLE_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_ANTHROPIC_TYPE = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def provider_error(
    format: WireName,  # noqa: A002
    status: int,
    message: str,
    *,
    type: str = "",  # noqa: A002
    code: str = "",
    headers: Mapping[str, str] | None = None,
) -> WireReply:
    """An error with this status. `type` and `code` are the provider's own words for it, otherwise
    those that fit the status; Gemini has only the one, Anthropic only the other."""
    return WireReply(
        status=status,
        body=msgspec.json.encode(error_body(format, status, message, type, code)),
        content_type="application/json",
        headers=tuple((headers or {}).items()),
    )


def error_body(
    format_: WireName,
    status: int,
    message: str,
    type_: str = "",
    code: str = "",
) -> dict[str, object]:
    if format_ == "gemini":
        known = type_ or _GOOGLE_STATUS.get(status, "UNKNOWN")
        return {"error": {"code": status, "message": message, "status": known}}
    if format_ == "anthropic":
        known = type_ or _ANTHROPIC_TYPE.get(status, "api_error")
        return {"type": "error", "error": {"type": known, "message": message}}
    known = type_ or ("server_error" if status >= 500 else "invalid_request_error")
    error = {"message": message, "type": known, "param": None, "code": code or None}
    return {"error": error}
