"""`/init`: the model drafts the project's memory file, the user is shown the difference, and
`/init write` writes exactly that."""

from __future__ import annotations

import asyncio

from recollect.display.last_reply import last_reply
from recollect.errors import BadInput, RecollectError
from recollect.runtime.memory_file_draft import draft_prompt, plan_memory_file, write_memory_file
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.terminal_events import NoticeGiven, QueuedPrompt
from recollect.workspace.trusted_folders import is_trusted


async def run_init(runner: SessionRunner, arguments: str) -> str:
    if arguments == "write":
        return await _write(runner)
    if arguments:
        raise BadInput("/init takes no argument but `write`, which writes what was shown")
    runner.shown.memory_file = None
    prompt = runner.send(draft_prompt(await runner.opened()))
    runner.shown.drafting = asyncio.create_task(_show_draft(runner, prompt))
    return ""


async def _show_draft(runner: SessionRunner, prompt: QueuedPrompt) -> None:
    if not await runner.wait_for_end(prompt) or runner.session is None:
        return
    try:
        reply = last_reply(runner.session.view().entries)
        planned = await asyncio.to_thread(plan_memory_file, runner.runtime, reply)
    except RecollectError as error:
        runner.notify(NoticeGiven(str(error), "error"))
        return
    if not planned.difference:
        runner.notify(NoticeGiven(f"{planned.path} says exactly this already", "info"))
        return
    runner.shown.memory_file = planned
    ask = f"Nothing is written yet. /init write writes this to {planned.path}"
    runner.notify(NoticeGiven(f"{planned.difference}\n{ask}", "info"))


async def _write(runner: SessionRunner) -> str:
    if runner.shown.drafting is not None:  # the draft is shown before it can be written
        await asyncio.wait([runner.shown.drafting])
    planned, runner.shown.memory_file = runner.shown.memory_file, None
    if planned is None:
        raise BadInput("there is no draft to write; /init lets the model make one")
    await asyncio.to_thread(write_memory_file, planned)
    later = "it is sent with your next prompt"
    if not is_trusted(planned.path.parent):
        later = "sessions read it once you trust this folder's memory: /trust memory"
    return f"wrote {planned.path}; {later}"
