"""`recollect rewind`: moves a session's head and, when asked, brings files back as they were then.

Nothing is deleted: what is overwritten is kept first, and the output says how to go back. A file
that somebody else changed is left alone and named with the reason. `--preview` changes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from recollect.cli.options import examples, json_option, store_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.store.contract import SessionInfo
    from recollect.store.sqlite import SqliteStore
    from recollect.tools.file_rewind import RewindResult

FAILED = 1


class RewindOptions(NamedTuple):
    """What the person asked for."""

    session: str
    entry: str
    files: bool
    preview: bool
    beside: bool


class RewindReport(NamedTuple):
    wish: RewindOptions
    before: SessionInfo
    rewound: RewindResult  # without --files: what it would do to files
    short: str
    target: str  # the entry as it can be given again
    root: Path


@click.command(
    epilog=examples(
        ("recollect rewind 019a8b1c 019a8b1c77f0", "go on after this entry"),
        ("recollect rewind 019a8b1c start", "before its first entry"),
        ("recollect rewind 019a8b1c 019a8b1c77f0 --preview", "what --files would do"),
        ("recollect rewind 019a8b1c 019a8b1c77f0 --files", "the files, too"),
        ("recollect show 019a8b1c --tree", "every branch, also those left behind"),
    )
)
@click.argument("session", metavar="ID")
@click.argument("entry")
@click.option("--files", is_flag=True, help="Bring back the files that tools changed since.")
@click.option("--preview", is_flag=True, help="Show what --files would do, and change nothing.")
@click.option(
    "--beside",
    is_flag=True,
    help="With --files: write what a file in conflict was beside it, as NAME.recollect-old.",
)
@json_option
@store_option
@click.pass_context
def rewind(ctx: click.Context, /, *, as_json: bool, file: Path | None, **given: Any) -> None:
    """Move a session's head; nothing is deleted.

    ENTRY is where to go on from, by the beginning of its id, or `start`. With --files the files
    that the session's tools changed since get the content they had then. What somebody else
    changed is left alone and listed.
    """
    wish = RewindOptions(**given)
    if wish.beside and not wish.files:
        raise click.UsageError("--beside goes with --files.")
    from recollect.cli.console import print_json
    from recollect.cli.display_text import sanitize
    from recollect.cli.store_access import use_store

    done = use_store(file, lambda store: _rewind(store, wish))
    if as_json:
        print_json(_report_document(done))
    else:
        click.echo(sanitize("\n".join(_lines(done))))
    if wish.files and not wish.preview and done.rewound.conflicts:
        ctx.exit(FAILED)


async def _rewind(store: SqliteStore, wish: RewindOptions) -> RewindReport:
    from recollect.cli.store_access import find_entry, shorten_entry_id, shorten_session_id
    from recollect.tools.file_rewind import rewind_files

    found = await store.session(wish.session)
    to = None if wish.entry == "start" else await find_entry(store, wish.entry, found)
    root = Path(found.project) if found.project else Path.cwd()
    if wish.files or wish.preview:
        rewound = await rewind_files(
            store, found.id, to, (root,), preview=wish.preview, beside=wish.beside
        )
    else:
        seen = await _preview_files(store, found, to, root)
        rewound = seen._replace(session=await store.rewind(found.id, to, head=found.head))
    target = "start" if to is None else await shorten_entry_id(store, to)
    return RewindReport(
        wish, found, rewound, await shorten_session_id(store, found.id), target, root
    )


async def _preview_files(
    store: SqliteStore, found: SessionInfo, to: str | None, root: Path
) -> RewindResult:
    """What could be done to files. Damage elsewhere in the session is no reason to stay."""
    from recollect.cli.console import print_warning
    from recollect.errors import Damaged
    from recollect.tools.file_rewind import RewindResult, rewind_files

    try:
        return await rewind_files(store, found.id, to, (root,), preview=True)
    except Damaged as error:
        print_warning(f"whether tools changed files since then cannot be told: {error}")
        return RewindResult(found, found.head)


# --- what is shown -----------------------------------------------------------------------------


def _lines(done: RewindReport) -> Iterator[str]:
    wish, rewound = done.wish, done.rewound
    again = f"recollect rewind {done.short} {done.target} --files"
    if wish.preview:
        yield f"nothing was changed; `{again}` does this:"
    else:
        yield _head_line(done)
    if wish.files or wish.preview:
        yield from _file_lines(done)
        if rewound.conflicts and not wish.beside:
            yield f"`{again} --beside` writes what they were beside them"
    elif rewound.done or rewound.conflicts:
        yield f"{_unchanged_note(rewound)}; `{again}` brings {rewound.done:,} back"
        yield f"`{again} --preview` shows which, and changes nothing"


def _unchanged_note(rewound: RewindResult) -> str:
    count = rewound.done + len(rewound.conflicts)
    if count == 1:
        return "1 file that tools changed since then stays as it is"
    return f"{count:,} files that tools changed since then stay as they are"


def _head_line(done: RewindReport) -> str:
    from recollect.cli.display_text import pluralize

    before, after, short = done.before, done.rewound.session, done.short
    flag = " --files" if done.wish.files else ""
    back = f"`recollect rewind {short} {done.rewound.back or 'start'}{flag}` goes back"
    if before.head != after.head:
        entries = pluralize(after.entries, "entry")
        return f"session {short} now has {entries}, was {before.entries:,}; {back}"
    stands = f"session {short} stands there already"
    return f"{stands}; {back}" if done.wish.files and done.rewound.done else stands


def _file_lines(done: RewindReport) -> Iterator[str]:
    found = done.rewound
    kinds = (
        ("restored", found.restored),
        ("removed", found.removed),
        ("brought back", found.brought_back),
        ("unchanged", found.unchanged),
    )
    if not any(paths for _, paths in kinds) and not found.conflicts:
        yield "no file was changed by tools since then"
    for kind, paths in kinds:
        for path in paths:
            yield f"  {kind:<12}  {_display_path(path, done.root)}"
    written = {one.path: one.written for one in found.beside}
    for conflict in found.conflicts:
        yield f"  {'conflict':<12}  {_display_path(conflict.path, done.root)}: {conflict.why}"
        if conflict.path in written:
            yield f"  {'':<12}  what it was is in {_display_path(written[conflict.path], done.root)}"


def _display_path(path: str, root: Path) -> str:
    """From the project's folder when it is in there, on one line."""
    from recollect.tools.resolve_path import quote

    return quote(path.removeprefix(str(root).rstrip(os.sep) + os.sep))


def _report_document(done: RewindReport) -> dict[str, Any]:
    import msgspec

    found = done.rewound
    written = {one.path: one.written for one in found.beside}
    session: dict[str, Any] = msgspec.to_builtins(found.session)
    return session | {
        "back": found.back,
        "preview": done.wish.preview,
        "files": {
            "asked": done.wish.files,
            "restored": list(found.restored),
            "removed": list(found.removed),
            "brought_back": list(found.brought_back),
            "unchanged": list(found.unchanged),
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
