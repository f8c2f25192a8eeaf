"""`recollect export`: writes a session as another program's file.

The file appears whole or not at all, is readable by its owner only, and replaces another file only
with `--force`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from functools import partial
from pathlib import Path

import click

from recollect.cli.console import print_note
from recollect.cli.options import command, store_option
from recollect.cli.session_arguments import session_argument
from recollect.cli.session_choice import find_session
from recollect.cli.store_access import use_store
from recollect.errors import AlreadyExists
from recollect.redaction import redact_json
from recollect.store.contract import Store
from recollect.store.durable_files import publish_file, sync_directory, write_durably
from recollect.store.store_address import StoreAddress
from recollect.text import format_size
from recollect.transcripts.format_table import EXPORT_FORMATS
from recollect.transcripts.session_export import export_session


@command(
    ("recollect export 5f3a9c21 --to gemini", "into this directory"),
    ("recollect export 5f3a9c21 --to gemini -o ~/chats", "into another"),
    ("recollect export 5f3a9c21 --to history-server -o - | jq .", "to stdout"),
    ("recollect export 5f3a9c21 --to gemini --redact", "to share it"),
)
@session_argument()
@click.option("--to", type=click.Choice(EXPORT_FORMATS), required=True, help="The file format.")
@click.option(
    "-o", "--output", metavar="FILE|DIR|-", help="Where to write it.  [default: this directory]"
)
@click.option("--force", is_flag=True, help="Replace a file that has other content.")
@click.option("--redact", is_flag=True, help="Replace credentials with [redacted: …].")
@store_option
def export(
    *,
    session: str,
    to: str,
    output: str | None,
    force: bool,
    redact: bool,
    file: StoreAddress | None,
) -> None:
    """Write a session as another program's file, without loss.

    --redact removes credentials recognized by their form or name; importing such a file gives the
    session without them. Read the file before you share it.
    """
    target = Path(output or ".").expanduser()
    into_folder = target.is_dir() or (output or "").endswith(os.sep)
    taken = partial(_holds_another_session, target) if into_folder else None

    async def work(store: Store) -> tuple[str, bytes]:
        found = await find_session(store, session)
        return await export_session(store, found.id, to, taken)

    name, data = use_store(file, work)
    if redact:
        data = redact_json(data)
    if output == "-":
        sys.stdout.buffer.write(data)
        return
    target = target / name if into_folder else target
    if _write_export(target, data, force=force):
        click.echo(target)
        print_note(f"{format_size(len(data))} written")
    else:
        print_note(f"{target} already has this content")


def _holds_another_session(folder: Path, name: str, session: str) -> bool:
    """Whether the file exists and holds another session with the same short name."""
    try:
        return bool(json.loads((folder / name).read_bytes()).get("sessionId") != session)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, AttributeError, RecursionError):
        return True


def _write_export(path: Path, data: bytes, *, force: bool) -> bool:
    """Whether it was written; a file that already has this content is left alone."""
    path = path.resolve()
    if path.exists() and not path.is_file():  # a device or a pipe: written, never replaced
        path.write_bytes(data)
        return True
    if path.exists() and path.read_bytes() == data:
        return False
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}.tmp")
    try:
        write_durably(temporary, data)
        if force:
            temporary.replace(path)
        elif not publish_file(temporary, path):
            raise AlreadyExists("another file (--force replaces it)", str(path))
    finally:
        temporary.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # some filesystems cannot
        sync_directory(path.parent)
    return True
