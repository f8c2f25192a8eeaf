"""`recollect export`: a session as another program's file.

The file appears whole or not at all, readable by its owner only, and takes no other file's place
unless that is asked for.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from recollect.cli.options import examples, store_option
from recollect.transcripts.format_table import EXPORT_FORMATS

if TYPE_CHECKING:
    from recollect.store.sqlite import SqliteStore

ExportStatus = Literal["wrote", "unchanged"]


@click.command(
    epilog=examples(
        ("recollect export 019a8b1c --to gemini", "into this directory"),
        ("recollect export 019a8b1c --to gemini -o ~/chats", "into another"),
        ("recollect export 019a8b1c --to history-server -o - | jq .", "to stdout"),
        ("recollect export 019a8b1c --to gemini --redact", "to be shown to others"),
    )
)
@click.argument("prefix", metavar="ID")
@click.option("--to", type=click.Choice(EXPORT_FORMATS), required=True, help="The file format.")
@click.option("-o", "--output", metavar="FILE|DIR|-", help="Where to; by default here.")
@click.option("--force", is_flag=True, help="Replace a file that has other content.")
@click.option("--redact", is_flag=True, help="Put [redacted: …] in place of credentials.")
@store_option
def export(
    *,
    prefix: str,
    to: str,
    output: str | None,
    force: bool,
    redact: bool,
    file: Path | None,
) -> None:
    """Write a session as a file of another program, without loss.

    With --redact credentials that are known by their shape or their name are left out; importing
    such a file gives the session without them. Read it before you give it away.
    """
    from recollect.cli.console import print_note
    from recollect.cli.display_text import format_size
    from recollect.cli.store_access import use_store

    target = Path(output or ".").expanduser()
    into = target.is_dir() or (output or "").endswith(os.sep)

    async def work(store: SqliteStore) -> tuple[str, bytes]:
        from recollect.transcripts.session_export import export_session

        session = await store.session(prefix)
        taken = (lambda name, mine: _holds_another_session(target / name, mine)) if into else None
        return await export_session(store, session.id, to, taken)

    name, data = use_store(file, work)
    if redact:
        from recollect.redaction import redact_json

        data = redact_json(data)
    if output == "-":
        sys.stdout.buffer.write(data)
        return
    target = target / name if into else target
    done = write_export(target, data, force=force)
    if done == "unchanged":
        print_note(f"{target} has this content already")
    else:
        click.echo(target)
        print_note(f"{format_size(len(data))} written")


def _holds_another_session(path: Path, session: str) -> bool:
    """Whether a file is there that tells another session: its short name happens to be the same."""
    import json

    try:
        return bool(json.loads(path.read_bytes()).get("sessionId") != session)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, AttributeError, RecursionError):
        return True


def write_export(path: Path, data: bytes, *, force: bool) -> ExportStatus:
    from recollect.errors import AlreadyExists
    from recollect.store.open_file import sync_directory

    path = path.resolve()
    if path.exists() and not path.is_file():  # a device or a pipe: written to, never replaced
        path.write_bytes(data)
        return "wrote"
    if path.exists() and path.read_bytes() == data:
        return "unchanged"
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.tmp")
    try:
        _write_durably(beside, data)
        if force:
            beside.replace(path)
        else:
            _publish(beside, path)
    except FileExistsError as error:
        raise AlreadyExists("another file (--force replaces it)", str(path)) from error
    finally:
        beside.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # some filesystems cannot
        sync_directory(path.parent)
    return "wrote"


def _publish(beside: Path, path: Path) -> None:
    """Give a file its name, unless the name is taken: a link fails where a rename would replace."""
    try:
        path.hardlink_to(beside)
    except FileExistsError:
        raise
    except OSError:  # a filesystem without links
        if path.exists():
            raise FileExistsError(path) from None
        beside.replace(path)


def _write_durably(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
