"""`recollect export`: writes a session as another program's file.

The file appears whole or not at all, is readable by its owner only, and replaces another file only
with `--force`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from recollect.cli.console import print_note
from recollect.cli.options import command, store_option
from recollect.cli.session_arguments import session_argument
from recollect.cli.session_choice import find_session
from recollect.cli.store_access import use_store
from recollect.redaction import redact_json
from recollect.store.contract import Store
from recollect.store.store_address import StoreAddress
from recollect.text import format_size
from recollect.transcripts.export_file import compose_export, write_export
from recollect.transcripts.format_table import EXPORT_FORMATS


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

    async def work(store: Store) -> tuple[Path, bytes]:
        found = await find_session(store, session)
        return await compose_export(store, found.id, to, output or ".")

    target, data = use_store(file, work)
    if redact:
        data = redact_json(data)
    if output == "-":
        sys.stdout.buffer.write(data)
    elif write_export(target, data, force=force):
        click.echo(target)
        print_note(f"{format_size(len(data))} written")
    else:
        print_note(f"{target} already has this content")
