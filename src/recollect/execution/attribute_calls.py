"""Carries out, for a command under Landlock, the system calls that Landlock does not see.

The kernel stops the command at each of these calls and asks our supervisor (seccomp's user
notification). For `chmod`, `chown`, `utime` and their kin it opens the file that the call names,
without the links of /proc, looks where that file really is, and acts on its own descriptor if it
lies in a writable folder. The call itself never runs, so nothing can be exchanged between look and
act. What is opened, linked or removed directly in /dev/shm is opened, linked or removed in the
session's own folder; any other such call goes on and meets Landlock. The standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from recollect.execution.landlock import is_below, libc
from recollect.execution.syscall_filter import SET_USER

_RECEIVE, _SEND, _VALID, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_CONTINUE, _ADD_AND_ANSWER = 1, 2
_OPENAT2, _NO_MAGIC_LINKS = 437, 2
_HERE, _EMPTY_PATH, _NO_FOLLOW = -100, 0x1000, 0x100
_NOW = (1 << 30) - 1
_SHARED_MEMORY = b"/dev/shm/"
_OWN_DESCRIPTOR = re.compile(rb"/(?:proc/(?:self|thread-self|[0-9]+)|dev)/fd/([0-9]+)")
_PAGE = 4096


class WritablePlaces(NamedTuple):
    roots: tuple[str, ...]
    closed: tuple[str, ...]  # where nothing may be written, wherever they are
    shared_memory: str  # a folder of the session's own in place of /dev/shm

    def hold(self, path: str) -> bool:
        for root in (root for root in self.roots if is_below(path, root)):
            inner = (item for item in self.closed if item != root and is_below(item, root))
            if not any(is_below(path, item) for item in inner):
                return True
        return False


class _Call(NamedTuple):
    id: int
    process: int
    name: str
    arguments: tuple[int, ...]


class _GoOn(Exception):
    """The call is not ours: the kernel carries it out."""


def answer_call(listener: int, names: dict[int, str], places: WritablePlaces) -> None:
    """Take one call from the listener, carry it out and answer it."""
    received = bytearray(80)
    try:
        fcntl.ioctl(listener, _RECEIVE, received)
    except OSError:
        return  # the process was killed meanwhile
    number, process, _, call, _, _, *arguments = struct.unpack("=QIIiIQ6Q", received)
    asked = _Call(number, process, names.get(call, ""), tuple(arguments))
    code, flags = 0, 0
    try:
        if _carry_out(listener, asked, places):
            return  # answered together with its descriptor
    except _GoOn:
        flags = _CONTINUE
    except OSError as error:
        code = -(error.errno or errno.EPERM)
    reply = struct.pack("=QqiI", number, 0, code, flags)
    try:
        fcntl.ioctl(listener, _SEND, reply)
    except OSError:
        return


def _carry_out(listener: int, call: _Call, places: WritablePlaces) -> bool:
    """Act for the call; True if it was answered too."""
    if call.name in ("open", "openat"):
        return _open_shared_memory(listener, call, places.shared_memory)
    if call.name in ("link", "linkat", "unlink", "unlinkat"):
        _change_shared_memory(listener, call, places.shared_memory)
        return False
    directory, path, follow, act = _read_change(listener, call)
    file = _open_file(listener, call, directory, path, follow=follow)
    try:
        where = os.readlink(f"/proc/self/fd/{file}")
        if not places.hold(where):
            raise PermissionError(errno.EPERM, "outside the writable folders")
        act(f"/proc/self/fd/{file}".encode())
    finally:
        os.close(file)
    return False


_Act = Callable[[bytes], None]


def _read_change(listener: int, call: _Call) -> tuple[int, bytes, bool, _Act]:
    """The folder and path that a call names, whether it follows links, and what it does."""
    name, given = call.name, call.arguments
    if name in ("fchmod", "fchown"):
        directory, path, rest, flags = _signed(given[0]), b"", given[1:], 0
    elif name in ("chmod", "chown", "lchown", "utime", "utimes"):
        directory, rest = _HERE, given[1:]
        path = _read_text(listener, call, given[0])
        flags = _NO_FOLLOW if name == "lchown" else 0
    else:
        directory, rest = _signed(given[0]), given[2:]
        path = _read_text(listener, call, given[1]) if given[1] else b""
        place = {"fchownat": 4, "fchmodat2": 3, "utimensat": 3}.get(name)
        flags = given[place] if place is not None else 0
        if not path and given[1] and not flags & _EMPTY_PATH:
            raise FileNotFoundError(errno.ENOENT, "empty path")
    follow = not flags & _NO_FOLLOW
    if "chmod" in name:
        if rest[0] & SET_USER:
            raise PermissionError(errno.EPERM, "it would run with its owner's rights")
        return directory, path, follow, lambda file: os.chmod(file, rest[0] & 0o7777)
    if "chown" in name:
        user, group = _signed(rest[0]), _signed(rest[1])
        return directory, path, follow, lambda file: os.chown(file, user, group)
    times = _read_times(listener, call, rest[0])
    return directory, path, follow, lambda file: _set_times(file, times)


def _read_times(listener: int, call: _Call, address: int) -> bytes:
    """Two times as utimensat takes them; none means now."""
    if not address:
        return struct.pack("=4q", 0, _NOW, 0, _NOW)
    if call.name == "utime":
        first, second = struct.unpack("=2q", _read_memory(listener, call, address, 16))
        return struct.pack("=4q", first, 0, second, 0)
    raw = _read_memory(listener, call, address, 32)
    if call.name == "utimensat":
        return raw
    first, micro, second, micros = struct.unpack("=4q", raw)
    return struct.pack("=4q", first, micro * 1000, second, micros * 1000)


def _set_times(file: bytes, times: bytes) -> None:
    if libc().utimensat(_HERE, file, times, 0):
        raise OSError(ctypes.get_errno(), "utimensat")


def _open_file(listener: int, call: _Call, directory: int, path: bytes, *, follow: bool) -> int:
    """A descriptor of the file that a call names, which neither reads nor writes it."""
    if (own := _OWN_DESCRIPTOR.fullmatch(path)) is not None:  # how libraries spell an empty path
        directory, path = int(own[1]), b""
    base = "cwd" if directory == _HERE else f"fd/{directory}"
    if directory < 0 and directory != _HERE:
        raise OSError(errno.EBADF, "no such descriptor")
    start = os.open(f"/proc/{call.process}/{base}", os.O_PATH | os.O_CLOEXEC)
    try:
        _check_valid(listener, call)
        if not path:
            return os.dup(start)
        flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        how = struct.pack("=3Q", flags, 0, _NO_MAGIC_LINKS)
        found: int = libc().syscall(_OPENAT2, start, path, how, len(how))
        if found < 0:
            raise OSError(ctypes.get_errno(), "openat2")
        return found
    finally:
        os.close(start)


def _open_shared_memory(listener: int, call: _Call, folder: str) -> bool:
    text, flags, mode = call.arguments[:3] if call.name == "open" else call.arguments[1:4]
    name = _shared_name(_read_text(listener, call, text))
    allowed = os.O_ACCMODE | os.O_CREAT | os.O_EXCL | os.O_TRUNC
    flags = flags & allowed | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    file = os.open(os.path.join(folder.encode(), name), flags, mode & 0o777)
    try:
        layout = struct.pack("=QIIII", call.id, _ADD_AND_ANSWER, file, 0, os.O_CLOEXEC)
        fcntl.ioctl(listener, _ADD_DESCRIPTOR, layout)
    finally:
        os.close(file)
    return True


def _change_shared_memory(listener: int, call: _Call, folder: str) -> None:
    given, top = call.arguments, folder.encode() + b"/"
    if call.name in ("unlink", "unlinkat"):
        text = given[0] if call.name == "unlink" else given[1]
        os.unlink(top + _shared_name(_read_text(listener, call, text)))
        return
    first, second = (given[0], given[1]) if call.name == "link" else (given[1], given[3])
    old = _shared_name(_read_text(listener, call, first))
    os.link(top + old, top + _shared_name(_read_text(listener, call, second)))


def _shared_name(path: bytes) -> bytes:
    name = path.removeprefix(_SHARED_MEMORY)
    if name == path or b"/" in name or name in (b"", b".", b".."):
        raise _GoOn
    return name


def _read_text(listener: int, call: _Call, address: int) -> bytes:
    text = b""
    while len(text) < _PAGE:
        until = _PAGE - (address + len(text)) % _PAGE  # the next page may not be there
        piece, ended, _ = _read_memory(listener, call, address + len(text), until).partition(b"\0")
        text += piece
        if ended:
            return text
    raise OSError(errno.ENAMETOOLONG, "path")


def _read_memory(listener: int, call: _Call, address: int, size: int) -> bytes:
    memory = os.open(f"/proc/{call.process}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check_valid(listener, call)  # else it is the memory of another process
        found = os.pread(memory, size, address)
    except (OSError, OverflowError):
        raise OSError(errno.EFAULT, "memory") from None
    finally:
        os.close(memory)
    if len(found) < size and b"\0" not in found:
        raise OSError(errno.EFAULT, "memory")
    return found


def _check_valid(listener: int, call: _Call) -> None:
    fcntl.ioctl(listener, _VALID, struct.pack("=Q", call.id))


def _signed(value: int) -> int:
    return ctypes.c_int(value & 0xFFFFFFFF).value
