"""Shows one client the answers to its messages, in the order of the messages.

The runs themselves wait for nobody: a client that reads slowly, or leaves, delays only what it is
shown. If another writer was first and an answer went on in a fork, the connection goes there too.
"""

from __future__ import annotations

import asyncio

from recollect.runtime.prompt_run import RunResult
from recollect.server.nplt.answer_frames import AnswerFrames, thought
from recollect.server.nplt.frame_writer import FrameWriter
from recollect.server.nplt.message_types import APPROVALS, EVENTS
from recollect.server.nplt.server_texts import ServerTexts
from recollect.server.nplt.session_requests import SessionRequests
from recollect.server.prompt_queue import PromptRun


class AnswerStream:
    def __init__(self, out: FrameWriter, texts: ServerTexts, requests: SessionRequests) -> None:
        self._out, self._texts, self._requests = out, texts, requests
        self._waiting: asyncio.Queue[PromptRun] = asyncio.Queue()
        self.runs: list[PromptRun] = []  # that have not been shown to their end
        self.features = frozenset[str]()

    def add(self, run: PromptRun) -> None:
        self.runs.append(run)
        self._waiting.put_nowait(run)

    async def join(self) -> None:
        """Until every answer was shown."""
        await self._waiting.join()

    async def show(self) -> None:
        """For as long as the connection lasts."""
        while True:
            run = await self._waiting.get()
            try:
                await self._show(run)
            finally:
                self.runs.remove(run)
                self._waiting.task_done()

    async def _show(self, run: PromptRun) -> None:
        events, approvals = EVENTS in self.features, APPROVALS in self.features
        answer = AnswerFrames(run, self._texts, events=events, approvals=approvals)
        async for event in run.events():
            moved = ""
            if isinstance(event, RunResult) and event.session.id != run.session:
                moved = await self._follow_fork(run.session, event.session.id)
                if events:
                    self._out.send(*thought("notice", moved, session_id=event.session.id))
            for frame in answer.frames(event):
                self._out.send(*frame)
            if moved and not events:
                self._out.send_text(moved)  # not before the end of the answer
            await self._out.flush()

    async def _follow_fork(self, before: str, after: str) -> str:
        if self._requests.id == before:
            self._requests.enter(after, stored=True)
        return self._texts.forked.format(id=await self._requests.short_id(after))
