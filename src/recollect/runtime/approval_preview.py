"""What a user has to see of a call before saying yes: exactly what would happen, and where.

Nothing is written or run for it. Arguments are read as the tool reads them, so what is shown is
what would be done; credentials in them are not shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from recollect.entries import Message, ToolCall
from recollect.redaction import redact
from recollect.runtime.permission_policy import SHELL_TOOL, ApprovalRequest
from recollect.runtime.prompt_run import ActiveSession
from recollect.toolkinds import parse_arguments
from recollect.tools.tool import ToolContext, ToolFailed
from recollect.view.view import View

if TYPE_CHECKING:
    from recollect.tools.file_editor import PlannedChange


class ApprovalPreview(msgspec.Struct, frozen=True):
    tool: str
    reason: str  # why the user is asked
    command: str = ""  # as the model gave it
    normal_form: str = ""  # what it means, where that is not what it says
    folder: str = ""  # where it runs
    sandbox: str = ""  # what it runs in
    diff: str = ""  # the change of a file
    creates: bool = False  # the file is not there yet
    failure: str = ""  # the call would fail: why
    arguments: tuple[tuple[str, str], ...] = ()  # of every other tool
    rules: tuple[str, ...] = ()  # what "always" would store
    by_subagent: bool = False  # it called, not the session's own model


async def preview_approval(active: ActiveSession, request: ApprovalRequest) -> ApprovalPreview:
    call, workspace = request.call, active.workspace
    tool = next((one for one in workspace.tools(False, False) if one.name == call.name), None)  # noqa: FBT003 - all tools
    given = parse_arguments(call.arguments if tool is None else tool.fit(call.arguments)) or {}
    shown = ApprovalPreview(
        call.name,
        redact(request.reason),
        rules=request.rules,
        by_subagent=not _was_called(active.session.view(), call),
    )
    folders = workspace.folders
    if call.name == SHELL_TOOL and isinstance(command := given.get("command"), str):
        isolation = await asyncio.to_thread(lambda: workspace.commands().isolation)
        directory = given.get("directory")
        return msgspec.structs.replace(
            shown,
            command=redact(command),
            normal_form=redact(request.normal_form) if request.normal_form != command else "",
            folder=str(Path(folders.cwd, directory if isinstance(directory, str) else "")),
            sandbox=isolation.refusal or isolation.description,
        )
    context = ToolContext(folders.roots, cwd=folders.cwd, view=active.session.view())
    try:
        change = await _plan_change(call.name, given, context)
    except (ToolFailed, OSError) as error:
        return msgspec.structs.replace(shown, failure=redact(str(error)), arguments=_rest(given))
    if change is not None and (diff := await asyncio.to_thread(change.diff)):
        creates = change.before is None
        return msgspec.structs.replace(shown, diff=redact(diff), creates=creates)
    return msgspec.structs.replace(shown, arguments=_rest(given))


def _was_called(view: View, call: ToolCall) -> bool:
    """Whether the last words of this session's model have this call: it is stored before."""
    messages = (view.log.entries[at].body for at in range(view.n - 1, -1, -1))
    replies = (one for one in messages if isinstance(one, Message) and one.role == "model")
    last = next(replies, None)
    return last is not None and any(
        isinstance(part, ToolCall) and part.id == call.id for part in last.parts
    )


async def _plan_change(
    tool: str, given: Mapping[str, object], context: ToolContext
) -> PlannedChange | None:
    """The change that a call would make; None if it is no call of a tool that changes a file."""
    # late: what carries out a tool is loaded by its first call
    from recollect.tools import file_editor

    path = given.get("file_path")
    if not isinstance(path, str):
        return None
    if tool == "write_file" and isinstance(content := given.get("content"), str):
        return await file_editor.plan_write(path, content, context)
    old, new = given.get("old_string"), given.get("new_string")
    count = given.get("expected_replacements", 1)
    if tool != "replace" or not isinstance(old, str) or not isinstance(new, str):
        return None
    times = count if isinstance(count, int) else 1
    return await file_editor.plan_replace(path, old, new, times, context)


def _rest(given: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, redact(value if isinstance(value, str) else repr(value)))
        for name, value in given.items()
    )
