"""Importing the sessions of other agents on this machine: where they are, how many, how large.

An import copies; it can be stopped at any moment, and the next one goes on from there and adds only
what is new. Files of this project come first. What could not be read is listed.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import Worker

from recollect.display.agent_sessions import ImportOffer, describe_offer
from recollect.display.display_text import one_line, pluralize, sanitize
from recollect.display.import_outcomes import ImportOutcome, describe_problems, try_import
from recollect.errors import RecollectError
from recollect.terminal.screen_lines import KeyLine, TitleLine
from recollect.terminal.session_runner import SessionRunner
from recollect.text import format_size
from recollect.transcripts.import_result import ImportResult

MAX_PROBLEMS = 200  # lines that are listed
BAR = 20
_ALL = "all"


class ImportTotals:
    """What an import of several files has come to."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def add(self, outcome: ImportOutcome) -> None:
        if isinstance(outcome.result, ImportResult):
            parts = (outcome.result, *outcome.result.subagents)
            added = sum(part.added for part in parts)
            self.counts["entries"] += added
            self.counts["changed" if added else "known"] += 1
        else:
            self.counts["failed"] += 1
        self.problems += describe_problems(outcome)

    def describe(self) -> str:
        counts = self.counts
        parts = [
            f"{pluralize(counts['changed'], 'session')} imported",
            f"{pluralize(counts['entries'], 'entry')} added" if counts["entries"] else "",
            f"{counts['known']:,} had nothing new" if counts["known"] else "",
            f"{counts['failed']:,} could not be read" if counts["failed"] else "",
        ]
        return ", ".join(filter(None, parts))


def progress_line(done: int, total: int, name: str) -> str:
    share = min(1.0, done / max(1, total))
    bar = "█" * round(BAR * share) + "░" * (BAR - round(BAR * share))
    return f"{bar} {format_size(done)} of {format_size(total)} · {one_line(name)}"


class ImportScreen(Screen[None]):
    DEFAULT_CSS = """
    ImportScreen OptionList { height: auto; max-height: 8; border: none; }
    ImportScreen #progress { height: auto; padding: 0 1; }
    ImportScreen #problems { height: auto; padding: 0 1; color: $text-muted; }
    ImportScreen VerticalScroll { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop_or_close", "Stop, or close", priority=True),
        Binding("q", "stop_or_close", show=False),
    ]

    def __init__(self, runner: SessionRunner, offers: tuple[ImportOffer, ...]) -> None:
        super().__init__()
        self._runner, self._offers = runner, offers
        self._importing: Worker[None] | None = None
        # held, not looked up: an import may end after the screen was closed
        self._progress = Static("", id="progress", markup=False)
        self._problems = Static("", id="problems", markup=False)

    def compose(self) -> ComposeResult:
        heading = "Sessions of other agents on this machine; importing copies them"
        yield TitleLine(heading)
        yield OptionList(*self._options(), markup=False, compact=True)
        yield self._progress
        with VerticalScroll(can_focus=True):
            yield self._problems
        yield KeyLine("Enter import", "Esc close, or stop while it imports")

    @property
    def is_importing(self) -> bool:
        return self._importing is not None

    def _options(self) -> list[Option]:
        options = [Option(describe_offer(one), str(n)) for n, one in enumerate(self._offers)]
        if len(options) > 1:
            options.append(Option("all of them", _ALL))
        return options

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self.is_importing:
            return
        chosen = event.option_id
        offers = self._offers if chosen == _ALL else (self._offers[int(chosen or 0)],)
        self._importing = self._import(offers)

    def action_stop_or_close(self) -> None:
        if self._importing is not None:
            self._importing.cancel()
        else:
            self.dismiss()

    @work
    async def _import(self, offers: tuple[ImportOffer, ...]) -> None:
        totals = ImportTotals()
        end = "stopped; importing again goes on from there: "
        try:
            await self._import_files(offers, totals)
            end = ""
        except RecollectError as error:  # of the store: nothing more can be written
            end = f"{error}; "
        finally:
            self._importing = None
            self._progress.update(sanitize(f"{end}{totals.describe()}"))

    async def _import_files(self, offers: tuple[ImportOffer, ...], totals: ImportTotals) -> None:
        runtime = await self._runner.opened()
        files = [file for offer in offers for file in offer.files]
        files.sort(key=lambda file: not file.is_own)
        total, before = sum(file.size for file in files), 0
        for number, file in enumerate(files, 1):
            name = f"{number:,}/{len(files):,} {file.path.name}"

            def show(
                done: int, of: int, before: int = before, size: int = file.size, name: str = name
            ) -> None:
                line = progress_line(before + size * done // max(1, of), total, name)
                self._progress.update(line)

            totals.add(await try_import(runtime, file.path, show))
            before += file.size
            self._show_problems(totals.problems)

    def _show_problems(self, problems: list[str]) -> None:
        shown = [one_line(problem) for problem in problems[:MAX_PROBLEMS]]
        if len(problems) > MAX_PROBLEMS:
            shown.append(f"and {len(problems) - MAX_PROBLEMS:,} more")
        self._problems.update("\n".join(shown))
