"""`recollect store`: shows a store, sets one up, copies one into another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from recollect.cli.console import (
    paint,
    print_error,
    print_json,
    print_lines,
    print_warning,
    show_status,
)
from recollect.cli.options import StoreType, command, examples, json_option
from recollect.display.display_text import display_width, format_value, one_line, pad, pluralize
from recollect.errors import BadInput, BadSettings, CannotOpen
from recollect.settings import load_settings
from recollect.store.contract import Store
from recollect.store.open_store import check_driver, open_store
from recollect.store.store_address import (
    StoreAddress,
    default_address,
    hide_password,
    parse_address,
)
from recollect.store.store_copy import CopyProgress, CopyReport, copy_store
from recollect.text import format_size

T = TypeVar("T")
MAX_SHOWN = 10  # sessions that were not copied
_STATUS_EVERY = 0.1  # seconds


@click.group(
    epilog=examples(
        ("recollect store status", "your store: its kind, format and size"),
        ("recollect store init postgresql://me@host/db", "create the tables, or migrate them"),
        ("recollect store copy recollect.db postgresql://me@host/db", "move to a database"),
    )
)
def store() -> None:
    """Show, set up or copy a store.

    A store is the path of a SQLite file, or postgresql://USER@HOST/DATABASE. Give a password in
    the URL, PGPASSWORD or ~/.pgpass; it is never shown.
    """


@command(
    ("recollect store status", "your own"),
    ("recollect store status postgresql://me@host/db --json", "a database, for programs"),
)
@click.argument("where", metavar="[FILE|URL]", required=False, type=StoreType())
@json_option
def status(*, where: StoreAddress | None, as_json: bool) -> None:
    """Show what a store is and how much it holds."""
    address = default_address(_users_setting()) if where is None else parse_address(where)
    _refuse_missing(address)
    _print_facts(*_use(address, _read_facts), as_json=as_json)


@command(
    ("recollect store init postgresql://me@host/db", "create the tables, or migrate them"),
    ("recollect store init sessions.db", "an empty SQLite file"),
    ("recollect store init URL --distribute citus --dry-run", "show what Citus would be told"),
)
@click.argument("where", metavar="FILE|URL", type=StoreType())
@click.option(
    "--distribute",
    type=click.Choice(["citus"]),
    help="Spread the tables over the machines of a Citus cluster.",
)
@click.option("--dry-run", is_flag=True, help="Only print the statements of --distribute.")
@json_option
def init(*, where: StoreAddress, distribute: str | None, dry_run: bool, as_json: bool) -> None:
    """Create a store, or bring it to the current format.

    Whatever opens a store does this, too; this is for doing it ahead of time, with a database role
    that may create tables. With --distribute citus, the tables of sessions are distributed by the
    tree that a session and its forks share.
    """
    if dry_run and not distribute:
        raise click.UsageError("--dry-run needs --distribute.")
    if distribute:
        _distribute(parse_address(where), dry_run=dry_run)
        if dry_run:
            return
    _print_facts(*_use(parse_address(where), _read_facts), as_json=as_json)


@command(
    ("recollect store copy recollect.db postgresql://me@host/db", "from a file to a database"),
    ("recollect store copy postgresql://me@host/db backup.db", "and back, such as for a backup"),
)
@click.argument("source", metavar="FROM", type=StoreType())
@click.argument("target", metavar="TO", type=StoreType())
@json_option
def copy(*, source: StoreAddress, target: StoreAddress, as_json: bool) -> int:
    """Copy everything of a store into another one, and compare.

    All sessions with their branches, forks, owners and titles, the trash, projects and contents;
    ids and times stay as they are. Nothing is written to FROM, but that a file of an older version
    is brought to the current format. Copying again continues an interrupted copy and adds what is
    new. A session that was continued in TO keeps its head there. The exit code is 1 if a session
    could not be copied, or is not the same in TO.
    """
    addresses = parse_address(source), parse_address(target)
    _refuse_missing(addresses[0])
    if _is_same(*addresses):
        raise BadInput(f"{hide_password(addresses[0])} cannot be copied into itself")
    try:
        report = asyncio.run(_copy(*addresses))
    except KeyboardInterrupt:
        show_status("")
        print_error("interrupted; the same command goes on from there")
        raise
    finally:
        show_status("")
    if as_json:
        print_json(msgspec.to_builtins(report))
    else:
        _print_report(report, hide_password(addresses[1]))
    return 1 if report.not_copied else 0


for each in (status, init, copy):
    store.add_command(each)


def _distribute(address: StoreAddress, *, dry_run: bool) -> None:
    if isinstance(address, Path):
        raise click.UsageError("--distribute is for PostgreSQL: give postgresql://HOST/DATABASE.")
    check_driver(address)
    # late: psycopg is an extra, and takes 100 ms to load
    from recollect.store.postgres.distribution import citus_statements, distribute_over_citus

    done = citus_statements() if dry_run else asyncio.run(distribute_over_citus(address))
    for statement in done:
        click.echo(f"{statement};", err=not dry_run)


def _users_setting() -> str:
    try:
        return load_settings().store
    except BadSettings as error:
        print_warning(str(error))
        return ""


def _refuse_missing(address: StoreAddress) -> None:
    if isinstance(address, Path) and not address.exists():
        raise CannotOpen(str(address), "there is no such file")


def _is_same(source: StoreAddress, target: StoreAddress) -> bool:
    if isinstance(source, Path) and isinstance(target, Path):
        return target.exists() and source.samefile(target)
    return source == target


def _use(address: StoreAddress, work: Callable[[Store], Awaitable[T]]) -> T:
    async def opened() -> T:
        async with open_store(address) as store:
            done = await work(store)
            for warning in store.warnings:
                print_warning(warning)
            return done

    return asyncio.run(opened())


async def _read_facts(store: Store) -> tuple[str, dict[str, int | str]]:
    return store.address, await store.facts()


def _print_facts(address: str, facts: dict[str, int | str], *, as_json: bool) -> None:
    if as_json:
        print_json({"store": address, **facts})
        return
    width = max(map(display_width, facts))
    lines = [paint.bold(one_line(address))]
    for name, value in facts.items():
        shown = format_size(value) if "bytes" in name and isinstance(value, int) else value
        lines.append(f"  {paint.dim(pad(name.replace('_', ' '), width))}  {format_value(shown)}")
    print_lines(lines)


async def _copy(source: StoreAddress, target: StoreAddress) -> CopyReport:
    shown_at = 0.0

    def show(progress: CopyProgress) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at > _STATUS_EVERY:
            shown_at = time.monotonic()
            total = "" if progress.total is None else f"/{progress.total:,}"
            show_status(f"{progress.phase} {progress.done:,}{total}")

    async with open_store(source) as read, open_store(target) as written:
        try:
            return await copy_store(read, written, show)
        finally:
            for warning in (*read.warnings, *written.warnings):
                print_warning(warning)


def _print_report(report: CopyReport, target: str) -> None:
    new = [
        pluralize(count, what)
        for count, what in (
            (report.new_sessions, "session"),
            (report.new_entries, "entry"),
            (report.new_contents, "content"),
        )
        if count
    ]
    click.echo(f"copied {', '.join(new)}" if new else "nothing new to copy")
    same = f"{pluralize(report.sessions, 'session')} with {pluralize(report.entries, 'entry')}"
    click.echo(f"the same in {target}, by number and hash of the entries: {same}")
    if report.continued:
        many = pluralize(len(report.continued), "session")
        click.echo(f"{many} of them went on in {target}; what is new there was left as it is")
    for each in report.not_copied[:MAX_SHOWN]:
        print_error(f"session {each.session}: {each.why}")
    if len(report.not_copied) > MAX_SHOWN:
        print_error(f"and {len(report.not_copied) - MAX_SHOWN:,} more were not copied")
