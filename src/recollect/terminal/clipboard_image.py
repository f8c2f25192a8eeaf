"""An image in the clipboard of the desktop, where a program can be asked for it."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from recollect.settings import data_directory

MAX_BYTES = 20_000_000
SECONDS = 5.0
PROGRAMS = (
    ("wl-paste", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
_PNG = b"\x89PNG\r\n\x1a\n"


async def save_clipboard_image() -> Path | None:
    """A file with the image, in the data directory; None if there is none, or nobody to ask."""
    for words in PROGRAMS:
        if shutil.which(words[0]) and (data := await _read(words)):
            return await asyncio.to_thread(_save, data)
    return None


async def _read(words: tuple[str, ...]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    data = bytearray()
    try:
        async with asyncio.timeout(SECONDS):
            while piece := await process.stdout.read(65_536):
                data += piece
                if len(data) > MAX_BYTES:
                    return b""
    except TimeoutError:
        return b""
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return bytes(data) if data.startswith(_PNG) else b""


def _save(data: bytes) -> Path:
    folder = data_directory() / "clipboard"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"clipboard-{secrets.token_hex(4)}.png"
    file.touch(mode=0o600)
    file.write_bytes(data)
    return file


def remove_clipboard_images(files: tuple[Path, ...]) -> None:
    """Those that this program saved; what was sent of them is in the store."""
    for file in files:
        file.unlink(missing_ok=True)
