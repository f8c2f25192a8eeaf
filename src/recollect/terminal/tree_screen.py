"""Every branch of the session, and the sessions that were forked from it: any point can be opened
again here, in this session or in a new one.
"""

from __future__ import annotations

import asyncio

from rich.style import Style
from textual import work
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from recollect.display.display_text import display_width, sanitize, truncate
from recollect.display.session_tree import (
    SessionTree,
    TreeRow,
    find_unfolded,
    read_tree,
    read_turn,
)
from recollect.errors import RecollectError
from recollect.runtime.session_rewind import session_roots
from recollect.terminal.rewind_preview_screen import RewindPreviewScreen
from recollect.terminal.rewind_steps import (
    SessionMoved,
    current_session,
    fork_here,
    go_back,
    go_to_session,
    look_ahead,
)
from recollect.terminal.row_browser import ROW_STYLES, RowBrowser, RowPieces, WrappedLines
from recollect.terminal.session_runner import SessionRunner

KEYS = "Enter go there · f fork there · v text · → unfold · a all · Esc leave"
ABOUT_WIDTH = 50


class TreeScreen(Screen[str | None]):
    DEFAULT_CSS = """
    TreeScreen .line { height: auto; padding: 0 1; }
    TreeScreen #title { text-style: bold; height: 1; }
    TreeScreen #keys { color: $text-muted; max-height: 2; }
    TreeScreen #problem { color: $warning; max-height: 3; display: none; }
    """
    BINDINGS = [
        ("escape,q", "leave", "Leave"),
        ("enter", "go", "Go there"),
        ("f", "fork", "Fork there"),
        ("v", "view", "Text"),
        ("right,l,space", "unfold", "Unfold"),
        ("left,h", "fold", "Fold"),
        ("a", "unfold_all", "Unfold all"),
    ]

    def __init__(self, runner: SessionRunner) -> None:
        super().__init__()
        self.runner = runner
        self.tree_shown: SessionTree | None = None
        self.rows: list[TreeRow] = []
        self._unfolded: set[str] = set()  # branches, by their first entry
        self._is_changing = False  # files or the session, right now

    def compose(self) -> ComposeResult:
        yield Static("Every branch of this session", id="title", classes="line", markup=False)
        yield RowBrowser()
        yield Static("", id="problem", classes="line", markup=False)
        yield Static(KEYS, id="keys", classes="line", markup=False)

    def on_mount(self) -> None:
        self.query_one(RowBrowser).focus()
        self.read()

    # --- what is shown ---------------------------------------------------------------------------

    @work(exclusive=True, group="read")
    async def read(self) -> None:
        """Read the session anew, with the cursor where its head is."""
        try:
            session = current_session(self.runner, "show")
            self.tree_shown = await read_tree(self.runner.runtime.store, session.id)
        except RecollectError as error:
            self.show_problem(str(error))
            return
        await self._show_rows(self.tree_shown.head_node)

    def show_problem(self, text: str) -> None:
        line = self.query_one("#problem", Static)
        line.update(sanitize(text))
        line.display = bool(text)

    async def _show_rows(self, node: int) -> None:
        """With the cursor on this node."""
        if self.tree_shown is not None:
            rows = await asyncio.to_thread(self.tree_shown.rows, frozenset(self._unfolded))
            cursor = next((n for n, row in enumerate(rows) if row.node == node), 0)
            self.rows = rows
            self.query_one(RowBrowser).show(len(rows), self._row, cursor)

    def _row(self, number: int, width: int) -> RowPieces:
        row, tree = self.rows[number], self.tree_shown
        assert tree is not None
        about = f"  {tree.about(row)}" if width >= ABOUT_WIDTH else ""
        if row.node == tree.head_node:
            about += " ← here" if about else " ←"
        room = max(4, width - display_width(about))
        text = truncate(tree.label(row, room), room)
        gap = " " * (width - display_width(text) - display_width(about))
        return [(text, self._style(row, tree)), (gap + about, ROW_STYLES.dim)]

    def _style(self, row: TreeRow, tree: SessionTree) -> Style:
        if row.session is not None:
            return ROW_STYLES.tool
        return ROW_STYLES.strong if tree.is_on_path(row.node) else Style()

    # --- keys ------------------------------------------------------------------------------------

    @property
    def row(self) -> TreeRow | None:
        cursor = self.query_one(RowBrowser).cursor
        return self.rows[cursor] if 0 <= cursor < len(self.rows) else None

    async def action_unfold(self) -> None:
        if (row := self.row) is not None and row.branch:
            self._unfolded.add(row.branch)
            await self._show_rows(row.node)

    async def action_fold(self) -> None:
        """The branch that begins here, or else the one that this is in."""
        row = find_unfolded(self.rows, self.query_one(RowBrowser).cursor)
        if row is not None:
            self._unfolded.discard(row.branch)
            await self._show_rows(row.node)

    async def action_unfold_all(self) -> None:
        row, tree = self.row, self.tree_shown
        if row is not None and tree is not None:
            every = await asyncio.to_thread(tree.branch_keys)
            self._unfolded = set() if every <= self._unfolded else set(every)
            await self._show_rows(row.node)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """No key interrupts a change that is being made."""
        return not self._is_changing and super().check_action(action, parameters) is not False

    def action_leave(self) -> None:
        self.dismiss(None)

    @work(exclusive=True, group="look")
    async def action_go(self) -> None:
        row, tree = self.row, self.tree_shown
        if row is None or tree is None:
            return
        self.show_problem("")
        try:
            notice = await self._open(row, tree)
        except RecollectError as error:
            self.show_problem(str(error))
            if isinstance(error, SessionMoved):
                self.read()
            return
        finally:
            self._is_changing = False
        if notice is not None:
            self.dismiss(notice)

    async def _open(self, row: TreeRow, tree: SessionTree) -> str | None:
        """Go there; what to say then, or None if the user did not want to."""
        if row.session is not None:
            await go_to_session(self.runner, row.session.id)
            return "this is the session it was forked from" if row.is_parent else "this is the fork"
        preview = await look_ahead(self.runner, tree.outline, tree.target(row))
        root = session_roots(tree.outline.session)[0]
        where = f"the end of {'this branch' if row.folded else 'this turn'}: {tree.text(row)}"
        choice = await self.app.push_screen_wait(RewindPreviewScreen(where, preview, root))
        if choice is None:
            return None
        self._is_changing = True
        self.show_problem("going there …")
        return (await go_back(self.runner, preview, choice)).notice

    @work(exclusive=True, group="look")
    async def action_fork(self) -> None:
        row, tree = self.row, self.tree_shown
        if row is None or tree is None or row.session is not None:
            return
        try:
            notice = await fork_here(self.runner, tree.outline.session, tree.target(row))
        except RecollectError as error:
            self.show_problem(str(error))
            return
        self.dismiss(notice)

    @work(exclusive=True, group="look")
    async def action_view(self) -> None:
        row, tree = self.row, self.tree_shown
        if row is None or tree is None or row.session is not None:
            return
        try:
            lines = await read_turn(self.runner.runtime.store, tree, row)
        except RecollectError as error:
            self.show_problem(str(error))
            return
        await self.app.push_screen_wait(TurnTextScreen([(line, Style()) for line in lines]))


class TurnTextScreen(Screen[None]):
    """The whole text of a turn."""

    DEFAULT_CSS = "TurnTextScreen Static { height: 1; padding: 0 1; color: $text-muted; }"
    BINDINGS = [("escape,q,v", "leave", "Back")]

    def __init__(self, lines: RowPieces) -> None:
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        yield WrappedLines(self._lines)
        yield Static("↑ ↓ scroll · Esc back", markup=False)

    def on_mount(self) -> None:
        self.query_one(WrappedLines).focus()

    def action_leave(self) -> None:
        self.dismiss()
