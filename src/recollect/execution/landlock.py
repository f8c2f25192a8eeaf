"""Holds the process that calls it, and all that it starts, to rules of the kernel's Landlock.

Files under no `closed` path, or under an `open` one, may be read and run; files under `writable`
may be written. Of the devices only the harmless ones can be opened. No process outside can be
signaled or traced, from the sixth version of Landlock on. Landlock only knows what is allowed below
a folder: names inside a writable folder are protected by other means (`protected_files`). What
Landlock does not see is refused by `syscall_filter`. The standard library only, because the
supervisor starts without packages.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every machine
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_MAX_RULES = 50_000
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_CLOSED = ("/dev",)  # terminals, disks, other programs' shared memory
_NO_NEW_PRIVILEGES, _BOUNDING_SET_DROP, _AMBIENT, _CLEAR_ALL = 38, 24, 47, 4
_SCOPED = 3  # abstract sockets and signals


class LandlockRules(NamedTuple):
    closed: tuple[str, ...]
    open: tuple[str, ...]
    writable: tuple[str, ...]
    network: bool
    held: tuple[str, ...] = ()  # not writable, wherever they are


def abi_version() -> int:
    """The kernel's version of Landlock; 0 when it has none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(libc().syscall(_CREATE, None, 0, 1)))


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def paths_without(folder: str, without: Iterable[str]) -> Iterator[str]:
    """The fewest paths that together hold all that is under `folder` except `without`."""
    avoided = frozenset(without)
    if any(is_below(folder, item) for item in avoided):
        return
    above = {parent for item in avoided for parent in _parents(item)}
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        if path in avoided:
            continue
        if path not in above:
            yield path
            continue
        try:
            with os.scandir(path) as found:
                waiting += [item.path for item in found if not item.is_symlink()]
        except OSError:
            continue


def _parents(path: str) -> Iterator[str]:
    while path not in ("", "/"):
        path = os.path.dirname(path)
        yield path


def restrict(rules: LandlockRules) -> None:
    """Hold this process, and all that it starts, to the rules, without any privileges."""
    version = abi_version()
    if version < 1:
        raise OSError("this kernel has no Landlock")
    # everything that this version can forbid in files
    added = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL}
    handled = (1 << 13) - 1 + sum(right for since, right in added.items() if version >= since)
    # bind and connect of TCP since the fourth version
    network = 3 if version >= 4 and not rules.network else 0
    allowed = _access_by_path(rules, handled)
    if len(allowed) > _MAX_RULES:
        raise OSError(f"{len(allowed):,} rules would be needed")
    if libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):  # sudo and its kin gain nothing
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")
    _enter_domain(version, handled, network, allowed)
    _drop_capabilities()


def restrict_further() -> None:
    """Enter a domain inside our own: from there, our process can be neither traced nor signaled."""
    version = abi_version()
    # every domain denies moves between folders unless it names them itself
    access = _EXECUTE | (_REFER if version >= 2 else 0)
    _enter_domain(version, access, 0, {"/": access})


def _enter_domain(version: int, handled: int, network: int, allowed: dict[str, int]) -> None:
    layout = struct.pack("=QQQ", handled, network, _SCOPED)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _syscall(_CREATE, layout[:size], size, 0)
    try:
        for path, access in allowed.items():
            _add_rule(ruleset, path, access & handled)
        _syscall(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _drop_capabilities() -> None:
    """Drop root's too: some of them allow reading other processes' memory despite Landlock."""
    if os.geteuid() == 0:
        for capability in range(64):
            libc().prctl(_BOUNDING_SET_DROP, capability, 0, 0, 0)  # refused beyond the last one
    libc().prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    if libc().capset(struct.pack("=Ii", 0x20080522, 0), bytes(24)):
        raise OSError(ctypes.get_errno(), "capabilities could not be dropped")


def _access_by_path(rules: LandlockRules, handled: int) -> dict[str, int]:
    allowed = dict.fromkeys(paths_without("/", (*rules.closed, *_CLOSED)), _READ)
    allowed["/"] = allowed.get("/", 0) | _READ_DIR  # names may be listed, of / and of the home
    for root in rules.open:
        for path in paths_without(root, _paths_below(rules.closed, root)):
            allowed[path] = allowed.get(path, 0) | _READ
    for root in rules.writable:
        for path in paths_without(root, _paths_below((*rules.closed, *rules.held), root)):
            allowed[path] = allowed.get(path, 0) | handled & ~_IOCTL
    for path in _DEVICES:
        allowed[path] = _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL
    return allowed


def _paths_below(paths: Iterable[str], folder: str) -> tuple[str, ...]:
    return tuple(path for path in paths if path != folder and is_below(path, folder))


def _add_rule(ruleset: int, path: str, access: int) -> None:
    try:
        found = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # gone, or not ours to open: then it stays closed
    try:
        if not stat.S_ISDIR(os.fstat(found).st_mode):
            access &= _FILE_RIGHTS
        if access:
            _syscall(_ADD, ruleset, 1, struct.pack("=Qi", access, found), 0)
    finally:
        os.close(found)


def _syscall(number: int, *arguments: object) -> int:
    result: int = libc().syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result


@cache
def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
