"""Errors as RFC 9457 problem details: every error class of ours has one row in one table.

The detail is the error's own sentence. Where a sentence could tell a client about the server itself
(paths of its files, a bug), the row has a fixed sentence instead, and the log has the error. Below
`/v1` the same facts have the form that clients of the Responses API read.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import msgspec
from starlette.responses import Response

from recollect import errors
from recollect.errors import RecollectError

RESPONSES_PREFIX = "/v1/"
_log = logging.getLogger("recollect.server.http")


class ProblemKind(msgspec.Struct, frozen=True):
    """What an error is to a client."""

    status: int
    code: str  # for programs
    title: str
    hidden: str = ""  # instead of the error's own sentence, which goes to the log
    retry_after: int | None = None  # seconds


class ProblemDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as a client gets it."""

    status: int
    code: str
    title: str
    detail: str
    type: str = "about:blank"


class RequestRefused(RecollectError):
    """A request that is wrong as HTTP, before anything of ours looked at it."""

    def __init__(self, status: int, code: str, title: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.title = status, code, title
        self.headers: dict[str, str] = {}


_IN_LOG = "the server's log has the reason"
_STORE_FAILED = f"the store cannot be used now; {_IN_LOG}"
_INTERNAL = ProblemKind(500, "internal", "Internal error", f"an internal error; {_IN_LOG}")

PROBLEMS: dict[type[RecollectError], ProblemKind] = {
    errors.RecollectError: _INTERNAL,
    errors.BadInput: ProblemKind(400, "bad-input", "The request has a value that is refused"),
    errors.BadRole: ProblemKind(400, "bad-role", "A message has an unknown role"),
    errors.TooLarge: ProblemKind(413, "too-large", "A value is too large"),
    errors.BadTool: ProblemKind(500, "bad-tool", "A tool of the server is broken", _IN_LOG),
    errors.NotFound: ProblemKind(404, "not-found", "Not found"),
    errors.UnknownSession: ProblemKind(404, "unknown-session", "No such session"),
    errors.UnknownEntry: ProblemKind(404, "unknown-entry", "No such entry"),
    errors.UnknownBlob: ProblemKind(404, "unknown-content", "No such content"),
    errors.AmbiguousId: ProblemKind(409, "ambiguous-id", "Several ids match"),
    errors.HeadMoved: ProblemKind(409, "head-moved", "Another writer was first"),
    errors.SessionTrashed: ProblemKind(409, "session-trashed", "The session is in the trash"),
    errors.CannotEdit: ProblemKind(409, "cannot-edit", "The edit would have no effect"),
    errors.AlreadyExists: ProblemKind(409, "already-exists", "It exists already"),
    errors.RefusedByHook: ProblemKind(403, "refused-by-hook", "A hook of the server refused it"),
    errors.InsideEventLoop: _INTERNAL,
    errors.StoreError: ProblemKind(503, "store-failed", "The store failed", _STORE_FAILED, 5),
    errors.CannotWrite: ProblemKind(
        507,
        "cannot-write",
        "The store cannot be written",
        f"nothing was stored, and everything acknowledged before is safe; {_IN_LOG}",
        5,
    ),
    errors.CannotOpen: ProblemKind(503, "cannot-open", "The store failed", _STORE_FAILED, 5),
    errors.CannotReach: ProblemKind(503, "cannot-reach", "The store failed", _STORE_FAILED, 5),
    errors.StoreClosed: ProblemKind(503, "store-closed", "The store is closed", _STORE_FAILED, 5),
    errors.NewerStore: ProblemKind(503, "newer-store", "The store is newer", _STORE_FAILED),
    errors.Damaged: ProblemKind(500, "damaged", "Stored bytes are damaged"),
    errors.CannotImport: ProblemKind(422, "cannot-import", "The file cannot be imported"),
    errors.UnknownFormat: ProblemKind(415, "unknown-format", "No transcript format we know"),
    errors.BadSettings: ProblemKind(
        500, "bad-settings", "The server's settings are wrong", _IN_LOG
    ),
    errors.AccessDenied: ProblemKind(403, "access-denied", "Not allowed with this token"),
    errors.ServerBusy: ProblemKind(503, "server-busy", "The server is at a limit", "", 1),
    errors.CannotListen: ProblemKind(500, "internal", "An internal error", _IN_LOG),
    errors.MissingExtra: ProblemKind(500, "missing-extra", "A package is not installed", _IN_LOG),
    errors.ModelError: ProblemKind(502, "model-failed", "The model did not reply"),
    errors.UnknownModel: ProblemKind(422, "unknown-model", "No such model"),
    errors.NoApiKey: ProblemKind(422, "no-api-key", "The server has no key for this model"),
    errors.Unreachable: ProblemKind(502, "unreachable", "The provider cannot be reached"),
    errors.ProviderFailed: ProblemKind(502, "provider-failed", "The provider refused"),
    errors.ApiKeyRefused: ProblemKind(502, "api-key-refused", "The provider refused the key"),
    errors.ContextOverflow: ProblemKind(502, "context-overflow", "The context is too long"),
    errors.ProviderBusy: ProblemKind(503, "provider-busy", "The provider is busy", "", 10),
    errors.QuotaExhausted: ProblemKind(502, "quota-exhausted", "The provider's quota is used up"),
    errors.BadReply: ProblemKind(502, "bad-reply", "The provider's reply is damaged"),
}


def kind_of(error: BaseException) -> ProblemKind:
    """The row of an error: its own, or that of the nearest class above it."""
    if isinstance(error, RequestRefused):
        return ProblemKind(error.status, error.code, error.title)
    if not isinstance(error, RecollectError):
        return _INTERNAL
    return next(PROBLEMS[cls] for cls in type(error).__mro__ if cls in PROBLEMS)


def describe_error(error: BaseException) -> ProblemDetails:
    """The problem that a client is told of; hidden and unknown errors are logged."""
    kind = kind_of(error)
    if kind.hidden:
        _log.error("%s: %s", type(error).__name__, error, exc_info=error)
    return ProblemDetails(kind.status, kind.code, kind.title, kind.hidden or str(error))


def error_response(error: BaseException, path: str) -> Response:
    """The response for an error, in the form of the face that was called."""
    problem, kind = describe_error(error), kind_of(error)
    headers = dict(error.headers) if isinstance(error, RequestRefused) else {}
    if kind.retry_after is not None:
        headers["retry-after"] = str(kind.retry_after)
    if f"{path}/".startswith(RESPONSES_PREFIX):
        return json_response(responses_error(problem), problem.status, headers)
    return json_response(problem, problem.status, headers, "application/problem+json")


def responses_error(problem: ProblemDetails) -> dict[str, Any]:
    """A problem in the form of the Responses API."""
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found"}
    usual = "server_error" if problem.status >= 500 else "invalid_request_error"
    return {
        "error": {
            "message": problem.detail,
            "type": kinds.get(problem.status, usual),
            "code": problem.code.replace("-", "_"),
            "param": None,
        }
    }


def json_bytes(value: object) -> bytes:
    """JSON in UTF-8; text that UTF-8 cannot encode is escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), allow_nan=False).encode("ascii")


def json_response(
    value: object,
    status: int = 200,
    headers: dict[str, str] | None = None,
    media_type: str = "application/json",
) -> Response:
    return Response(json_bytes(value), status, headers, media_type)
