"""`recollect demo`: the agent answers a question in a temporary folder, and the command shows what
the model saw; `--tour` shows the log instead, step by step. All output is real.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import tempfile
import textwrap
from collections.abc import AsyncIterator
from contextlib import chdir, nullcontext
from pathlib import Path

import click

from recollect.cli.console import paint, terminal_width
from recollect.cli.context_report import ContextReport, load_full_report
from recollect.cli.context_text import context_lines
from recollect.cli.display_text import one_line, pad, sanitize
from recollect.cli.entry_display import role_of, summarize
from recollect.cli.headless import HeadlessOptions, run_headless
from recollect.cli.options import command
from recollect.cli.store_access import use_store
from recollect.entries import Entry
from recollect.errors import AlreadyExists, HeadMoved
from recollect.runtime.prompt_run import RunOptions
from recollect.runtime.runtime import LAST
from recollect.store.contract import SearchQuery
from recollect.store.recovery.store_doctor import examine_store
from recollect.store.sqlite import SqliteStore, open_store
from recollect.testing import model, user
from recollect.transcripts.session_export import export_session
from recollect.transcripts.session_import import import_file

STORE = "recollect.db"
QUESTION = "What is a write-ahead log? Answer in one sentence."
FILES = {
    "README.md": "# limiter\n\nLets a number of requests through in a minute.\n",
    "limiter.py": "def refill(rate: int) -> int:\n    return rate\n",
}
TourStep = tuple[str, list[str]]  # a title, and lines made from the step's results


@command(
    ("recollect demo", "one real exchange, in a temporary folder"),
    ("recollect demo -m gpt-5-mini", "with another model"),
    ("recollect demo --tour", "the log: append, fork, rewind, search, export"),
    ("recollect demo --tour --keep tour", "keep the store and explore it"),
)
@click.option("--tour", is_flag=True, help="Show what the log can do instead.")
@click.option("-m", "--model", metavar="NAME", default="", help="The model to use.")
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Create the store here and keep it.",
)
def demo(*, tour: bool, model: str, keep: Path | None) -> int:
    """Let the agent answer a question, and show what the model saw.

    With no API key, a small local model answers. On a terminal you can continue the conversation.
    """
    if keep is not None and (keep / STORE).exists():
        raise AlreadyExists("a store", str(keep / STORE))
    with (
        tempfile.TemporaryDirectory(prefix="recollect-demo-")
        if keep is None
        else nullcontext(str(keep))
    ) as folder:
        if tour:
            code = asyncio.run(_tour(Path(folder)))
        else:
            code = _converse(Path(folder).resolve(), model, keep=keep is not None)
    if keep is not None:
        click.echo(f"Explore it: recollect sessions --all --store {keep / STORE}")
    elif tour:
        click.echo("Next: recollect demo --keep DIR, recollect import FILE, recollect --help")
    elif not code:
        click.echo('Next: recollect -p "…" in a folder of yours, recollect demo --tour')
    return code


# --- the agent ---------------------------------------------------------------------------------


def _converse(folder: Path, model: str, *, keep: bool) -> int:
    """One exchange and what the model saw; on a terminal as many as the user likes."""
    project, store = folder / "project", folder / STORE
    project.mkdir(mode=0o700, parents=True)
    for name, text in FILES.items():
        (project / name).write_text(text, encoding="utf-8")
    with chdir(project):
        prompt, latest = QUESTION, False
        while prompt:
            click.echo(f"> {prompt}")
            sys.stdout.flush()
            session = LAST if latest else None
            options = HeadlessOptions(prompt, session, run=RunOptions(model), store_persists=keep)
            if code := run_headless(options, store):
                return code
            _show_context(store)
            prompt, latest = _next_prompt(), True
    return 0


def _next_prompt() -> str:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return ""
    try:
        return input("Type another prompt, or press Enter to end: ").strip()
    except EOFError:
        return ""


def _show_context(store: Path) -> None:
    async def work(opened: SqliteStore) -> ContextReport:
        newest, *_ = await opened.sessions()
        return await load_full_report(opened, newest.id)

    click.echo("\nWhat the model saw, and how much of its window that took:\n")
    for line in context_lines(use_store(store, work), None, None):
        click.echo(line)
    click.echo()


# --- the log -----------------------------------------------------------------------------------


async def _tour(folder: Path) -> int:
    click.echo("A session is an append-only log of immutable entries. With real output:\n")
    number = 0
    async with open_store(folder / STORE) as store:
        for part in (_tour_log, _tour_transfer):
            sources = iter(_step_sources(inspect.getsource(part)))
            async for title, lines in part(store, folder):
                number += 1
                _print_step(f"{number}. {title}", next(sources), lines)
    return 0


def _step_sources(source: str) -> list[str]:
    """The code of each step, exactly as it ran: steps end with a yield and a blank line."""
    _signature, body = source.split(":\n", 1)
    steps = textwrap.dedent(body).split("\n\n")
    return [step.partition("\nyield ")[0] for step in steps]


def _print_step(title: str, code: str, lines: list[str]) -> None:
    click.echo(paint.bold(title))
    for line in code.splitlines():
        click.echo("   " + paint(line, fg="cyan"))
    for line in lines:
        first, *rest = textwrap.wrap(sanitize(line), (terminal_width() or 100) - 5) or [""]
        click.echo("   " + paint.dim("→ ") + first)
        for more in rest:
            click.echo("     " + more)
    click.echo()


def _summaries(*entries: Entry) -> list[str]:
    return [f"{entry.id}  {role_of(entry.body):5}  {summarize(entry.body)}" for entry in entries]


async def _tour_log(store: SqliteStore, _folder: Path) -> AsyncIterator[TourStep]:
    session = await store.create()
    question = user("Why does the limiter drop requests?")
    answer = model("refillTokens runs once a minute.")
    first, second = await store.append(session.id, [question, answer], parent=None)
    yield "Append two messages. When append returns, they are on disk.", _summaries(first, second)

    path = await store.path(session.id)
    yield "Read the session back; every hash is checked.", _summaries(*path)

    fork = await store.fork(session.id, at=first.id, title="Second opinion")
    other = model("补充令牌太慢：每分钟一次。")
    await store.append(fork.id, [other], parent=first.id)
    sessions = await store.sessions()
    yield (
        "Fork after the question and give another answer. Nothing is copied.",
        [f"{s.id}  {s.entries} entries  {one_line(s.title)}" for s in sessions],
    )

    try:
        await store.append(session.id, [user("Fix it.")], parent=first.id)
    except HeadMoved as error:
        moved = str(error)
    yield "A writer that has not seen the answer is refused.", [moved]

    await store.rewind(session.id, first.id)
    better = model("The clock jumps. See MonotonicClock.")
    await store.append(session.id, [better], parent=first.id)
    kept = await store.tree(session.id)
    yield "Rewind and answer again. The first answer is kept on its branch.", _summaries(*kept)


async def _tour_transfer(store: SqliteStore, folder: Path) -> AsyncIterator[TourStep]:
    words = ["drop requests", "令牌", "refill", "monotonicClock", "clock -jumps"]
    found = [(word, await store.search(SearchQuery(words=word))) for word in words]
    yield (
        "Search for words, Chinese, identifiers and parts of them.",
        [f"{pad(word, 14)}  {hits[0].snippet if hits else '(nothing)'}" for word, hits in found],
    )

    newest, *_ = await store.sessions()
    name, data = await export_session(store, newest.id, "gemini")
    file = folder / name
    file.write_bytes(data)
    yield "Export a session as another program's file.", [f"{name}: {len(data):,} bytes"]

    once = await import_file(store, file)
    twice = await import_file(store, file)
    yield (
        "Import it back twice: the second import adds nothing.",
        [f"{each.added} entries added to {each.session}" for each in (once, twice)],
    )

    report = await asyncio.to_thread(examine_store, store.file)
    yield (
        "Check the store with the doctor.",
        [f"{finding.what} ({finding.place})" for finding in report.findings] or ["healthy"],
    )
