"""Writes a prompt in the user's own editor.

The text is in a file of the data directory that only the user can read, and is removed afterwards.
An editor that fails, or a file that cannot be read, leaves the prompt as it was.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from contextlib import suppress
from pathlib import Path

from textual.app import App, SuspendNotSupported

from recollect.errors import RecollectError
from recollect.settings import data_directory

MAX_BYTES = 10_000_000


class EditorFailed(RecollectError):
    """Why there is no new text: the fact, then the remedy."""


def editor_words() -> list[str]:
    """The program and its arguments, as a shell would split them."""
    given = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise EditorFailed(f"$VISUAL or $EDITOR is {given!r}: {error}; correct it") from None
    if not words:
        raise EditorFailed("no editor is named; set $VISUAL or $EDITOR")
    return words


async def edit_in_editor(app: App[int], text: str) -> str:
    """The text as the user left it; while the editor has the terminal, nothing else writes to it,
    and a reply that streams goes on behind it."""
    words = editor_words()
    handle, name = await asyncio.to_thread(
        tempfile.mkstemp, suffix=".md", prefix="prompt-", dir=data_directory()
    )
    file = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as opened:
            opened.write(text)
        try:
            with app.batch_update(), app.suspend():
                code = await _run([*words, str(file)])
        except SuspendNotSupported:
            raise EditorFailed("this terminal cannot be given to an editor") from None
        if code != 0:
            raise EditorFailed(f"{words[0]} ended with code {code}; the prompt is as it was")
        return await asyncio.to_thread(_read, file)
    finally:
        with suppress(OSError):
            file.unlink()


async def _run(words: list[str]) -> int:
    try:
        process = await asyncio.create_subprocess_exec(*words)
    except OSError as error:
        why = error.strerror or error
        raise EditorFailed(f"{words[0]} cannot be started: {why}; set $VISUAL or $EDITOR") from None
    return await process.wait()


def _read(file: Path) -> str:
    if file.stat().st_size > MAX_BYTES:
        raise EditorFailed(f"the text has more than {MAX_BYTES:,} bytes; mention it as a file")
    text = file.read_bytes().decode("utf-8", "replace")
    return text.removesuffix("\n")
