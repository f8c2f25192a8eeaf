"""Every branch of the session, and the sessions that were forked from it: any point can be opened
again here, in this session or in a new one.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual.binding import BindingType

from recollect.display.display_text import display_width, truncate
from recollect.display.session_tree import (
    SessionTree,
    TreeRow,
    find_unfolded,
    read_tree,
    read_turn,
)
from recollect.terminal.history_screen import HistoryScreen
from recollect.terminal.palette import StyleName
from recollect.terminal.rewind_steps import current_session, fork_here, go_to_session
from recollect.terminal.row_list import Row
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.text_screen import TextScreen

ABOUT_WIDTH = 50


class TreeScreen(HistoryScreen[str | None]):
    HEADING = "Every branch of this session"
    KEYS = ("Enter go there", "f fork there", "v text", "→ ← unfold, fold", "a all", "Esc leave")
    BINDINGS: ClassVar[list[BindingType]] = [
        ("f", "fork", "Fork there"),
        ("v", "view", "Text"),
    ]

    def __init__(self, runner: SessionRunner) -> None:
        super().__init__(runner)
        self.tree_shown: SessionTree | None = None
        self.rows: list[TreeRow] = []  # branches are unfolded by their first entry

    # --- what is shown ---------------------------------------------------------------------------

    async def read_rows(self) -> None:
        """With the cursor where the session's head is."""
        session = current_session(self.runner, "show")
        self.tree_shown = await read_tree(self.runner.runtime.store, session.id)
        await self._show_rows(self.tree_shown.head_node)

    async def _show_rows(self, node: int) -> None:
        """With the cursor on this node."""
        if self.tree_shown is not None:
            rows = await asyncio.to_thread(self.tree_shown.rows, frozenset(self.unfolded))
            cursor = next((n for n, row in enumerate(rows) if row.node == node), 0)
            self.rows = rows
            self.list.show(len(rows), cursor)

    def make_row(self, number: int, width: int) -> Row:
        row, tree = self.rows[number], self.tree_shown
        assert tree is not None
        about = f"  {tree.about(row)}" if width >= ABOUT_WIDTH else ""
        if row.node == tree.head_node:
            about += " ← here" if about else " ←"
        room = max(4, width - display_width(about))
        text = truncate(tree.label(row, room), room)
        gap = " " * (width - display_width(text) - display_width(about))
        return [(text, self._style(row, tree)), (gap + about, "dim")]

    def _style(self, row: TreeRow, tree: SessionTree) -> StyleName:
        if row.session is not None:
            return "tool"
        return "strong" if tree.is_on_path(row.node) else "plain"

    # --- keys ------------------------------------------------------------------------------------

    @property
    def row(self) -> TreeRow | None:
        cursor = self.list.cursor
        return self.rows[cursor] if 0 <= cursor < len(self.rows) else None

    async def action_unfold(self) -> None:
        if (row := self.row) is not None and row.branch:
            self.unfolded.add(row.branch)
            await self._show_rows(row.node)

    async def action_fold(self) -> None:
        """The branch that begins here, or else the one that this is in."""
        row = find_unfolded(self.rows, self.list.cursor)
        if row is not None:
            self.unfolded.discard(row.branch)
            await self._show_rows(row.node)

    async def action_unfold_all(self) -> None:
        row, tree = self.row, self.tree_shown
        if row is not None and tree is not None:
            every = await asyncio.to_thread(tree.branch_keys)
            self.unfolded = set() if every <= self.unfolded else set(every)
            await self._show_rows(row.node)

    async def choose(self) -> str | None:
        """What to say then."""
        row, tree = self.row, self.tree_shown
        if row is None or tree is None:
            return None
        if row.session is not None:
            await go_to_session(self.runner, row.session.id)
            return "this is the session it was forked from" if row.is_parent else "this is the fork"
        where = f"the end of {'this branch' if row.folded else 'this turn'}: {tree.text(row)}"
        done = await self.go_there(tree.outline, tree.target(row), where)
        return done.notice if done is not None else None

    def action_fork(self) -> None:
        self.carry_out(self._fork)

    async def _fork(self) -> str | None:
        row, tree = self.row, self.tree_shown
        if row is None or tree is None or row.session is not None:
            return None
        return await fork_here(self.runner, tree.outline.session, tree.target(row))

    def action_view(self) -> None:
        self.carry_out(self._view)

    async def _view(self) -> None:
        """The whole text of a turn."""
        row, tree = self.row, self.tree_shown
        if row is not None and tree is not None and row.session is None:
            lines = await read_turn(self.runner.runtime.store, tree, row)
            await self.app.push_screen_wait(TextScreen(tree.text(row), "\n".join(lines)))
