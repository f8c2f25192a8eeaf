"""`recollect memory`: the memory files that sessions in this folder are given.

`show` prints their text as the model gets it, `list` the files and why others were not read, `add`
appends a fact to your own file, `refresh` compares the files with what the session used last was
given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from recollect.cli.console import (
    paint,
    print_json,
    print_lines,
    print_note,
    print_warning,
    terminal_width,
)
from recollect.cli.options import command, json_and_store_options
from recollect.cli.session_choice import find_session
from recollect.cli.store_access import use_store
from recollect.display.display_text import GAP, align_table, one_line, sanitize
from recollect.display.home_paths import abbreviate_home
from recollect.display.short_ids import shorten_session_id
from recollect.entries import Message, Text
from recollect.runtime.session_context import find_folders, memory_sources
from recollect.store.contract import Store
from recollect.store.ids import LAST
from recollect.store.store_address import StoreAddress
from recollect.text import format_size
from recollect.workspace.effective_settings import resolve_settings
from recollect.workspace.memory_files import (
    MemoryFile,
    MemoryFiles,
    memory_text,
    read_memory,
    seen_memory,
)
from recollect.workspace.memory_writer import own_memory_file, save_fact

ACTIONS = ("show", "list", "add", "refresh")
_CHOICE = f"[{'|'.join(ACTIONS)}]"


@command(
    ("recollect memory", "what every session here is told"),
    ("recollect memory list", "the files, and why others are not read"),
    ("recollect memory add 'We use tabs.'", "a fact for every session of yours"),
    ("recollect memory refresh", "what changed since the last session read it"),
)
@click.argument(
    "action", type=click.Choice(ACTIONS), default="show", metavar=f"[{'|'.join(ACTIONS)}]"
)
@click.argument("words", nargs=-1, metavar="[TEXT]")
@json_and_store_options
def memory(
    *, action: str, words: tuple[str, ...], as_json: bool, file: StoreAddress | None
) -> None:
    """Show what every session here is told, or add a fact.

    Memory files (AGENTS.md and others) are read from your data directory and from the folders of a
    trusted project. A session that goes on is told at its next prompt what has changed.
    """
    if words and action != "add":
        raise click.UsageError(f"`memory {action}` takes no TEXT.")
    effective = resolve_settings(Path.cwd())
    sources = memory_sources(find_folders(Path.cwd(), effective, (), print_warning), effective)
    if action == "add":
        _add(own_memory_file(sources.home, sources.names), " ".join(words), as_json=as_json)
        return
    found = read_memory(sources)
    if action == "refresh":
        _refresh(found, file, as_json=as_json)
    elif as_json:
        print_json(_document(found))
    elif action == "show":
        print_lines(sanitize(memory_text(found.files)).splitlines())
        _print_problems(found)
    else:
        print_lines(_table(found))
        for warning in found.warnings:
            print_warning(warning)
        for problem in (*found.problems, *found.hidden):
            print_note(f"not read: {problem}")
    if not found.files and action != "refresh":
        print_note("no memory files; `recollect memory add TEXT` starts one")


def _print_problems(found: MemoryFiles) -> None:
    if found.problems:
        print_note(f"{len(found.problems):,} not read; `recollect memory list` says why")


def _add(path: Path, fact: str, *, as_json: bool) -> None:
    difference = save_fact(path, fact).difference
    if as_json:
        print_json({"file": str(path), "difference": difference})
    elif difference:
        print_lines([sanitize(difference)])
        print_note(f"added to {path}")
    else:
        print_note(f"{path} has this fact already; nothing was added")


def _document(found: MemoryFiles) -> dict[str, Any]:
    files = [
        {"path": file.path, "origin": file.origin, "characters": len(file.text), "text": file.text}
        for file in found.files
    ]
    return {"files": files, "problems": [*found.warnings, *found.problems, *found.hidden]}


def _table(found: MemoryFiles) -> list[str]:
    if not found.files:
        return []
    rows = [["FILE", "FROM", "SIZE"]]
    for file in found.files:
        size = format_size(len(file.text.encode("utf-8", "replace")))
        rows.append([one_line(abbreviate_home(file.path)), file.origin, size])
    head, *body = align_table(rows, width=terminal_width(), stretch=0, numbers=(2,))
    return [paint.dim(GAP.join(head).rstrip()), *(GAP.join(row).rstrip() for row in body)]


# --- what changed -------------------------------------------------------------------------------


def _refresh(found: MemoryFiles, store_file: StoreAddress | None, *, as_json: bool) -> None:
    async def work(store: Store) -> tuple[str, list[Message]]:
        session = await find_session(store, LAST)
        bodies = [entry.body for entry in await store.path(session.id, damaged="mark")]
        messages = [body for body in bodies if isinstance(body, Message) and body.context]
        return await shorten_session_id(store, session.id), messages

    session, messages = use_store(store_file, work)
    changes = list(_changes(found.files, messages))
    if as_json:
        rows = [{"change": change, "path": path} for change, path in changes]
        print_json({"session": session, "changes": rows})
        return
    print_lines(f"{change:<8}  {one_line(abbreviate_home(path))}" for change, path in changes)
    if changes:
        print_note(f"session {session} is told at its next prompt")
    else:
        print_note(f"nothing has changed since session {session} was told")


def _changes(files: Sequence[MemoryFile], messages: list[Message]) -> Iterator[tuple[str, str]]:
    """Each file that differs from what these messages have said of it, and how."""
    parts = (part for message in messages for part in message.parts)
    told = "\n".join(part.text for part in parts if isinstance(part, Text))
    seen = {path for path, digest in seen_memory(messages).items() if digest is not None}
    for file in files:
        if file.path not in seen:
            yield "new", file.path
        elif memory_text([file]) not in told:
            yield "changed", file.path
    for path in sorted(seen - {file.path for file in files}):
        # files of folders that a tool touched are not read at the start
        if not Path(path).exists():
            yield "removed", path
