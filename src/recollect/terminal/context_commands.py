"""What the model sees, as answers in text: /context, /pin, /drop, /restore, /recall, /search and
/compact. They work on the screen, as notices, and in the line-based program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from recollect.display.compaction_report import (
    CompactionOutcome,
    CompactionRemedies,
    CompactionWish,
    describe_change,
    describe_parts,
    explain_failure,
    run_compaction,
    start_compaction,
)
from recollect.display.context_loading import add_next, open_report
from recollect.display.context_report import ContextReport
from recollect.display.context_rows import ContextRow, context_rows
from recollect.display.display_text import (
    GAP,
    align_table,
    one_line,
    pluralize,
    sanitize,
    truncate,
)
from recollect.display.found_entries import SearchRow, find_entries
from recollect.display.short_ids import find_entry
from recollect.entries import Elide, Entry, Pin, Restore
from recollect.errors import BadInput, RecollectError
from recollect.session import Session
from recollect.terminal.context_header import header_lines
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.terminal_events import NoticeGiven

NEWEST, WIDTH = 20, 100
RECALLED = 20_000  # characters that /recall shows as a notice
EVERYWHERE = "--all"
REMEDIES = CompactionRemedies(
    "/context shows what the model sees",
    lambda _budget: "restore a pin in /context, or compact a longer part",
)


def opened_session(runner: SessionRunner) -> Session:
    if runner.session is None:
        raise RecollectError("there is no session yet; type a prompt first")
    return runner.session


# --- the context ---------------------------------------------------------------------------------


async def show_context(runner: SessionRunner, arguments: str) -> str:
    del arguments
    session, runtime = opened_session(runner), runner.runtime
    report = await open_report(runtime, session, runner.run_options.model)
    report = await add_next(runtime, report)
    rows = context_rows(report)
    short = await runtime.store.short_entry_ids(
        row.entry.id for row in rows[-NEWEST:] if row.entry is not None
    )
    return "\n".join([*header_lines(report, WIDTH, bar=False), *_table(report, rows, short)])


def _table(
    report: ContextReport, rows: tuple[ContextRow, ...], short: dict[str, str]
) -> Iterator[str]:
    hidden = rows[:-NEWEST]
    if hidden:
        tokens = sum(row.tokens for row in hidden)
        yield f"… {pluralize(len(hidden), 'row')} before these, {tokens:,} tokens"
    cells = [["ENTRY", "WHO", "TOKENS", "MARK", "WHAT THE MODEL SEES"]]
    for row in rows[-NEWEST:]:
        entry = short.get(row.entry.id, "") if row.entry is not None else ""
        tokens_shown = f"({row.hidden:,})" if row.kind == "left_out" else f"{row.tokens:,}"
        cells.append([entry, row.who, tokens_shown, row.marks, row.text])
    for line in align_table(cells, width=WIDTH, stretch=4, numbers=(2,)):
        yield GAP.join(line).rstrip()
    if not report.view.items:
        yield "the session has no messages"


# --- edits ---------------------------------------------------------------------------------------


async def named_entry(runner: SessionRunner, given: str) -> Entry:
    """The entry of this session that is named by its id, or by a beginning or an end of it."""
    session = opened_session(runner)
    if not given:
        raise BadInput("name an entry; /context lists them")
    store = runner.runtime.store
    found = await find_entry(store, given, await session.info())
    assert found is not None
    return (await store.entry(found, session=session.id))[1]


async def pin_entry(runner: SessionRunner, arguments: str) -> str:
    return await _edit(runner, arguments, "pin", lambda session, entry: session.pin(entry))


async def drop_entry(runner: SessionRunner, arguments: str) -> str:
    return await _edit(runner, arguments, "drop", lambda session, entry: session.drop(entry))


async def restore_entry(runner: SessionRunner, arguments: str) -> str:
    return await _edit(runner, arguments, "restore", lambda session, entry: session.restore(entry))


_DONE = {Elide: "left out", Pin: "pinned", Restore: "restored"}


async def _edit(
    runner: SessionRunner,
    given: str,
    verb: str,
    work: Callable[[Session, Entry], Awaitable[tuple[Entry, ...]]],
) -> str:
    entry = await named_entry(runner, given)
    before = 0

    async def edit(session: Session) -> tuple[Entry, ...]:
        nonlocal before
        before = session.view().tokens
        return await work(session, entry)

    made = await runner.edit(edit, f"{verb} an entry")
    after = opened_session(runner).view().tokens
    short = await runner.runtime.store.short_entry_ids([entry.id, *(one.id for one in made)])
    done = _DONE.get(type(made[0].body), verb)
    seen = f"the model now sees {after:,} tokens in messages, previously {before:,}"
    undo = "" if verb == "restore" else f"; /restore {short[made[0].id]} undoes it"
    return f"{done} {short[entry.id]}: {seen}{undo}"


# --- looking back --------------------------------------------------------------------------------


async def recall_entry(runner: SessionRunner, arguments: str) -> str:
    entry = await named_entry(runner, arguments)
    text = sanitize(await opened_session(runner).recall(entry))
    if len(text) <= RECALLED:
        return text or "this entry has no text"
    return f"{text[:RECALLED]}\n… {len(text) - RECALLED:,} more characters"


async def search_entries(runner: SessionRunner, arguments: str) -> str:
    found = await search(runner, arguments)
    if not found:
        return nothing_found(arguments)
    return "\n".join(line for one in found for line in _hit_lines(one))


async def search(runner: SessionRunner, arguments: str) -> tuple[SearchRow, ...]:
    """In this session, or with `--all` in every session of the project."""
    words, everywhere = parse_search(arguments)
    runtime = await runner.opened()
    if everywhere:
        return await find_entries(runtime.store, words, project=runtime.project)
    return await find_entries(runtime.store, words, session=opened_session(runner).id)


def parse_search(arguments: str) -> tuple[str, bool]:
    words = arguments.split()
    everywhere = EVERYWHERE in words
    rest = " ".join(word for word in words if word != EVERYWHERE)
    if not rest:
        raise BadInput(f"name the words to search for; with {EVERYWHERE} in every session")
    return rest, everywhere


def nothing_found(arguments: str) -> str:
    words, everywhere = parse_search(arguments)
    where = "in this project" if everywhere else f"in this session; {EVERYWHERE} searches all"
    return f"nothing found for {truncate(one_line(words), 80)!r} {where}"


def _hit_lines(found: SearchRow) -> Iterator[str]:
    yield f"{found.short}  {found.about}"
    yield f"    {truncate(found.passage, WIDTH - 4)}"


# --- compaction ----------------------------------------------------------------------------------


async def compact_session(runner: SessionRunner, arguments: str) -> str:
    session = opened_session(runner)
    if arguments == "undo":
        return await undo_compaction(runner)
    runtime = runner.runtime
    named = runner.run_options.model or None
    wish = CompactionWish(session.id, arguments, named)

    def tell(number: int, count: int) -> None:
        part = f", part {number} of {count}" if count > 1 else ""
        runner.notify(NoticeGiven(f"a snapshot is being written{part}", "info"))

    async def compact(_: Session) -> CompactionOutcome:
        start = await start_compaction(runtime, wish)
        return await run_compaction(runtime, wish, start, tell)

    outcome = await runner.edit(compact, "compact")
    if not outcome.proposal.succeeded:
        raise RecollectError(explain_failure(outcome, REMEDIES))
    return compacted_text(outcome)


def compacted_text(outcome: CompactionOutcome) -> str:
    lines = [f"compacted: {describe_change(outcome.proposal)}"]
    lines += [f"  {label:<8}  {text}".rstrip() for label, text in describe_parts(outcome)]
    return "\n".join([*lines, "/compact undo brings everything back"])


async def undo_compaction(runner: SessionRunner) -> str:
    before = opened_session(runner).view().tokens
    await runner.edit(lambda session: session.undo_compaction(), "undo a compaction")
    after = opened_session(runner).view().tokens
    seen = f"{after:,} tokens in messages again, previously {before:,}"
    return f"undid the compaction: the model sees {seen}"
