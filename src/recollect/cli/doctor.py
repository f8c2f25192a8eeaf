"""`recollect doctor`: checks the store and repairs it; says which sandbox commands run in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import msgspec

from recollect.cli.console import paint, print_json, print_lines, show_status
from recollect.cli.isolation_report import isolation_document, isolation_lines
from recollect.cli.options import command, json_and_store_options
from recollect.display.display_text import display_width, format_value, one_line, pad, pluralize
from recollect.errors import BadSettings, CannotOpen
from recollect.execution.sandbox import find_isolation
from recollect.settings import Settings, load_settings
from recollect.store.open_store import open_database
from recollect.store.recovery.integrity_checks import Finding
from recollect.store.recovery.store_doctor import DoctorReport, examine_store, repair_store
from recollect.store.store_address import (
    StoreAddress,
    default_address,
    hide_password,
    parse_address,
)
from recollect.text import format_size

MAX_ENTRY_IDS = 8


@command(
    ("recollect doctor", "check, change nothing"),
    ("recollect doctor --repair", "repair what can be repaired, quarantine the rest"),
    ("recollect doctor --store postgresql://db/recollect", "check a shared store"),
)
@click.option("--repair", is_flag=True, help="Repair what can be repaired; nothing is deleted.")
@json_and_store_options
def doctor(*, repair: bool, as_json: bool, file: StoreAddress | None) -> int:
    """Check the store; exit code 1 if something is wrong.

    It also says which sandbox commands run in on this machine, and how to get a better one.
    """
    address = _address(file)
    try:
        if isinstance(address, Path):
            report = (repair_store if repair else examine_store)(address, show_status)
        else:
            report = asyncio.run(_examine_database(address, repair=repair))
    finally:
        show_status("")
    wrong = [finding for finding in report.findings if not finding.repaired]
    isolation = find_isolation(_users_settings().permissions.sandbox)
    if as_json:
        more = {"healthy": report.healthy, "sandbox": isolation_document(isolation)}
        print_json(msgspec.to_builtins(report) | more)
    else:
        print_lines((*_lines(report, wrong), "", *isolation_lines(isolation)))
    return 1 if wrong else 0


def _address(given: StoreAddress | None) -> Path | str:
    address = parse_address(given) if given else default_address(_users_settings().store)
    if given is not None and isinstance(address, Path) and not address.exists():
        raise CannotOpen(str(given), "there is no such file")
    return address


async def _examine_database(url: str, *, repair: bool) -> DoctorReport:
    """The hashes of all entries, checksums, heads and contents, read over the network."""
    if repair:
        why = "a database is repaired from its replica or backup; without --repair it is checked"
        raise CannotOpen(hide_password(url), why)
    show_status("reading every entry of the database")
    async with open_database(url) as store:
        return DoctorReport(store.address, await store.check(), await store.facts())


def _users_settings() -> Settings:
    with suppress(BadSettings):  # they are not what is to be checked here
        return load_settings()
    return Settings()


def _lines(report: DoctorReport, wrong: list[Finding]) -> Iterator[str]:
    yield paint.bold(one_line(report.path))
    names = max(map(display_width, report.facts), default=0)
    for name, value in report.facts.items():
        label = pad(name.replace("_", " "), names)
        is_size = "bytes" in name and isinstance(value, int | float)
        yield f"  {paint.dim(label)}  {format_size(value) if is_size else format_value(value)}"
    yield ""
    for finding in report.findings:
        yield from _finding(finding)
    if not report.findings:
        yield paint("healthy: nothing is wrong", fg="green")
    elif not wrong:
        yield paint(f"{pluralize(len(report.findings), 'problem')} repaired", fg="green")
    elif any(finding.repairable for finding in wrong):
        yield f"{pluralize(len(wrong), 'problem')}; `recollect doctor --repair` repairs what can be"
    else:
        yield f"{pluralize(len(wrong), 'problem')} that cannot be repaired"


def _finding(finding: Finding) -> Iterator[str]:
    mark = paint("✓", fg="green") if finding.repaired else paint("✗", fg="red", bold=True)
    yield f"{mark} {one_line(finding.what)}  {paint.dim(one_line(finding.place))}"
    if finding.repaired:
        yield f"    {one_line(finding.repaired)}"
    elif not finding.repairable:
        yield "    cannot be repaired"
    if finding.entries:
        more = len(finding.entries) - MAX_ENTRY_IDS
        ids = ", ".join(finding.entries[:MAX_ENTRY_IDS])
        yield "    " + paint.dim(f"entries {ids}" + (f" and {more:,} more" if more > 0 else ""))
