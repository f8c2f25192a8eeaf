"""Earlier prompts and tool calls to go back to, the newest first; the calls of a prompt fold below
it. Nothing is changed before the user saw what would be.
"""

from __future__ import annotations

import asyncio

from rich.style import Style
from textual import work
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from recollect.display.dates import format_age
from recollect.display.display_text import display_width, pluralize, sanitize, truncate
from recollect.display.rewind_points import PointGroup, RewindPoint, list_points
from recollect.errors import RecollectError
from recollect.runtime.session_outline import SessionOutline
from recollect.runtime.session_rewind import session_roots
from recollect.terminal.rewind_preview_screen import RewindPreviewScreen
from recollect.terminal.rewind_steps import (
    RewindDone,
    SessionMoved,
    go_back,
    look_ahead,
    read_current,
)
from recollect.terminal.row_browser import ROW_STYLES, RowBrowser, RowPieces
from recollect.terminal.session_runner import SessionRunner

KEYS = "Enter look · → calls · a all calls · Esc leave"
TITLE = "Go back to before a prompt or a call"
ABOUT_WIDTH = 50  # from here on a row has room for age and files


class RewindScreen(Screen[RewindDone | None]):
    DEFAULT_CSS = """
    RewindScreen .line { height: auto; padding: 0 1; }
    RewindScreen #title { text-style: bold; height: 1; }
    RewindScreen #keys { color: $text-muted; max-height: 2; }
    RewindScreen #problem { color: $warning; max-height: 3; display: none; }
    """
    BINDINGS = [
        ("escape,q", "leave", "Leave"),
        ("enter,c,f,b,o", "look", "Look"),
        ("right,l,space", "unfold", "Show the calls"),
        ("left,h", "fold", "Hide the calls"),
        ("a", "unfold_all", "All calls"),
    ]

    def __init__(self, runner: SessionRunner) -> None:
        super().__init__()
        self.runner = runner
        self._outline: SessionOutline | None = None
        self._groups: tuple[PointGroup, ...] = ()
        self._unfolded: set[str] = set()  # the prompts whose calls are shown
        self.points: list[RewindPoint] = []  # the rows
        self._is_changing = False  # files or the session, right now

    def compose(self) -> ComposeResult:
        yield Static(TITLE, id="title", classes="line", markup=False)
        yield RowBrowser()
        yield Static("", id="problem", classes="line", markup=False)
        yield Static(KEYS, id="keys", classes="line", markup=False)

    def on_mount(self) -> None:
        self.query_one(RowBrowser).focus()
        self.read()

    # --- what is shown ---------------------------------------------------------------------------

    @work(exclusive=True, group="read")
    async def read(self) -> None:
        """Read the session anew."""
        try:
            self._outline = await read_current(self.runner, "go back to")
        except RecollectError as error:
            self.show_problem(str(error))
            return
        self._groups = await asyncio.to_thread(list_points, self._outline)
        self._show_rows(0)

    def show_problem(self, text: str) -> None:
        line = self.query_one("#problem", Static)
        line.update(sanitize(text))
        line.display = bool(text)

    def _show_rows(self, cursor: int) -> None:
        self.points = [
            point
            for group in self._groups
            for point in (
                *((group.prompt,) if group.prompt is not None else ()),
                *(group.calls if _key(group) in self._unfolded or group.prompt is None else ()),
            )
        ]
        self.query_one(RowBrowser).show(len(self.points), self._row, cursor)
        if not self.points:
            self.show_problem("there is nothing to go back to yet; a session begins with a prompt")

    def _row(self, number: int, width: int) -> RowPieces:
        point = self.points[number]
        about = ""
        if width >= ABOUT_WIDTH:
            files = f"{pluralize(point.files, 'file')} since" if point.files else ""
            about = "  " + ", ".join(filter(None, (files, format_age(point.time))))
        lead, style = self._lead(point)
        text = truncate(lead + point.text, max(4, width - display_width(about)))
        gap = " " * (width - display_width(text) - display_width(about))
        return [(text, style), (gap + about, ROW_STYLES.dim)]

    def _lead(self, point: RewindPoint) -> tuple[str, Style]:
        if point.kind == "call":
            return "    ", ROW_STYLES.tool
        if not point.calls:
            return "  > ", ROW_STYLES.strong
        return ("▾ > " if point.entry in self._unfolded else "▸ > "), ROW_STYLES.strong

    # --- keys ------------------------------------------------------------------------------------

    @property
    def point(self) -> RewindPoint | None:
        cursor = self.query_one(RowBrowser).cursor
        return self.points[cursor] if 0 <= cursor < len(self.points) else None

    def _group(self) -> PointGroup | None:
        point = self.point
        groups = self._groups
        return next((each for each in groups if point in (each.prompt, *each.calls)), None)

    def action_unfold(self) -> None:
        if (group := self._group()) is not None:
            self._unfolded.add(_key(group))
            self._show_rows(self.query_one(RowBrowser).cursor)

    def action_fold(self) -> None:
        group = self._group()
        if group is not None and group.prompt is not None:
            self._unfolded.discard(_key(group))
            prompt, before = group.prompt, self.points
            self._show_rows(before.index(prompt))

    def action_unfold_all(self) -> None:
        keys = {_key(group) for group in self._groups}
        point = self.point
        self._unfolded = set() if keys <= self._unfolded else keys
        self._show_rows(0)
        if point in self.points:
            self._show_rows(self.points.index(point))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """No key interrupts a change that is being made."""
        return not self._is_changing and super().check_action(action, parameters) is not False

    def action_leave(self) -> None:
        self.dismiss(None)

    @work(exclusive=True, group="look")
    async def action_look(self) -> None:
        """Show what going there would change, and do what the user chooses then."""
        point, outline = self.point, self._outline
        if point is None or outline is None:
            return
        self.show_problem("")
        try:
            preview = await look_ahead(self.runner, outline, point.to)
            root = session_roots(outline.session)[0]
            where = f"before: {point.text}"
            choice = await self.app.push_screen_wait(RewindPreviewScreen(where, preview, root))
            if choice is None:
                return
            prompt = point.entry if point.kind == "prompt" else ""
            self._is_changing = True
            self.show_problem("going back …")
            done = await go_back(self.runner, preview, choice, prompt)
        except RecollectError as error:
            self.show_problem(str(error))
            if isinstance(error, SessionMoved):
                self.read()
            return
        finally:
            self._is_changing = False
        self.dismiss(done)


def _key(group: PointGroup) -> str:
    return group.prompt.entry if group.prompt is not None else ""
