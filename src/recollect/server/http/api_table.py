"""Every route of our own face, in one table: its method, its path, the right it needs.

The application, the OpenAPI description, the metrics and the tests read this table. A handler's
annotations say what it takes and returns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from recollect.server.access import APPROVAL_RIGHT, Right
from recollect.server.http import (
    entry_routes,
    rewind_routes,
    run_routes,
    session_routes,
    transcript_routes,
    view_routes,
)
from recollect.server.http.api_call import ApiCall, ApiReply

Handler = Callable[[ApiCall[Any, Any]], Awaitable[Any]]


class ApiRoute(msgspec.Struct, frozen=True, dict=True):
    """One operation."""

    method: str
    path: str
    right: Right | None  # None: whoever has the address
    handler: Handler
    status: int = 200  # of success

    @property
    def name(self) -> str:
        return str(self.handler.__name__)

    @cached_property
    def _types(self) -> tuple[type, type, tuple[Any, ...]]:
        hints = get_type_hints(self.handler)
        query, body = get_args(hints["call"])
        replies = hints["return"]
        return query, body, get_args(replies) if get_origin(replies) is not ApiReply else (replies,)

    @property
    def query(self) -> type:
        return self._types[0]

    @property
    def body(self) -> type:
        return self._types[1]

    @property
    def value(self) -> type | None:
        """The type of the JSON value that it returns; None if it is no JSON of ours."""
        replies = [one for one in self._types[2] if get_origin(one) is ApiReply]
        return get_args(replies[0])[0] if replies else None

    @property
    def is_stream(self) -> bool:
        return "stream" in self.name or len(self._types[2]) > 1


_SESSION = "/api/sessions/{session}"
_RUN = "/api/runs/{run}"
ROUTES = (
    ApiRoute("GET", "/api/sessions", "read", session_routes.list_sessions),
    ApiRoute("POST", "/api/sessions", "chat", session_routes.create_session, 201),
    ApiRoute("GET", _SESSION, "read", session_routes.get_session),
    ApiRoute("PATCH", _SESSION, "chat", session_routes.rename_session),
    ApiRoute("DELETE", _SESSION, "chat", session_routes.trash_session),
    ApiRoute("POST", f"{_SESSION}/restore", "chat", session_routes.restore_session),
    ApiRoute("POST", f"{_SESSION}/fork", "chat", session_routes.fork_session, 201),
    ApiRoute("POST", f"{_SESSION}/rewind", "chat", rewind_routes.rewind_session),
    ApiRoute("GET", f"{_SESSION}/entries", "read", entry_routes.list_entries),
    ApiRoute("GET", f"{_SESSION}/entries/stream", "read", entry_routes.stream_entries),
    ApiRoute("GET", f"{_SESSION}/entries/{{entry}}", "read", entry_routes.get_entry),
    ApiRoute("GET", f"{_SESSION}/view", "read", view_routes.get_view),
    ApiRoute("GET", f"{_SESSION}/explain", "read", view_routes.get_explanation),
    ApiRoute("GET", f"{_SESSION}/requests/{{entry}}", "read", view_routes.get_request),
    ApiRoute("POST", f"{_SESSION}/requests", "read", view_routes.preview_request),
    ApiRoute("POST", f"{_SESSION}/edits", "chat", view_routes.edit_view),
    ApiRoute("POST", f"{_SESSION}/compaction", "chat", view_routes.compact_session),
    ApiRoute("DELETE", f"{_SESSION}/compaction", "chat", view_routes.undo_compaction),
    ApiRoute("GET", f"{_SESSION}/export", "read", transcript_routes.export_transcript),
    ApiRoute("POST", f"{_SESSION}/prompts", "chat", run_routes.create_prompt, 202),
    ApiRoute("GET", f"{_SESSION}/runs", "read", run_routes.list_runs),
    ApiRoute("GET", _RUN, "read", run_routes.get_run),
    ApiRoute("GET", f"{_RUN}/events", "read", run_routes.stream_run),
    ApiRoute("POST", f"{_RUN}/cancel", "chat", run_routes.cancel_run, 202),
    ApiRoute("POST", f"{_RUN}/approvals/{{approval}}", APPROVAL_RIGHT, run_routes.answer_approval),
    ApiRoute("GET", "/api/search", "read", transcript_routes.search_entries),
    ApiRoute("POST", "/api/imports", "chat", transcript_routes.import_transcript, 201),
    ApiRoute("GET", "/api/models", "read", run_routes.list_models),
    ApiRoute("GET", "/downloads/{token}", None, transcript_routes.download_file),
)
