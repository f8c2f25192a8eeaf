"""`/resume`, `/import` and `/export`: the answers in text, and the picker that `/resume` opens."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.display.agent_sessions import ImportOffer, describe_offer, find_offers
from recollect.display.display_text import GAP, align_table, one_line, pluralize, sanitize
from recollect.display.import_outcomes import (
    ImportOutcome,
    collect_files,
    describe_import,
    describe_problems,
    label_session,
    try_import,
)
from recollect.display.session_list import (
    describe_facts,
    describe_title,
    list_rows,
    read_details,
)
from recollect.display.short_ids import find_by_id, shorten_session_id
from recollect.errors import BadInput, RecollectError
from recollect.store.contract import SessionInfo
from recollect.store.ids import LAST
from recollect.terminal.import_screen import ImportScreen
from recollect.terminal.resume_screen import ResumeScreen
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.terminal_events import NoticeGiven
from recollect.text import format_size
from recollect.transcripts.export_file import compose_export, write_export
from recollect.transcripts.find_session import refuse_trashed
from recollect.transcripts.format_table import EXPORT_FORMATS
from recollect.transcripts.import_result import ImportResult
from recollect.transcripts.installed_agents import AGENT_LOCATIONS

if TYPE_CHECKING:
    from recollect.terminal.terminal_app import TerminalApp

LISTED = 10
MAX_PROBLEMS = 20
ANNOUNCED = 10  # notices of an import, at most: one for each tenth of its bytes


async def show_resume(app: TerminalApp, arguments: str) -> None:
    """The picker; with an id, that session at once."""
    if not arguments:
        await app.push_screen_wait(ResumeScreen(app.runner))
    elif answer := await resume(app.runner, arguments):
        app.runner.notify(NoticeGiven(answer, "info"))


async def show_import(app: TerminalApp, arguments: str) -> None:
    """What other agents left on this machine; with a file or a folder, that at once."""
    if arguments:
        app.runner.notify(NoticeGiven(await import_files(app.runner, arguments), "info"))
        return
    await app.push_screen_wait(ImportScreen(app.runner, await _offers(app.runner)))


async def _offers(runner: SessionRunner) -> tuple[ImportOffer, ...]:
    offers = await find_offers(await runner.opened())
    if not offers:
        agents = " or ".join(location.agent for location in AGENT_LOCATIONS)
        raise BadInput(f"no sessions of {agents} were found here; /import FILE imports a file")
    return offers


async def resume(runner: SessionRunner, arguments: str) -> str:
    if arguments:
        return await _go_to(runner, arguments)
    runtime = await runner.opened()
    found: list[SessionInfo] = []
    async for chunk in list_rows(runtime.store, runtime.project):
        found += chunk
        if len(found) > LISTED:
            break
    if not found:
        return "no sessions of this project yet; `recollect sessions --all` lists the others"
    short = await runtime.store.short_session_ids(one.id for one in found[:LISTED])
    rows = []
    for one in found[:LISTED]:
        details = await read_details(runtime.store, one)
        facts = describe_facts(one, details, project=False)
        rows.append([short[one.id], describe_title(one), facts])
    lines = [GAP.join(row).rstrip() for row in align_table(rows, width=None, stretch=1)]
    more = ["/resume ID goes to one of them; any other session has to be named, too"]
    return "\n".join([*lines, *more])


async def _go_to(runner: SessionRunner, given: str) -> str:
    """Check that it can be gone to before the session that is open is left."""
    runtime = await runner.opened()
    if given == LAST:
        info = await runtime.find_writable_session(given)
    else:
        info = await refuse_trashed(runtime.store, await find_by_id(runtime.store, given))
    is_here = runner.session is not None and runner.session.id == info.id
    if is_here and runner.holder is None:
        return "this is the session you are in"
    runner.open(info.id)
    return ""


async def import_files(runner: SessionRunner, arguments: str) -> str:
    paths = tuple(Path(word).expanduser() for word in _words(arguments))
    if not paths:
        offers = await _offers(runner)
        folders = (one_line(shlex.quote(str(offer.folder))) for offer in offers)
        hints = (f"/import {folder} imports them" for folder in folders)
        return "\n".join(map("; ".join, zip(map(describe_offer, offers), hints, strict=True)))
    runtime, wanted = await runner.opened(), collect_files(paths)
    sizes = [path.stat().st_size if path.is_file() else 0 for path in wanted.files]
    lines, problems, done, said = list[str](), [*wanted.failures], 0, 0
    for path, size in zip(wanted.files, sizes, strict=True):
        outcome = await try_import(runtime, path)
        done += size
        lines += await _describe(runner, outcome)
        problems += describe_problems(outcome)
        if len(wanted.files) > 1 and done * ANNOUNCED // max(1, sum(sizes)) > said:
            said = done * ANNOUNCED // max(1, sum(sizes))
            share = f"{format_size(done)} of {format_size(sum(sizes))} imported"
            runner.notify(NoticeGiven(share, "info"))
    if not wanted.files and not problems:
        problems = ["there are no session files in there"]
    if wanted.others:
        problems.append(f"not recognised: {pluralize(len(wanted.others), 'file')}")
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [f"and {len(problems) - MAX_PROBLEMS:,} more problems"]
    return sanitize("\n".join([*lines, *problems]))


async def _describe(runner: SessionRunner, outcome: ImportOutcome) -> list[str]:
    if not isinstance(outcome.result, ImportResult):
        return []
    label = await label_session(runner.runtime, outcome.session)
    return list(describe_import(outcome.path, outcome.result, label))


async def export(runner: SessionRunner, arguments: str) -> str:
    """`[FILE|DIR] [--format FORMAT]`; another file is never replaced."""
    form, words = EXPORT_FORMATS[0], _words(arguments)
    for option in ("--format", "--to"):
        if option in words:
            at = words.index(option)
            form = "".join(words[at + 1 : at + 2])
            del words[at : at + 2]
    if form not in EXPORT_FORMATS:
        raise BadInput(f"no export format {form!r}; there are {', '.join(EXPORT_FORMATS)}")
    if len(words) > 1:
        raise BadInput("/export takes one file; quote a name that has spaces")
    if runner.session is None:
        raise RecollectError("no session yet to export")
    store = (await runner.opened()).store
    target, data = await compose_export(store, runner.session.id, form, (*words, ".")[0])
    short = await shorten_session_id(store, runner.session.id)
    if write_export(target, data, force=False):
        return f"session {short} is in {sanitize(str(target))}, {format_size(len(data))}"
    return f"{sanitize(str(target))} already has this content"


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise BadInput(f"{arguments!r}: {error}") from None
