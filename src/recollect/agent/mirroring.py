"""Mirrors: a session as another program's file, kept in step with the log while an agent works.

Guarantees: the file is what `recollect export` writes, whole at every moment, for its owner only.
A session has one file and keeps it; which one, and what was last written, stands in a claim beside
it. So a mirror replaces only what a mirror of the same session wrote, byte for byte; any other file
stays as it is and another name is taken. A state that was read earlier never replaces a later one.
Nothing here raises into the agent: what failed is in `warnings` and is tried again. Composing and
writing happen in a thread, and of one session at most one write is under way and one waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import itertools
import math
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from recollect.agent.hook_events import AfterAgent, HookDecision, HookEvent, SessionEnd
from recollect.agent.hooks import PythonHook
from recollect.entries import Entry
from recollect.errors import BadInput
from recollect.settings import data_directory
from recollect.store.contract import SessionInfo, Store
from recollect.store.ids import derived_id
from recollect.store.open_file import sync_directory
from recollect.text import one_line
from recollect.transcripts import history_server
from recollect.transcripts.gemini_cli import session_file
from recollect.transcripts.session_import import ExportFormat, build_header, encode_json
from recollect.transcripts.timestamps import gemini_file_name, history_server_file_name, parse_time

AUTOSAVE_SECONDS = 30.0
LOCK_TIMEOUT_SECONDS = (
    10.0  # seconds to wait for another process that writes the same session's file
)
_MOST_WARNINGS, _LONGEST_WARNING = 20, 500
_CLAIM_SIZE = 512  # bytes, always: one sector is overwritten whole or not at all
_MOST_NAMES = 1_000
_NAME = re.compile(r"session[-_][A-Za-z0-9_-]{1,220}\.json")


class _MirroredState(NamedTuple):
    """What a file depends on: the same state gives the same file."""

    head: str | None
    title: str
    project: str | None


class Mirror:
    """Files of one format in one folder, for the sessions of a store that it is told of."""

    def __init__(
        self,
        store: Store,
        format: ExportFormat,  # noqa: A002 - the word everybody looks for
        folder: Path | None = None,
        *,
        autosave_seconds: float = AUTOSAVE_SECONDS,
    ) -> None:
        """`autosave_seconds` of 0 means that no timer runs."""
        if not (math.isfinite(autosave_seconds) and autosave_seconds >= 0):
            raise BadInput(f"autosave_seconds must be 0 or more seconds, not {autosave_seconds}")
        self.store, self.format = store, format
        self.folder = (data_directory() / "mirrors" if folder is None else folder).absolute()
        self.autosave_seconds = autosave_seconds
        self.warnings: list[str] = []  # the newest of them; whoever has read them may clear it
        self._untold: list[str] = []
        self._followed: dict[
            str, _MirroredState | None
        ] = {}  # sessions, and as what they were written
        self._running: dict[str, asyncio.Task[Path | None]] = {}
        self._waiting: dict[str, asyncio.Task[Path | None]] = {}
        self._timer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Mirror:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def start(self) -> None:
        if self._timer is None and self.autosave_seconds:
            self._timer = asyncio.get_running_loop().create_task(self._save_at_times())

    async def close(self) -> None:
        """Ends the timer and writes what has changed. The store must still be open."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            await asyncio.wait((timer,))
        while under_way := {*self._running.values(), *self._waiting.values()}:
            await asyncio.wait(under_way)
        for session in tuple(self._followed):
            await self._write_if_changed(session)

    # --- what others call ----------------------------------------------------------------------

    def follow(self, session_id: str) -> None:
        """From now on the timer looks after this session."""
        self._followed.setdefault(session_id, None)

    async def write(self, session_id: str) -> Path | None:
        """The file, once it tells what the log tells now; None when that failed. A caller that is
        cancelled does not end the write."""
        return await asyncio.shield(self._next(session_id))

    async def switched(self, from_session: str) -> None:
        """Another session takes over: this one's file is brought up to date before."""
        self.follow(from_session)
        await self._write_if_changed(from_session)

    def hook(self, *, wait: bool = False) -> PythonHook:
        """For `Hooks`: a write after each turn and one at the end of a session. Only the end is
        waited for, unless `wait` says that turns are as well."""

        async def follow(event: HookEvent) -> HookDecision:
            self.follow(event.session)
            if isinstance(event, AfterAgent):
                written = self._next(event.session)
                if wait:
                    await asyncio.shield(written)
            elif isinstance(event, SessionEnd):
                await self._write_if_changed(event.session)
                if self._followed.get(event.session) is not None:
                    del self._followed[event.session]
            told, self._untold = self._untold, []
            return HookDecision(warnings=tuple(told))

        events = ("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd")
        return PythonHook(call=follow, on=events, name="mirror")

    # --- one write after the other -------------------------------------------------------------

    def _next(self, session: str) -> asyncio.Task[Path | None]:
        """The write that has not begun to read yet: it will tell everything that is there now."""
        waiting = self._waiting.get(session)
        if waiting is None:
            work = self._in_turn(session, self._running.get(session))
            waiting = asyncio.get_running_loop().create_task(work)
            self._waiting[session] = waiting
        return waiting

    async def _in_turn(self, session: str, before: asyncio.Task[Path | None] | None) -> Path | None:
        if before is not None:
            await asyncio.wait((before,))
        self._running[session] = self._waiting.pop(session)
        try:
            return await self._rewrite(session)
        finally:
            del self._running[session]

    async def _rewrite(self, session_id: str) -> Path | None:
        self.follow(session_id)
        as_of = time.time_ns()
        try:
            session = await self.store.session(session_id)
            path = await self.store.path(session.id)
            work = _MirrorJob(self.folder, self.format, session, path, as_of)
            kept = await asyncio.to_thread(_mirror, work)
        except Exception as error:  # noqa: BLE001 - told; a mirror must not end the agent
            why = str(error) or type(error).__name__
            self._warn(f"the mirror of session {session_id} was not written: {why}")
            return None
        if kept.left:
            text = f"{self.folder / kept.left} is not as it was written and is left alone; the "
            self._warn(f"{text}mirror of session {session_id} is {kept.name} from now on")
        if session_id in self._followed:
            self._followed[session_id] = _state(session)
        return self.folder / kept.name

    async def _write_if_changed(self, session_id: str) -> None:
        try:
            state = _state(await self.store.session(session_id))
        except Exception:  # noqa: BLE001 - the write meets it again and tells it
            state = None
        if state is None or state != self._followed.get(session_id):
            await self.write(session_id)

    async def _save_at_times(self) -> None:
        while True:
            await asyncio.sleep(self.autosave_seconds)
            for session in tuple(self._followed):
                await self._write_if_changed(session)

    def _warn(self, text: str) -> None:
        text = one_line(text, _LONGEST_WARNING)
        for told in (self.warnings, self._untold):
            if text not in told:
                told.append(text)
                del told[:-_MOST_WARNINGS]


def _state(session: SessionInfo) -> _MirroredState:
    return _MirroredState(session.head, session.title, session.project)


# --- in a thread: what the file says -----------------------------------------------------------


class _MirrorJob(NamedTuple):
    folder: Path
    format: ExportFormat
    session: SessionInfo
    path: tuple[Entry, ...]
    as_of: int  # nanoseconds since 1970, before anything was read


class _MirrorResult(NamedTuple):
    name: str
    left: str = ""  # the file that was this session's, and is no longer


def _mirror(work: _MirrorJob) -> _MirrorResult:
    header = build_header(work.session, work.path, work.format)
    if work.format == "gemini":
        value = session_file.write(header, work.path)
        names = _names(work, header.get("sessionId"), header.get("startTime"))
    else:
        value = history_server.write(header, work.path)
        names = _names(work, header.get("session_id"), header.get("created_at"))
    return _keep(work, names, encode_json(value))


def _names(work: _MirrorJob, id_: object, start: object) -> Iterator[str]:
    """As the format has it; then with more and more of the id; then with a number."""
    called = id_ if isinstance(id_, str) else work.session.id
    time_ = parse_time(start)
    began = work.session.created if time_ is None else time_
    if work.format == "gemini":
        tried: set[str] = set()
        name = gemini_file_name(called, began)
        while name not in tried:
            yield name
            tried.add(name)
            name = gemini_file_name(called, began, taken=tried.__contains__)
    else:
        name = history_server_file_name(called, began)
        yield name
    for number in range(2, _MOST_NAMES):
        yield f"{name.removesuffix('.json')}-{number}.json"


# --- in a thread: where it is kept -------------------------------------------------------------


class _Fingerprint(NamedTuple):
    """What a content is known by."""

    size: int
    digest: str


_FOREIGN = _Fingerprint(-1, "")


class _FileClaim(msgspec.Struct, frozen=True):
    """Which file is a session's. `wrote` is what may stand in it: before and after the newest
    write, because a crash can come between the claim and the file."""

    file: str = ""
    as_of: int = 0
    wrote: tuple[_Fingerprint, ...] = ()


def _keep(work: _MirrorJob, names: Iterable[str], data: bytes) -> _MirrorResult:
    folder = work.folder
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    own = folder / f".{derived_id('mirror', work.format, work.session.id)}"
    beside = own.with_suffix(".tmp")
    with _locked(own.with_suffix(".claim")) as held:
        beside.unlink(missing_ok=True)  # a crash left it; it may be a second name of the file
        claim = _read_claim(held)
        there = _print_of(folder / claim.file, claim.wrote) if claim.file else None
        # a claim from the future is one of a clock that was wrong
        if work.as_of < claim.as_of <= time.time_ns() and there == claim.wrote[-1]:
            return _MirrorResult(claim.file)
        new = _Fingerprint(len(data), _digest(data))
        if there == new:
            _write_claim(held, msgspec.structs.replace(claim, as_of=work.as_of))
            return _MirrorResult(claim.file)
        try:
            write_durably(beside, data)
            if there is not None and there in claim.wrote:
                _write_claim(held, _FileClaim(claim.file, work.as_of, (there, new)))
                beside.replace(folder / claim.file)
                name = claim.file
            else:
                wanted = itertools.chain((claim.file,) if claim.file else (), names)
                name = _appear(
                    held, beside, (_FileClaim(each, work.as_of, (new,)) for each in wanted)
                )
        finally:
            beside.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # some filesystems cannot
            sync_directory(folder)
    return _MirrorResult(name, claim.file if name != claim.file else "")


def _appear(held: int, beside: Path, claims: Iterable[_FileClaim]) -> str:
    """Under the first of these names that nothing has."""
    for claim in claims:
        path = beside.with_name(claim.file)
        if os.path.lexists(path):
            continue
        _write_claim(held, claim)
        if link_unless_taken(beside, path):
            return claim.file
    raise FileExistsError(errno.EEXIST, "every name that it could have is taken")


def link_unless_taken(beside: Path, path: Path) -> bool:
    """Whether the file got its name: a link fails where a rename would replace."""
    try:
        path.hardlink_to(beside)
    except FileExistsError:
        return False
    except OSError:  # a filesystem without links
        if os.path.lexists(path):
            return False
        beside.replace(path)
    return True


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The claim's file, for one process at a time; the lock ends with its holder."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    held, until = os.open(path, flags, 0o600), time.monotonic() + LOCK_TIMEOUT_SECONDS
    try:
        while not _lock(held):
            if time.monotonic() > until:
                raise TimeoutError(
                    f"another process has been writing it for {LOCK_TIMEOUT_SECONDS:g} seconds"
                )
            time.sleep(0.01)
        yield held
    finally:
        os.close(held)


def _lock(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_claim(held: int) -> _FileClaim:
    try:
        claim = msgspec.json.decode(os.pread(held, _CLAIM_SIZE, 0), type=_FileClaim)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _FileClaim()  # new, or not one of ours: then no file is
    return claim if _NAME.fullmatch(claim.file) and claim.wrote else _FileClaim()


def _write_claim(held: int, claim: _FileClaim) -> None:
    data = msgspec.json.encode(claim).ljust(_CLAIM_SIZE)
    if len(data) > _CLAIM_SIZE or os.pwrite(held, data, 0) < len(data):
        raise OSError(errno.ENOSPC, "the claim on a mirror's file was not written")
    os.fsync(held)


def _print_of(path: Path, expected: Iterable[_Fingerprint]) -> _Fingerprint | None:
    """Of the file that is there, if it is one of those sizes; so nothing endless is read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:  # a link, a socket, something that may not be read
        return _FOREIGN
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size not in {e.size for e in expected}:
            return _FOREIGN
        with os.fdopen(handle, "rb", closefd=False) as stream:
            return _Fingerprint(about.st_size, _digest(stream.read(about.st_size)))
    finally:
        os.close(handle)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def write_durably(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
