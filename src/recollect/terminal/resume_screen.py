"""Choosing a session to resume: by title, by what was said in it, of this project or of all.

The list is there at once, however many sessions there are; what has to be read of a session is read
for the rows in sight, and dropped when the cursor moves on. Nothing is deleted: the trash is a list
to restore from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual import events, on, work
from textual.binding import Binding, BindingType
from textual.widgets import Input

from recollect.display.agent_sessions import ImportOffer, describe_offers, find_offers
from recollect.display.display_text import one_line, pluralize
from recollect.display.home_paths import abbreviate_home
from recollect.display.session_list import (
    clip_for_preview,
    describe_facts,
    describe_title,
    list_rows,
    matches_title,
    read_around,
    read_details,
    read_tail,
    search_sessions,
)
from recollect.errors import RecollectError
from recollect.runtime.session_claims import find_holder
from recollect.store.contract import Project, SearchHit, SessionInfo, Store
from recollect.terminal.found_passage import passage_of
from recollect.terminal.import_screen import ImportScreen
from recollect.terminal.picker_layout import PickerLayout
from recollect.terminal.session_list_view import SessionItem, SessionListView
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.watching import describe_holder

PREVIEW_PAUSE, SEARCH_PAUSE = 0.06, 0.2  # seconds without a key before anything is read
_KEYS = (
    *("Enter open", "Tab projects", "^E rename", "^X trash", "^T see the trash", "^O import"),
    "Esc close",
)
_TRASH_KEYS = ("Enter restore", "Tab projects", "^T back to the sessions", "Esc close")


class ResumeScreen(PickerLayout):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close"),
        Binding("tab", "projects", "Projects", priority=True),
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("enter", "choose", show=False),
        Binding("ctrl+e", "rename", "Rename", priority=True),
        Binding("ctrl+x", "trash", "Trash", priority=True),
        Binding("ctrl+t", "trash_list", "The trash", priority=True),
        Binding("ctrl+z", "undo", "Undo", priority=True),
        Binding("ctrl+o", "import", "Import", priority=True),
    ]

    def __init__(self, runner: SessionRunner) -> None:
        super().__init__()
        self._runner = runner
        self._everywhere = self._in_trash = False
        self._rows: list[SessionInfo] = []
        self._own: set[str] = set()  # ids of this project's sessions
        self._hits: tuple[SearchHit, ...] = ()
        self._offers: tuple[ImportOffer, ...] = ()
        self._trashed: SessionInfo | None = None  # what Ctrl-Z brings back
        self._renaming: SessionInfo | None = None
        self._project: Project | None = None
        self._loaded = False

    def on_mount(self) -> None:
        self.rows.focus()
        self._show_place()
        self._load()

    # --- what is listed --------------------------------------------------------------------------

    @work(exclusive=True, group="rows")
    async def _load(self) -> None:
        """The sessions, portion by portion: the newest are shown before the last are looked at."""
        try:
            runtime = await self._runner.opened()
            store, self._loaded = runtime.store, False
            self._project = await asyncio.to_thread(lambda: runtime.project)
            wanted, found = None if self._everywhere else self._project, list[SessionInfo]()
            async for chunk in list_rows(store, wanted, trashed=self._in_trash):
                found += chunk
                if not self._rows:  # a screenful; the rest comes as a whole
                    self._rows = [*found]
                    self._show_rows()
            if self._everywhere:
                own = await store.sessions(project=self._project, trashed=self._in_trash, owner="")
                self._own |= {session.id for session in own}
            self._rows, self._loaded = found, True
            self._show_rows()
            if not self._everywhere:
                self._own |= {session.id for session in found}
                self._look_for_offers()
        except RecollectError as error:
            self.line.tell(str(error))

    @work(exclusive=True, group="search")
    async def _search(self, words: str) -> None:
        self._hits = ()
        self._show_rows(at_top=True)
        if not words or self._in_trash:
            return
        await asyncio.sleep(SEARCH_PAUSE)
        try:
            store = (await self._runner.opened()).store
            wanted = None if self._everywhere else self._project
            self._hits = await search_sessions(store, words, wanted)
        except RecollectError as error:
            self.line.tell(str(error))
        self._show_rows()

    def _show_rows(self, *, at_top: bool = False) -> None:
        words = self.words
        everywhere = self._everywhere
        found = [
            SessionItem(one) for one in self._rows if matches_title(one, words, project=everywhere)
        ]
        known = {session.id for session in self._rows}
        hits = [SessionItem(hit.session, hit) for hit in self._hits if hit.session.id in known]
        self.rows.show([*found, *hits], at_top=at_top)
        self._show_place()

    def _show_place(self) -> None:
        what = pluralize(len(self._rows), "session") if self._rows else "no sessions"
        if not self._loaded:
            what = "sessions"
        where = "of every project · Tab: this project"
        if not self._everywhere:
            path = one_line(abbreviate_home(self._project.path)) if self._project else "…"
            where = f"of {path} · Tab: every project"
        trash = " in the trash" if self._in_trash else ""
        self.place.update(f"{what}{trash} {where}")
        self.keys.show(*(_TRASH_KEYS if self._in_trash else _KEYS))

    @work(exclusive=True, group="offers")
    async def _look_for_offers(self) -> None:
        try:
            self._offers = await find_offers(await self._runner.opened())
        except (
            RecollectError,
            OSError,
            RuntimeError,
        ) as error:  # no home, a damaged source
            self.line.tell(str(error))
        text = describe_offers(self._offers)
        self.offer.update(f"{text}: ^O imports" if text else "")

    # --- what is read of sessions ----------------------------------------------------------------

    @on(SessionListView.InSight)
    def _read_visible(self) -> None:
        self._read_details()

    @work(exclusive=True, group="details")
    async def _read_details(self) -> None:
        await asyncio.sleep(PREVIEW_PAUSE)
        try:
            store = (await self._runner.opened()).store
            for item in self.rows.visible_items():
                if item.version not in self.rows.details:
                    self.rows.details[item.version] = await read_details(store, item.session)
                    self.rows.refresh()
            self._show_about(self.rows.current)
        except RecollectError as error:
            self.line.tell(str(error))

    @on(SessionListView.CursorMoved)
    def _preview_current(self) -> None:
        self._show_about(self.rows.current)
        self._preview(self.rows.current)

    @work(exclusive=True, group="preview")
    async def _preview(self, item: SessionItem | None) -> None:
        """The newest entries of a session, or those of a passage; dropped if the cursor moves."""
        transcript = self.preview.transcript
        await asyncio.sleep(PREVIEW_PAUSE)
        transcript.clear()
        if item is None:
            return
        try:
            store = (await self._runner.opened()).store
            if item.hit is None:
                entries = await read_tail(store, item.session)
            else:
                entries = await read_around(store, item.hit)
            transcript.add_entries(clip_for_preview(entries))
        except RecollectError as error:
            transcript.add_notice(str(error), "error")

    def _show_about(self, item: SessionItem | None) -> None:
        text = ""
        if item is not None:
            details = self.rows.details.get(item.version)
            facts = describe_facts(item.session, details, project=True)
            text = f"{describe_title(item.session)}\n{facts}"
        self.about.update(text)

    # --- keys ------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a question or a title is open, its own keys hold."""
        del parameters
        busy = self.line.is_asking or self.title_input.has_focus
        return not busy or action == "close"

    def on_key(self, event: events.Key) -> None:
        """Typing in the list finds."""
        if not self.rows.has_focus:
            return
        if event.character is not None and event.is_printable:
            field = self.find
            field.focus()
            if event.character != "/":
                field.insert_text_at_cursor(event.character)
        else:
            return
        event.stop().prevent_default()

    @on(Input.Changed, "#filter")
    def _filter(self) -> None:
        if not self.words and not self.line.is_asking:
            self.rows.focus()
        self._search(self.words)

    @on(Input.Submitted, "#filter")
    @on(SessionListView.Chosen)
    def _choose(self) -> None:
        self.action_choose()

    def action_move(self, rows: int) -> None:
        self.rows.move(rows)

    def action_page(self, pages: int) -> None:
        self.rows.move(pages * self.rows.page)

    def action_close(self) -> None:
        if self.title_input.has_focus:
            self._end_rename()
        else:
            self.dismiss()

    def action_projects(self) -> None:
        self._everywhere = not self._everywhere
        self.rows.shows_project = self._everywhere
        self._start_over()

    def action_trash_list(self) -> None:
        self._in_trash = not self._in_trash
        self._start_over()

    def _start_over(self) -> None:
        self._rows, self._hits, self._loaded = [], (), False
        self._show_rows(at_top=True)
        self._load()
        if self.words:
            self._search(self.words)

    @work
    async def action_import(self) -> None:
        """Also of what was imported before: it may have more by now."""
        if not self._offers:
            self.line.tell("no sessions of other agents were found on this machine")
            return
        await self.app.push_screen_wait(ImportScreen(self._runner, self._offers))
        self._load()
        self._look_for_offers()

    # --- what is done to a session ---------------------------------------------------------------

    def action_choose(self) -> None:
        item = self.rows.current
        if item is None:
            return
        session = item.session
        if self._in_trash:
            self._restore(session)
        elif not self._everywhere or session.id in self._own or session.project is None:
            self._open(item)
        else:
            here = abbreviate_home(str(self._runner.runtime.folders.cwd))
            self._ask(
                f"it is of {one_line(abbreviate_home(session.project))}; tools will work here, in "
                f"{one_line(here)} · Enter opens it, Esc does not",
                partial(self._open, item),
            )

    def _open(self, item: SessionItem) -> None:
        session = item.session
        current = self._runner.session
        is_here = current is not None and current.id == session.id
        try:
            if item.hit is not None:
                self._runner.open_passage(passage_of(item.hit))
            elif not is_here or self._runner.holder is not None:
                self._runner.open(session.id)
        except RecollectError as error:
            self.line.tell(str(error))
            return
        self.dismiss()

    def action_trash(self) -> None:
        item = self.rows.current
        if item is None or self._in_trash:
            return
        session, current = item.session, self._runner.session
        if current is not None and current.id == session.id:
            self.line.tell("this is the session you are in; open another one first")
            return
        title, store = describe_title(session), self._runner.runtime.store
        holder = find_holder(store.address, session.id)
        elsewhere = f"{describe_holder(holder)}; " if holder is not None else ""
        self._ask(
            f"{elsewhere}put it into the trash? Enter: yes · Esc: no · {title}",
            partial(self._put_into_trash, session),
        )

    def action_undo(self) -> None:
        if self._trashed is not None:
            self._restore(self._trashed)

    def _put_into_trash(self, session: SessionInfo) -> None:
        self._change(session, "trash")

    def _restore(self, session: SessionInfo) -> None:
        self._change(session, "restore")

    @work(group="change")
    async def _change(self, session: SessionInfo, what: str) -> None:
        store, title = self._runner.runtime.store, describe_title(session)
        try:
            if what == "trash":
                self._trashed = await store.trash(session.id)
                self.line.tell(f"in the trash: {title!r} · Ctrl-Z brings it back")
            else:
                await store.restore(session.id)
                self._trashed = None
                self.line.tell(f"back from the trash: {title!r}")
        except RecollectError as error:
            self.line.tell(str(error))
        self._load()

    def _ask(self, question: str, yes: Callable[[], None]) -> None:
        back = self.focused
        self.line.ask(question, yes, lambda: self.set_focus(back))

    def action_rename(self) -> None:
        item = self.rows.current
        if item is None or self._in_trash:
            return
        holder = find_holder(self._runner.runtime.store.address, item.session.id)
        current = self._runner.session
        if holder is not None and (current is None or current.id != item.session.id):
            self.line.tell(f"{describe_holder(holder)}; rename it there")
            return
        field = self.title_input
        self._renaming, field.value = item.session, item.session.title
        field.display = True
        field.focus()

    @on(Input.Submitted, "#title")
    def _rename_to(self, event: Input.Submitted) -> None:
        session, title = self._renaming, event.value.strip()
        self._end_rename()
        if session is not None and title != session.title:
            self._rename(session.id, title)

    @work(group="change")
    async def _rename(self, session: str, title: str) -> None:
        """The title is an entry: in the session of this terminal it waits for the prompt's end."""
        store: Store = self._runner.runtime.store
        current = self._runner.session
        try:
            if current is not None and current.id == session:
                await self._runner.edit(lambda one: store.rename(one.id, title), "rename it")
            else:
                await store.rename(session, title)
        except RecollectError as error:
            self.line.tell(str(error))
        self._load()

    def _end_rename(self) -> None:
        self.title_input.display = False
        self.rows.focus()
