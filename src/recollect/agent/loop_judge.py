"""A model is asked whether the work goes in circles, when it has gone on for long.

A judge that fails accuses nobody.
"""

from __future__ import annotations

from recollect.agent.compactor import Summarizer
from recollect.loop_detection import JUDGE_MESSAGES, Loop, LoopDetector
from recollect.models.model_selection import call_judge
from recollect.view.view import View


async def judged(watch: LoopDetector, view: View, ask: Summarizer) -> Loop | None:
    newest = [item.message for item in view.items[-JUDGE_MESSAGES:]]
    return watch.judged(await call_judge(newest, ask))
