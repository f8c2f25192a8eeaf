"""What the two screens have in common that go to other points of a session: rows that unfold, a
preview of what going there would change, and going there.

Nothing is changed before the user saw what would be.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen, ScreenResultType

from recollect.errors import RecollectError
from recollect.runtime.session_outline import SessionOutline
from recollect.runtime.session_rewind import session_roots
from recollect.terminal.rewind_preview_screen import RewindPreviewScreen
from recollect.terminal.rewind_steps import RewindDone, SessionMoved, go_back, look_ahead
from recollect.terminal.row_list import Row, RowList
from recollect.terminal.screen_lines import KeyLine, ProblemLine, TitleLine
from recollect.terminal.session_runner import SessionRunner


class HistoryScreen(Screen[ScreenResultType]):
    HEADING = ""
    KEYS: tuple[str, ...] = ()
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,q", "leave", "Leave"),
        ("right,l,space", "unfold", "Unfold"),
        ("left,h", "fold", "Fold"),
        ("a", "unfold_all", "Unfold all"),
    ]

    def __init__(self, runner: SessionRunner) -> None:
        super().__init__()
        self.runner = runner
        self.unfolded: set[str] = set()  # keys of what is shown in full
        self._is_changing = False  # files or the session, right now

    def compose(self) -> ComposeResult:
        yield TitleLine(self.HEADING)
        yield RowList(self.make_row)
        yield ProblemLine()
        yield KeyLine(*self.KEYS)

    def on_mount(self) -> None:
        self.list.focus()
        self.read()

    @property
    def list(self) -> RowList:
        return self.query_one(RowList)

    def make_row(self, number: int, width: int) -> Row:
        raise NotImplementedError

    # --- what is shown ---------------------------------------------------------------------------

    @work(exclusive=True, group="read")
    async def read(self) -> None:
        """Read the session anew."""
        try:
            await self.read_rows()
        except RecollectError as error:
            self.show_problem(str(error))

    async def read_rows(self) -> None:
        raise NotImplementedError

    def show_problem(self, text: str) -> None:
        self.query_one(ProblemLine).say(text)

    # --- keys ------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """No key interrupts a change that is being made."""
        return not self._is_changing and super().check_action(action, parameters) is not False

    def action_leave(self) -> None:
        self.dismiss(None)

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.carry_out(self.choose)

    async def choose(self) -> ScreenResultType | None:
        """Go to the row with the cursor; None if the user did not want to."""
        raise NotImplementedError

    @work(exclusive=True, group="look")
    async def carry_out(self, work: Callable[[], Awaitable[ScreenResultType | None]]) -> None:
        """Close with what it came to, or say what went wrong."""
        self.show_problem("")
        try:
            found = await work()
        except RecollectError as error:
            self.show_problem(str(error))
            if isinstance(error, SessionMoved):
                self.read()
            return
        finally:
            self._is_changing = False
        if found is not None:
            self.dismiss(found)

    async def go_there(
        self, outline: SessionOutline, to: str | None, where: str, prompt: str = ""
    ) -> RewindDone | None:
        """Show what going there would change, and do what the user chooses then."""
        preview = await look_ahead(self.runner, outline, to)
        root = session_roots(outline.session)[0]
        choice = await self.app.push_screen_wait(RewindPreviewScreen(where, preview, root))
        if choice is None:
            return None
        self._is_changing = True
        self.show_problem("going there …")
        return await go_back(self.runner, preview, choice, prompt)
