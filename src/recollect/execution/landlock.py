"""Restricts itself with Landlock and seccomp, then becomes the command: a program of its own.

`python -I -S landlock.py JSON -- program argument …`, where the JSON holds `LandlockRules`. Files
under no `closed` path, or under an `open` one, may be read and run; files under `writable` and not
under `kept` may be written. Landlock only knows what is allowed below a folder, so nothing new can
be created directly in a folder that holds something kept. No socket can be created without the
network, and no local one ever: Landlock does not see those, and the control socket of a container
is a way out. Any failure ends the program with status 125 before the command begins.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple, NoReturn

SETUP_FAILED = 125  # the exit status when the command was not started
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every machine
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_MAX_RULES = 50_000
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom")
# For each machine: how seccomp names it, and the numbers of socket and io_uring_setup.
_MACHINES = {"x86_64": (0xC000003E, 41, 425), "aarch64": (0xC00000B7, 198, 425)}


class LandlockRules(NamedTuple):
    closed: tuple[str, ...]
    open: tuple[str, ...]
    writable: tuple[str, ...]
    kept: tuple[str, ...]
    network: bool


def abi_version() -> int:
    """The kernel's version of Landlock; 0 when it has none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(_libc().syscall(_CREATE, None, 0, 1)))


def can_filter_sockets() -> bool:
    return os.uname().machine in _MACHINES


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def paths_without(folder: str, without: Iterable[str]) -> Iterator[str]:
    """The fewest paths that together hold all that is under `folder` except `without`."""
    avoided = tuple(without)
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        inside = [item for item in avoided if is_below(item, path)]
        if path in inside or any(is_below(path, item) for item in avoided):
            continue
        if not inside:
            yield path
            continue
        try:
            with os.scandir(path) as found:
                waiting += [item.path for item in found if not item.is_symlink()]
        except OSError:
            continue


def restrict(rules: LandlockRules) -> None:
    """Hold this process, and all that it starts, to the rules."""
    version = abi_version()
    if version < 1:
        raise OSError("this kernel has no Landlock")
    # everything that this version can forbid in files
    added = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL}
    handled = (1 << 13) - 1 + sum(right for since, right in added.items() if version >= since)
    # bind and connect of TCP since the fourth version; abstract sockets and signals since the sixth
    network = 3 if version >= 4 and not rules.network else 0
    scoped = 3 if version >= 6 else 0
    layout = struct.pack("=QQQ", handled, network, scoped)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _syscall(_CREATE, layout[:size], size, 0)
    allowed = _access_by_path(rules, handled)
    if len(allowed) > _MAX_RULES:
        raise OSError(f"{len(allowed):,} rules would be needed")
    for path, access in allowed.items():
        _add_rule(ruleset, path, access & handled)
    libc = _libc()
    if libc.prctl(38, 1, 0, 0, 0):  # no new privileges: sudo and its kin gain nothing
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")
    _syscall(_RESTRICT, ruleset, 0)
    os.close(ruleset)
    if can_filter_sockets():
        _refuse_sockets(network=rules.network)
    _drop_capabilities()


def _drop_capabilities() -> None:
    """Drop root's too: some of them allow reading other processes' memory despite Landlock."""
    libc = _libc()
    if os.geteuid() == 0:
        for capability in range(64):
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP; refused beyond the last one
    libc.prctl(47, 4, 0, 0, 0)  # PR_CAP_AMBIENT, clear all
    if libc.capset(struct.pack("=Ii", 0x20080522, 0), bytes(24)):
        raise OSError(ctypes.get_errno(), "capabilities could not be dropped")


def _access_by_path(rules: LandlockRules, handled: int) -> dict[str, int]:
    allowed = dict.fromkeys(paths_without("/", rules.closed), _READ)
    allowed["/"] = allowed.get("/", 0) | _READ_DIR  # names may be listed, of / and of the home
    for root in rules.open:
        for path in paths_without(root, _paths_below(rules.closed, root)):
            allowed[path] = allowed.get(path, 0) | _READ
    for root in rules.writable:
        for path in paths_without(root, (*_paths_below(rules.closed, root), *rules.kept)):
            allowed[path] = allowed.get(path, 0) | handled
    for path in _DEVICES:
        allowed[path] = allowed.get(path, 0) | _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL
    return allowed


def _paths_below(paths: Iterable[str], folder: str) -> tuple[str, ...]:
    return tuple(path for path in paths if path != folder and is_below(path, folder))


def _add_rule(ruleset: int, path: str, access: int) -> None:
    try:
        found = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # gone, or not ours to open: then it stays closed
    try:
        if not os.path.isdir(f"/proc/self/fd/{found}"):  # noqa: PTH112 - a program of few imports
            access &= _FILE_RIGHTS
        if access:
            _syscall(_ADD, ruleset, 1, struct.pack("=Qi", access, found), 0)
    finally:
        os.close(found)


def _refuse_sockets(*, network: bool) -> None:
    """Filter system calls: no socket at all, or with the network no local one.

    io_uring could create sockets unseen, and so could the calls of another machine.
    """
    architecture, socket, io_uring = _MACHINES[os.uname().machine]
    load, jump_equal, jump_from, give = 0x20, 0x15, 0x35, 0x06
    refuse = (give, 0, 0, 0x00050000 | 13)  # EACCES
    program = [
        (load, 0, 0, 4),
        (jump_equal, 1, 0, architecture),
        (give, 0, 0, 0x80000000),  # kills the process
        (load, 0, 0, 0),
        (jump_from, 5, 0, 0x40000000),  # x32, to `refuse`
        (jump_equal, 4, 0, io_uring),
        (jump_equal, 0, 2, socket),
        (load, 0, 0, 16),
        (jump_equal, 1, 0, 1) if network else (jump_from, 1, 1, 0),  # AF_UNIX, or any
        (give, 0, 0, 0x7FFF0000),
        refuse,
    ]
    code = b"".join(struct.pack("=HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    head = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    if _libc().prctl(22, 2, head, 0, 0):
        raise OSError(ctypes.get_errno(), "the filter of system calls was refused")


def _syscall(number: int, *arguments: object) -> int:
    result: int = _libc().syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def tie_to_parent() -> None:
    """End when our parent ends, and adopt what the command leaves behind, so that it ends too."""
    libc = _libc()
    libc.prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG
    libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: kept by the program that we become


def main(arguments: list[str]) -> NoReturn:
    try:
        if sys.platform.startswith("linux"):
            tie_to_parent()
        given = json.loads(arguments[0])
        if given is not None:
            restrict(LandlockRules(**given))
        os.execv(arguments[2], arguments[2:])  # noqa: S606 - to become the command is the purpose
    except (OSError, ValueError, TypeError, LookupError) as error:
        sys.stderr.write(f"the sandbox could not be set up: {error}\n")
    sys.exit(SETUP_FAILED)


if __name__ == "__main__":
    main(sys.argv[1:])
