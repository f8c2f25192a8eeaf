"""Errors as RFC 9457 problem details: every error class of ours has one row in one table.

The detail is the error's own sentence. Where a sentence could tell a client about the server itself
(paths of its files, a bug), the row has a fixed sentence instead, and the log has the error. Below
`/v1` the same facts have the form that clients of the Responses API read.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from starlette.responses import Response

from recollect.errors import RecollectError
from recollect.server.problem_kinds import ProblemKind, client_sentence, problem_kind

RESPONSES_PREFIX = "/v1/"


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


def kind_of(error: BaseException) -> ProblemKind:
    """What an error is to a client of HTTP."""
    if isinstance(error, RequestRefused):
        return ProblemKind(error.status, error.code, error.title)
    return problem_kind(error)


def describe_error(error: BaseException) -> ProblemDetails:
    """The problem that a client is told of; hidden and unknown errors are logged."""
    kind = kind_of(error)
    detail = str(error) if isinstance(error, RequestRefused) else client_sentence(error)
    return ProblemDetails(kind.status, kind.code, kind.title, detail)


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
