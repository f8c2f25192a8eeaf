"""`recollect demo`: the agent answers a question in a temporary folder, and the command shows what
the model saw; `--tour` shows the log instead, step by step. All output is real.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import sys
import tempfile
import textwrap
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import click

from recollect.cli.console import make_styler, terminal_width
from recollect.cli.context_report import ContextReport, add_history, load_report
from recollect.cli.context_text import ListingStyle, context_lines
from recollect.cli.demo_tour import TourStep, tour_search, tour_transfer, tour_writing
from recollect.cli.display_text import sanitize
from recollect.cli.headless import run_headless
from recollect.cli.options import examples
from recollect.cli.run import RunOptions
from recollect.cli.store_access import use_store
from recollect.errors import AlreadyExists
from recollect.store.sqlite import SqliteStore, open_store

STORE = "recollect.db"
QUESTION = "What is a write-ahead log? Answer in one sentence."
FILES = {
    "README.md": "# limiter\n\nLets a number of requests through in a minute.\n",
    "limiter.py": "def refill(rate: int) -> int:\n    return rate\n",
}


@click.command(
    epilog=examples(
        ("recollect demo", "one real exchange, in a temporary folder"),
        ("recollect demo -m gpt-5-mini", "with another model"),
        ("recollect demo --tour", "the log: append, fork, rewind, search, export"),
        ("recollect demo --tour --keep tour", "keep the store and explore it"),
    )
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
    if keep is not None:
        code = _run_demo(keep, model, tour=tour, keep=True)
        click.echo(f"Explore it: recollect sessions --all --store {keep / STORE}")
        return code
    with tempfile.TemporaryDirectory(prefix="recollect-demo-") as folder:
        code = _run_demo(Path(folder), model, tour=tour, keep=False)
    if code:
        return code
    if tour:
        click.echo("Next: recollect demo --keep DIR, recollect import FILE, recollect --help")
    else:
        click.echo('Next: recollect -p "…" in a folder of yours, recollect demo --tour')
    return code


def _run_demo(folder: Path, model: str, *, tour: bool, keep: bool) -> int:
    if tour:
        click.echo("A session is an append-only log of immutable entries. With real output:\n")
        asyncio.run(_tour(folder))
        return 0
    return _converse(folder.resolve(), model, keep=keep)


# --- the agent ---------------------------------------------------------------------------------


def _converse(folder: Path, model: str, *, keep: bool) -> int:
    """One exchange and what the model saw; on a terminal as many as the user likes."""
    project, store = folder / "project", folder / STORE
    project.mkdir(mode=0o700, parents=True)
    for name, text in FILES.items():
        (project / name).write_text(text, encoding="utf-8")
    before = Path.cwd()
    os.chdir(project)
    try:
        prompt, latest = QUESTION, False
        while prompt:
            click.echo(f"> {prompt}")
            sys.stdout.flush()
            options = RunOptions(prompt, model, latest, store_persists=keep)
            if code := run_headless(options, store):
                return code
            _show_context(store)
            prompt, latest = _next_prompt(), True
        return 0
    finally:
        os.chdir(before)


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
        return await add_history(opened, await load_report(opened, newest))

    click.echo("\nWhat the model saw, and how much of its window that took:\n")
    style = ListingStyle(make_styler(), terminal_width(), None)
    for line in context_lines(use_store(store, work), None, style):
        click.echo(line)
    click.echo()


# --- the log -----------------------------------------------------------------------------------


async def _tour(folder: Path) -> None:
    number = 0
    async with open_store(folder / STORE) as store:
        for part, steps in (
            (tour_writing, tour_writing(store)),
            (tour_search, tour_search(store)),
            (tour_transfer, tour_transfer(store, folder)),
        ):
            code = iter(_step_sources(part))
            async for step in steps:
                number += 1
                _print_step(number, step, next(code))


def _step_sources(part: Callable[..., AsyncIterator[TourStep]]) -> list[str]:
    """The source of each step: the statements before its yield."""
    source = textwrap.dedent(inspect.getsource(part))
    lines = source.splitlines()
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.AsyncFunctionDef)
    sources, start = [], function.body[0].lineno
    for statement in function.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield):
            step = "\n".join(lines[start - 1 : statement.lineno - 1])
            sources.append(textwrap.dedent(step).strip())
            start = (statement.end_lineno or statement.lineno) + 1
    return sources


def _print_step(number: int, step: TourStep, code: str) -> None:
    paint = make_styler()
    click.echo(paint.bold(f"{number}. {step.title}"))
    for line in code.splitlines():
        click.echo("   " + paint(line, fg="cyan"))
    for line in step.lines:
        first, *rest = textwrap.wrap(sanitize(line), (terminal_width() or 100) - 5) or [""]
        click.echo("   " + paint.dim("→ ") + first)
        for more in rest:
            click.echo("     " + more)
    click.echo()
