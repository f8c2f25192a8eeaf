"""A hook that keeps a mirror up to date while an agent works."""

from __future__ import annotations

from recollect.agent.hook_events import AfterAgent, HookDecision, HookEvent, SessionEnd
from recollect.agent.hooks import PythonHook
from recollect.transcripts.mirror import Mirror


def mirror_hook(mirror: Mirror) -> PythonHook:
    """Writes after each turn and at the end of a session, and waits only for the latter."""

    async def update(event: HookEvent) -> HookDecision:
        mirror.follow(event.session)
        if isinstance(event, AfterAgent):
            mirror.schedule_write(event.session)
        elif isinstance(event, SessionEnd):
            await mirror.finish(event.session)
        return HookDecision(warnings=mirror.take_warnings())

    events = ("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd")
    return PythonHook(call=update, on=events, name="mirror")
