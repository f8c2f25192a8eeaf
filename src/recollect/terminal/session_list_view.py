"""A list of sessions, and of passages found in them, two lines each, rendered only where visible.

The cursor stays on its session when the list changes. What only a session's entries tell is asked
for the rows in sight: `InSight` says which those are.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message as TextualMessage
from textual.scroll_view import ScrollView
from textual.strip import Strip

from recollect.display.display_text import display_width, one_line, sanitize, truncate
from recollect.display.session_list import SessionDetails, describe_facts, describe_title
from recollect.store.contract import SearchHit, SessionInfo
from recollect.terminal.palette import Palette, read_palette

ROW = 2  # lines
FOLDER_SHARE = 3  # of a row's width, a third at most is the project's folder
LEAD = 24  # characters of a passage before its first match, at most
_MARK, _SPACE = "❯ ", "  "
_TITLE, _CHOSEN = Style(), Style(bold=True)
_FACTS = Style(dim=True)


class SessionItem(msgspec.Struct, frozen=True):
    """A row: a session, or a passage of it."""

    session: SessionInfo
    hit: SearchHit | None = None

    @property
    def key(self) -> str:
        return self.session.id if self.hit is None else f"{self.session.id}:{self.hit.entry.id}"

    @property
    def version(self) -> tuple[str, str | None]:
        return self.session.id, self.session.head


class SessionListView(ScrollView, can_focus=True):
    DEFAULT_CSS = """
    SessionListView { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """

    class CursorMoved(TextualMessage):
        """Another row is under the cursor, or none."""

    class InSight(TextualMessage):
        """Other rows are visible."""

    class Chosen(TextualMessage):
        """The user clicked the row under the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[SessionItem] = []
        self.details: dict[tuple[str, str | None], SessionDetails] = {}
        self.cursor, self.shows_project = 0, False

    @property
    def current(self) -> SessionItem | None:
        return self.items[self.cursor] if self.cursor < len(self.items) else None

    def show(self, items: list[SessionItem], *, at_top: bool = False) -> None:
        """Other rows; the cursor stays where it was, unless the list begins anew."""
        before = self.current
        self.items = items
        keys = {item.key: number for number, item in enumerate(items)}
        stays = keys.get(before.key) if before is not None and not at_top else None
        last = max(0, len(items) - 1)
        self.cursor = stays if stays is not None else 0 if at_top else min(self.cursor, last)
        self.virtual_size = Size(self.size.width, ROW * len(items))
        self._follow_cursor()
        self.refresh()
        if (self.current.key if self.current else "") != (before.key if before else ""):
            self.post_message(self.CursorMoved())
        self.post_message(self.InSight())

    def move(self, rows: int) -> None:
        self.move_to(self.cursor + rows)

    def move_to(self, row: int) -> None:
        row = max(0, min(row, len(self.items) - 1))
        if row != self.cursor:
            self.cursor = row
            self._follow_cursor()
            self.refresh()
            self.post_message(self.CursorMoved())

    @property
    def page(self) -> int:
        return max(1, self.size.height // ROW)

    def visible_items(self) -> list[SessionItem]:
        first = self.scroll_offset.y // ROW
        return self.items[first : first + self.page + 2]

    def _follow_cursor(self) -> None:
        first, height = self.cursor * ROW, max(ROW, self.size.height)
        top = self.scroll_offset.y
        if first < top:
            self.scroll_to(y=first, animate=False, immediate=True)
        elif first + ROW > top + height:
            self.scroll_to(y=first + ROW - height, animate=False, immediate=True)

    # --- rendering -------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        row, line = divmod(self.scroll_offset.y + y, ROW)
        segments = self._row(row, line, width) if row < len(self.items) else []
        strip = Strip(segments).crop_extend(0, width, self.rich_style)
        return strip.apply_style(self.rich_style)

    def _row(self, row: int, line: int, width: int) -> list[Segment]:
        item, chosen = self.items[row], row == self.cursor
        style = _CHOSEN if chosen else _TITLE
        room = max(1, width - len(_MARK))
        if line == 0:
            title = describe_title(item.session)
            if item.hit is not None:
                more = f" · and {len(item.hit.alike):,} like it" if item.hit.alike else ""
                title = f"⌕ {title}{more}"
            mark = Segment(_MARK if chosen else _SPACE, style)
            where = self._where(item, room)
            title = truncate(title, max(1, room - display_width(where)))
            gap = " " * (room - display_width(title) - display_width(where))
            return [mark, Segment(title, style), Segment(gap + where, _FACTS)]
        if item.hit is not None:
            return [Segment(_SPACE), *passage_segments(item.hit, room, read_palette(self))]
        details = self.details.get(item.version)
        facts = describe_facts(item.session, details, project=False)
        return [Segment(_SPACE), Segment(truncate(facts, room), _FACTS)]

    def _where(self, item: SessionItem, room: int) -> str:
        """The folder's own name; the whole path is in the preview."""
        if not self.shows_project:
            return ""
        name = one_line(Path(item.session.project).name) if item.session.project else "-"
        return f"  {truncate(name, max(1, room // FOLDER_SHARE))}"

    # --- events ----------------------------------------------------------------------------------

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        if round(old) != round(new):
            self.post_message(self.InSight())

    def on_resize(self, event: events.Resize) -> None:
        del event
        self.virtual_size = Size(self.size.width, ROW * len(self.items))
        self._follow_cursor()
        self.post_message(self.InSight())

    def on_click(self, event: events.Click) -> None:
        row = (self.scroll_offset.y + event.y) // ROW
        if row == self.cursor:
            self.post_message(self.Chosen())
        else:
            self.move_to(row)


def passage_segments(hit: SearchHit, width: int, palette: Palette) -> list[Segment]:
    """A passage in one line that begins shortly before its first match; matches stand out."""
    marks = sorted(mark for mark in hit.marks if 0 <= mark[0] < mark[1] <= len(hit.snippet))
    end = max(0, marks[0][0] - LEAD) if marks else 0
    segments = [Segment("…", palette.dim)] if end else []
    used = len(segments)
    for start, stop in [*marks, (len(hit.snippet), len(hit.snippet))]:
        if start < end:
            continue
        around, found = hit.snippet[end:start], hit.snippet[start:stop]
        for text, style in ((around, palette.dim), (found, palette.warned)):
            shown = truncate(_flat(text[:1_000]) if text else "", max(0, width - used))
            if shown and used < width:
                segments.append(Segment(shown, style))
                used += display_width(shown)
        end = stop
    return segments


def _flat(text: str) -> str:
    """In one line, with the spaces around it."""
    return sanitize(re.sub(r"\s+", " ", text)) if text.strip() else one_line(text) or " "
