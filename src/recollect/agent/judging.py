"""A model is asked whether the work goes in circles, when it has gone on for long.

A judge that fails accuses nobody.
"""

from __future__ import annotations

from recollect.agent.compacting import Ask
from recollect.loops import JUDGE_MESSAGES, Loop, LoopWatch
from recollect.models.model_selection import call_judge
from recollect.view.view import View


async def judged(watch: LoopWatch, view: View, ask: Ask) -> Loop | None:
    newest = [item.message for item in view.items[-JUDGE_MESSAGES:]]
    return watch.judged(await call_judge(newest, ask))
