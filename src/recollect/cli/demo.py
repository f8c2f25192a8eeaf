"""`recollect demo`: a guided tour through a session made on the spot. Every output is real."""

from __future__ import annotations

import ast
import inspect
import tempfile
import textwrap
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.cli.options import examples

if TYPE_CHECKING:
    from recollect.cli.tour import Step


STORE = "recollect.db"


@click.command(
    epilog=examples(
        ("recollect demo", "in a temporary store, gone afterwards"),
        ("recollect demo --keep tour", "keep the store, to look around in it"),
    )
)
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Make the store here and leave it.",
)
def demo(*, keep: Path | None) -> None:
    """Show what recollect does, on a session made on the spot."""
    import asyncio

    from recollect.errors import AlreadyExists

    click.echo("A session is an append-only log of immutable entries. A tour, with real output:\n")
    if keep is not None:
        if (keep / STORE).exists():
            raise AlreadyExists("a store", str(keep / STORE))
        asyncio.run(_tour(keep))
        click.echo(f"Look around: recollect sessions --all --store {keep / STORE}")
        return
    with tempfile.TemporaryDirectory(prefix="recollect-demo-") as folder:
        asyncio.run(_tour(Path(folder)))
    click.echo("Next: recollect demo --keep DIR, recollect import FILE, recollect --help")


async def _tour(folder: Path) -> None:
    from recollect.cli import tour
    from recollect.store.sqlite import open_store

    number = 0
    async with open_store(folder / STORE) as store:
        for part, steps in (
            (tour.writing, tour.writing(store)),
            (tour.finding, tour.finding(store)),
            (tour.carrying, tour.carrying(store, folder)),
        ):
            code = iter(_code(part))
            async for step in steps:
                number += 1
                _tell(number, step, next(code))


def _code(part: Callable[..., AsyncIterator[Step]]) -> list[str]:
    """The source of each step: the statements before its yield."""
    source = textwrap.dedent(inspect.getsource(part))
    lines = source.splitlines()
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.AsyncFunctionDef)
    found, start = [], function.body[0].lineno
    for statement in function.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield):
            found.append(
                textwrap.dedent("\n".join(lines[start - 1 : statement.lineno - 1])).strip()
            )
            start = (statement.end_lineno or statement.lineno) + 1
    return found


def _tell(number: int, step: Step, code: str) -> None:
    from recollect.cli.terminal import ink, width
    from recollect.cli.text import harmless

    paint = ink()
    click.echo(paint.bold(f"{number}. {step.says}"))
    for line in code.splitlines():
        click.echo("   " + paint(line, fg="cyan"))
    for line in step.lines:
        first, *rest = textwrap.wrap(harmless(line), (width() or 100) - 5) or [""]
        click.echo("   " + paint.dim("→ ") + first)
        for more in rest:
            click.echo("     " + more)
    click.echo()
