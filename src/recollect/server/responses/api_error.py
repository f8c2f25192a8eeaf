"""Errors in the form of OpenAI's API: a status, and `{"error": {message, type, param, code}}`.

What the server itself did wrong is logged and told in a fixed sentence; everything else is the
error's own sentence.
"""

from __future__ import annotations

from typing import Any

from recollect import errors
from recollect.errors import RecollectError
from recollect.server.http.problem_details import RequestRefused, describe_error, kind_of

INVALID = "invalid_request_error"
# by the class of an error: the status, the type and the code where they are not the usual ones
_ROWS: dict[type[RecollectError], tuple[int, str, str]] = {
    errors.UnknownModel: (404, INVALID, "model_not_found"),
    errors.NoApiKey: (400, INVALID, "model_not_available"),
    errors.ContextOverflow: (400, INVALID, "context_length_exceeded"),
    errors.ApiKeyRefused: (502, "server_error", "provider_key_refused"),
    errors.QuotaExhausted: (429, "insufficient_quota", "insufficient_quota"),
    errors.ProviderBusy: (429, "too_many_requests", "rate_limit_exceeded"),
    errors.ServerBusy: (429, "too_many_requests", "rate_limit_exceeded"),
    errors.ModelError: (502, "model_error", "model_error"),
}
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found"}


class ApiError(RecollectError):
    """A request that is refused, as its client is told."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = INVALID,  # noqa: A002 - the API's name
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.type, self.param, self.code = status, type, param, code
        self.headers: dict[str, str] = {}

    @property
    def payload(self) -> dict[str, Any]:
        return {
            "message": str(self),
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }


def invalid(message: str, param: str | None = None, code: str = "invalid_value") -> ApiError:
    return ApiError(message, param=param, code=code)


def not_found(what: str, given: str, param: str | None = None, code: str = "not_found") -> ApiError:
    message = f"{what} with id {given[:80]!r} not found"
    return ApiError(message, status=404, param=param, code=code)


def api_error(error: BaseException) -> ApiError:
    """Any error as one of the API."""
    if isinstance(error, ApiError):
        return error
    problem, kind = describe_error(error), kind_of(error)
    row = next((_ROWS[cls] for cls in type(error).__mro__ if cls in _ROWS), None)
    if row is None:
        usual = "server_error" if problem.status >= 500 else INVALID
        row = problem.status, _TYPES.get(problem.status, usual), problem.code.replace("-", "_")
    status, type_, code = row
    found = ApiError(problem.detail, status=status, type=type_, code=code)
    if isinstance(error, errors.UnknownModel):
        found.param = "model"
    if isinstance(error, RequestRefused):
        found.headers.update(error.headers)
    if isinstance(error, errors.ModelError):
        found.headers["x-should-retry"] = "false"  # it was tried again here already
    elif kind.retry_after is not None:
        found.headers["retry-after"] = str(kind.retry_after)
    return found
