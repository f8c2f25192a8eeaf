"""`recollect rewind`: moves a session's head and, with `--files`, restores files as they were then.

Nothing is deleted: overwritten content is stored first, and the output says how to go back. Files
that someone else changed are left alone and listed with the reason. `--preview` changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from recollect.cli.console import print_json, print_warning
from recollect.cli.options import command, json_and_store_options
from recollect.cli.session_arguments import session_before
from recollect.cli.session_choice import find_session, find_writable_session
from recollect.cli.store_access import use_store
from recollect.display.display_text import pluralize, sanitize
from recollect.display.rewind_points import FILE_OUTCOMES, describe_files
from recollect.display.short_ids import find_entry, shorten_entry_id, shorten_session_id
from recollect.runtime.session_rewind import preview_files, rewind_session, session_roots
from recollect.store.contract import SessionInfo, Store
from recollect.store.store_address import StoreAddress
from recollect.tools.file_rewind import RewindResult, rewind_files


class RewindOptions(NamedTuple):
    session: str
    entry: str
    files: bool
    preview: bool
    beside: bool


class RewindReport(NamedTuple):
    options: RewindOptions
    before: SessionInfo
    rewound: RewindResult  # without --files: what --files would do
    short: str
    target: str  # the entry, as the user can type it again
    back: str  # where it was before, likewise
    root: Path


@command(
    ("recollect rewind 5f3a9c21 77f0b1de", "continue after this entry"),
    ("recollect rewind 5f3a9c21 start", "before its first entry"),
    ("recollect rewind 5f3a9c21 77f0b1de --preview", "what --files would do"),
    ("recollect rewind 5f3a9c21 77f0b1de --files", "restore the files too"),
    ("recollect show 5f3a9c21 --tree", "every branch, old ones included"),
)
@session_before("entry", is_id=True)
@click.option("--files", is_flag=True, help="Restore the files that tools have changed since.")
@click.option("--preview", is_flag=True, help="Show what --files would do, and change nothing.")
@click.option(
    "--beside",
    is_flag=True,
    help="With --files: write the old content of conflicting files to NAME.recollect-old.",
)
@json_and_store_options
def rewind(*, as_json: bool, file: StoreAddress | None, **given: Any) -> int:
    """Move a session's head; nothing is deleted.

    ENTRY is the entry to continue after, or `start`. With --files, the files that the session's
    tools have changed since get their old content back. Files that someone else changed are left
    alone and listed.
    """
    options = RewindOptions(**given)
    if options.beside and not options.files:
        raise click.UsageError("--beside needs --files.")
    report = use_store(file, lambda store: _rewind(store, options))
    if as_json:
        print_json(_report_document(report))
    else:
        click.echo(sanitize("\n".join(_lines(report))))
    return int(options.files and not options.preview and bool(report.rewound.conflicts))


async def _rewind(store: Store, options: RewindOptions) -> RewindReport:
    find = find_session if options.preview else find_writable_session
    found = await find(store, options.session)
    entry = None if options.entry == "start" else options.entry
    to = await find_entry(store, entry, found)
    roots = session_roots(found)
    if options.preview:
        rewound = await rewind_files(store, found, to, roots, preview=True)
    elif options.files:
        rewound = await rewind_session(store, found, to, "both", roots, beside=options.beside)
    else:
        left = await preview_files(store, found, to, roots, print_warning)
        rewound = await rewind_session(store, found, to, "conversation", roots)
        rewound = left._replace(session=rewound.session)
    short = await shorten_session_id(store, found.id)
    target, back = await _shorten(store, to), await _shorten(store, rewound.back)
    return RewindReport(options, found, rewound, short, target, back, roots[0])


async def _shorten(store: Store, entry: str | None) -> str:
    return "start" if entry is None else await shorten_entry_id(store, entry)


# --- output ------------------------------------------------------------------------------------


def _lines(report: RewindReport) -> Iterator[str]:
    options, rewound = report.options, report.rewound
    again = f"recollect rewind {report.short} {report.target} --files"
    if options.preview:
        yield f"nothing was changed; `{again}` would do this:"
    else:
        yield _head_line(report)
    if options.files or options.preview:
        yield from describe_files(rewound, report.root)
        if rewound.conflicts and not options.beside:
            yield f"`{again} --beside` writes their old content beside them"
    elif rewound.done or rewound.conflicts:
        yield f"{_unchanged_note(rewound)}; `{again}` restores {rewound.done:,}"
        yield f"`{again} --preview` shows which, and changes nothing"


def _unchanged_note(rewound: RewindResult) -> str:
    count = rewound.done + len(rewound.conflicts)
    if count == 1:
        return "1 file that tools have changed since then stays as it is"
    return f"{count:,} files that tools have changed since then stay as they are"


def _head_line(report: RewindReport) -> str:
    before, after, short = report.before, report.rewound.session, report.short
    flag = " --files" if report.options.files else ""
    back = f"`recollect rewind {short} {report.back}{flag}` goes back"
    if before.head != after.head:
        entries = pluralize(after.entries, "entry")
        return f"session {short} now has {entries}, previously {before.entries:,}; {back}"
    unmoved = f"session {short} is already at this entry"
    return f"{unmoved}; {back}" if report.options.files and report.rewound.done else unmoved


def _report_document(report: RewindReport) -> dict[str, Any]:
    found = report.rewound
    written = {one.path: one.written for one in found.beside}
    session: dict[str, Any] = msgspec.to_builtins(found.session)
    return session | {
        "back": found.back,
        "preview": report.options.preview,
        "files": {
            "asked": report.options.files,
            **{outcome: getattr(found, outcome) for outcome in FILE_OUTCOMES},
            "conflicts": [
                {
                    "path": one.path,
                    "why": one.why,
                    "was_there": one.target is not None and bool(one.target.hash),
                    "beside": written.get(one.path),
                }
                for one in found.conflicts
            ],
        },
    }
