"""`recollect doctor`: is the store as it should be, and what can be put right?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.cli.options import examples, json_option, store_option

if TYPE_CHECKING:
    from recollect.cli.console import Styler
    from recollect.store.recovery.integrity_checks import Finding
    from recollect.store.recovery.store_doctor import DoctorReport

SHOWN_ENTRIES = 8


@click.command(
    epilog=examples(
        ("recollect doctor", "look, change nothing"),
        ("recollect doctor --repair", "repair what can be repaired, quarantine the rest"),
    )
)
@click.option("--repair", is_flag=True, help="Put right what can be; nothing is deleted.")
@json_option
@store_option
def doctor(*, repair: bool, as_json: bool, file: Path | None) -> int:
    """Check the store; exit code 1 when something is wrong."""
    from recollect.cli.console import print_json, print_lines, show_status
    from recollect.errors import CannotOpen
    from recollect.settings import store_path
    from recollect.store.recovery import store_doctor as examination

    path = file or store_path()
    if file is not None and not file.exists():
        raise CannotOpen(str(file), "there is no such file")
    try:
        report = (examination.repair_store if repair else examination.examine_store)(
            path, show_status
        )
    finally:
        show_status("")
    wrong = [finding for finding in report.findings if not finding.repaired]
    if as_json:
        import msgspec

        print_json(msgspec.to_builtins(report) | {"healthy": report.healthy})
    else:
        print_lines(_lines(report, wrong))
    return 1 if wrong else 0


def _lines(report: DoctorReport, wrong: list[Finding]) -> Iterator[str]:
    from recollect.cli.console import make_styler
    from recollect.cli.display_text import display_width, one_line, pad, pluralize

    paint = make_styler()
    yield paint.bold(one_line(report.path))
    names = max(map(display_width, report.facts), default=0)
    for name, value in report.facts.items():
        label = pad(name.replace("_", " "), names)
        yield f"  {paint.dim(label)}  {_fact(name, value)}"
    yield ""
    for finding in report.findings:
        yield from _finding(finding, paint)
    if not report.findings:
        yield paint("healthy: nothing is wrong", fg="green")
    elif not wrong:
        yield paint(f"{pluralize(len(report.findings), 'problem')} repaired", fg="green")
    elif any(finding.repairable for finding in wrong):
        yield f"{pluralize(len(wrong), 'problem')}; `recollect doctor --repair` repairs what can be"
    else:
        yield f"{pluralize(len(wrong), 'problem')} that cannot be repaired"


def _fact(name: str, value: object) -> str:
    from recollect.cli.display_text import format_size, one_line

    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return format_size(value) if "bytes" in name else f"{value:,}"
    if isinstance(value, list | tuple):
        return one_line(", ".join(map(str, value))) or "-"
    return one_line(str(value))


def _finding(finding: Finding, paint: Styler) -> Iterator[str]:
    from recollect.cli.display_text import one_line

    mark = paint("✓", fg="green") if finding.repaired else paint("✗", fg="red", bold=True)
    yield f"{mark} {one_line(finding.what)}  {paint.dim(one_line(finding.place))}"
    if finding.repaired:
        yield f"    {one_line(finding.repaired)}"
    elif not finding.repairable:
        yield "    cannot be repaired"
    if finding.entries:
        more = len(finding.entries) - SHOWN_ENTRIES
        ids = ", ".join(finding.entries[:SHOWN_ENTRIES]) + (
            f" and {more:,} more" if more > 0 else ""
        )
        yield f"    {paint.dim(f'entries {ids}')}"
