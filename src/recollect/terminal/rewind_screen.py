"""Earlier prompts and tool calls to go back to, the newest first; the calls of a prompt fold below
it.
"""

from __future__ import annotations

import asyncio

from recollect.display.dates import format_age
from recollect.display.display_text import display_width, pluralize, truncate
from recollect.display.rewind_points import PointGroup, RewindPoint, list_points
from recollect.runtime.session_outline import SessionOutline
from recollect.terminal.history_screen import HistoryScreen
from recollect.terminal.palette import StyleName
from recollect.terminal.rewind_steps import RewindDone, read_current
from recollect.terminal.row_list import Row
from recollect.terminal.session_runner import SessionRunner

ABOUT_WIDTH = 50  # from here on a row has room for age and files


class RewindScreen(HistoryScreen[RewindDone | None]):
    HEADING = "Go back to before a prompt or a call"
    KEYS = ("Enter look", "→ ← calls", "a all calls", "Esc leave")

    def __init__(self, runner: SessionRunner) -> None:
        super().__init__(runner)
        self._outline: SessionOutline | None = None
        self._groups: tuple[PointGroup, ...] = ()
        self.points: list[RewindPoint] = []  # the rows

    # --- what is shown ---------------------------------------------------------------------------

    async def read_rows(self) -> None:
        self._outline = await read_current(self.runner, "go back to")
        self._groups = await asyncio.to_thread(list_points, self._outline)
        self._show_rows(0)

    def _show_rows(self, cursor: int) -> None:
        self.points = [
            point
            for group in self._groups
            for point in (
                *((group.prompt,) if group.prompt is not None else ()),
                *(group.calls if _key(group) in self.unfolded or group.prompt is None else ()),
            )
        ]
        self.list.show(len(self.points), cursor)
        if not self.points:
            self.show_problem("there is nothing to go back to yet; a session begins with a prompt")

    def make_row(self, number: int, width: int) -> Row:
        point = self.points[number]
        about = ""
        if width >= ABOUT_WIDTH:
            files = f"{pluralize(point.files, 'file')} changed since" if point.files else ""
            about = "  " + " · ".join(filter(None, (files, format_age(point.time))))
        lead, style = self._lead(point)
        text = truncate(lead + point.text, max(4, width - display_width(about)))
        gap = " " * (width - display_width(text) - display_width(about))
        return [(text, style), (gap + about, "dim")]

    def _lead(self, point: RewindPoint) -> tuple[str, StyleName]:
        if point.kind == "call":
            return "    ", "tool"
        if not point.calls:
            return "  > ", "strong"
        return ("▾ > " if point.entry in self.unfolded else "▸ > "), "strong"

    # --- keys ------------------------------------------------------------------------------------

    @property
    def point(self) -> RewindPoint | None:
        cursor = self.list.cursor
        return self.points[cursor] if 0 <= cursor < len(self.points) else None

    def _group(self) -> PointGroup | None:
        point = self.point
        groups = self._groups
        return next((each for each in groups if point in (each.prompt, *each.calls)), None)

    def action_unfold(self) -> None:
        if (group := self._group()) is not None:
            self.unfolded.add(_key(group))
            self._show_rows(self.list.cursor)

    def action_fold(self) -> None:
        group = self._group()
        if group is not None and group.prompt is not None:
            self.unfolded.discard(_key(group))
            prompt, before = group.prompt, self.points
            self._show_rows(before.index(prompt))

    def action_unfold_all(self) -> None:
        keys = {_key(group) for group in self._groups}
        point = self.point
        self.unfolded = set() if keys <= self.unfolded else keys
        self._show_rows(0)
        if point in self.points:
            self._show_rows(self.points.index(point))

    async def choose(self) -> RewindDone | None:
        point, outline = self.point, self._outline
        if point is None or outline is None:
            return None
        prompt = point.entry if point.kind == "prompt" else ""
        return await self.go_there(outline, point.to, f"before: {point.text}", prompt)


def _key(group: PointGroup) -> str:
    return group.prompt.entry if group.prompt is not None else ""
