"""What each error is to a client of any protocol: a status, a code, and the sentence it may read.

Sentences that would tell of the server itself, such as where its store is, go to the log; clients
get a fixed one instead. Every class of error has one row.
"""

from __future__ import annotations

import logging

import msgspec

from recollect import errors
from recollect.errors import RecollectError

_log = logging.getLogger("recollect.server")


class ProblemKind(msgspec.Struct, frozen=True):
    """What an error is to a client."""

    status: int
    code: str  # for programs
    title: str
    hidden: str = ""  # instead of the error's own sentence, which goes to the log
    retry_after: int | None = None  # seconds


_IN_LOG = "the server's log has the reason"
_NOTHING_STORED = "nothing of this was stored, and everything acknowledged before is safe"
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
        f"the store cannot be written: {_NOTHING_STORED}; {_IN_LOG}",
        5,
    ),
    errors.CannotOpen: ProblemKind(503, "cannot-open", "The store failed", _STORE_FAILED, 5),
    errors.StoreReplaced: ProblemKind(
        507,
        "store-replaced",
        "The store's file was replaced",
        f"the store's file was replaced: {_NOTHING_STORED}; {_IN_LOG}",
    ),
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


def problem_kind(error: BaseException) -> ProblemKind:
    """The row of an error: its own, or that of the nearest class above it."""
    if not isinstance(error, RecollectError):
        return _INTERNAL
    return next(PROBLEMS[cls] for cls in type(error).__mro__ if cls in PROBLEMS)


def client_sentence(error: BaseException) -> str:
    """What a client is told of an error; what is hidden from it is logged."""
    kind = problem_kind(error)
    if not kind.hidden:
        return str(error)
    # our own errors say what to do; only what nobody expected needs its trace
    trace = None if isinstance(error, RecollectError) else error
    _log.error("%s: %s", type(error).__name__, error, exc_info=trace)
    return kind.hidden
