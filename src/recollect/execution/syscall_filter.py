"""Which system calls a command may not make, as a program for the kernel's seccomp filter.

Both sandboxes refuse what containers refuse: mounting, namespaces, the kernel's keys, modules and
clocks, io_uring (which acts unseen by filters), injection into terminals, rare kinds of sockets,
and files that would run with their owner's rights, whoever starts them.
Under Landlock, which does not see them, calls that change modes, owners and times go to the
supervisor (`attribute_calls`), extended attributes and the shared memory of System V are refused,
and there is no socket without the network, and never a local one. Pure; the standard library only,
because the supervisor starts without packages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

_EPERM, _EACCES, _ENOSYS, _EOPNOTSUPP, _EAFNOSUPPORT = 1, 13, 38, 95, 97
_ALLOW, _NOTIFY, _KILL, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_MACHINES = tuple(_ARCHITECTURES)
_NEW_NAMESPACES = 0x7E020080
# TIOCSTI types into a terminal, TIOCLINUX pastes into one.
_TERMINAL_INPUT = (0x5412, 0x541C)
_FILE_FLAGS = (0x40086602, 0x40046602, 0x401C5820)  # of chattr
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_HERE = 0xFFFFFF9C  # AT_FDCWD
SET_USER = 0o4000  # of a file's mode
_CREATES = 0x400040  # O_CREAT, and what O_TMPFILE has beside O_DIRECTORY
# Numbers on x86-64 and on ARM64; -1: the machine does not have it.
_NUMBERS = """
mount 165 40|umount2 166 39|pivot_root 155 41|chroot 161 51|setns 308 268|open_tree 428 428
move_mount 429 429|fsopen 430 430|fsconfig 431 431|fsmount 432 432|fspick 433 433
mount_setattr 442 442|open_tree_attr 467 467|add_key 248 217|request_key 249 218|keyctl 250 219
bpf 321 280|perf_event_open 298 241|userfaultfd 323 282|kexec_load 246 104|kexec_file_load 320 294
init_module 175 105|finit_module 313 273|delete_module 176 106|open_by_handle_at 304 265
quotactl 179 60|quotactl_fd 443 443|reboot 169 142|swapon 167 224|swapoff 168 225|acct 163 89
settimeofday 164 170|clock_settime 227 112|clock_adjtime 305 266|iopl 172 -1|ioperm 173 -1
syslog 103 116|fanotify_init 300 262|io_uring_setup 425 425|vhangup 153 58|lookup_dcookie 212 18
uselib 134 -1|nfsservctl 180 42|sethostname 170 161|setdomainname 171 162|clone3 435 435
clone 56 220|unshare 272 97|ioctl 16 29|socket 41 198|prlimit64 302 261
shmget 29 194|shmat 30 196|semget 64 190|msgget 68 186|mq_open 240 180|mq_unlink 241 181
setxattr 188 5|lsetxattr 189 6|fsetxattr 190 7|removexattr 197 14|lremovexattr 198 15
fremovexattr 199 16|setxattrat 463 463|removexattrat 466 466|file_setattr 469 469
chmod 90 -1|fchmod 91 52|fchmodat 268 53|fchmodat2 452 452|chown 92 -1|fchown 93 55|lchown 94 -1
fchownat 260 54|utime 132 -1|utimes 235 -1|futimesat 261 -1|utimensat 280 88
creat 85 -1|mknod 133 -1|mknodat 259 33|openat2 437 437
open 2 -1|openat 257 56|link 86 -1|linkat 265 37|unlink 87 -1|unlinkat 263 35
"""
_TABLE = {
    name: dict(zip(_MACHINES, map(int, numbers), strict=True))
    for name, *numbers in (item.split() for item in _NUMBERS.replace("\n", "|").split("|") if item)
}
_REFUSED = """
mount umount2 pivot_root chroot setns open_tree move_mount fsopen fsconfig fsmount fspick
mount_setattr open_tree_attr add_key request_key keyctl bpf perf_event_open userfaultfd kexec_load
kexec_file_load init_module finit_module delete_module open_by_handle_at quotactl quotactl_fd reboot
swapon swapoff acct settimeofday clock_settime clock_adjtime iopl ioperm syslog fanotify_init
io_uring_setup vhangup lookup_dcookie uselib nfsservctl sethostname setdomainname
"""
_SHARED_MEMORY = "shmget shmat semget msgget mq_open mq_unlink"
_EXTENDED_ATTRIBUTES = """
setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr setxattrat removexattrat
file_setattr
"""
ATTRIBUTE_CALLS = """
chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat
"""
# glibc opens shared memory and semaphores with O_NOFOLLOW, or creates them with O_EXCL.
_NOFOLLOW = {"x86_64": 0x20000, "aarch64": 0x8000}
_DIRECTORY = {"x86_64": 0x10000, "aarch64": 0x4000}
_EXCLUSIVE = 0x80

_Line = tuple[int, int, int, int]


class FilterOptions(NamedTuple):
    """What differs between the sandboxes."""

    landlock: bool  # refuse what Landlock does not see
    network: bool = False
    notify: bool = False  # send calls that change attributes to a listener, else refuse them


def can_filter(machine: str) -> bool:
    return machine in _ARCHITECTURES


def call_names(machine: str) -> dict[int, str]:
    return {numbers[machine]: name for name, numbers in _TABLE.items()}


@cache
def build_filter(machine: str, options: FilterOptions) -> bytes:
    """The program, for a machine that `can_filter`."""
    program: list[_Line] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),  # the calls of another machine have other numbers
        (_LOAD, 0, 0, 0),
    ]
    if machine == "x86_64":  # x32, which has numbers of its own
        program += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    for names, answer in _answers(options):
        for name in names.split():
            if (number := _TABLE[name][machine]) >= 0:
                program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
    for name, tests in _conditions(machine, options):
        if (number := _TABLE[name][machine]) >= 0:
            block = [*tests, (_RETURN, 0, 0, _ALLOW)]
            program += [(_EQUAL, 0, len(block), number), *block]
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in program)


def _answers(options: FilterOptions) -> Iterable[tuple[str, int]]:
    """Calls that get one answer whatever their arguments are."""
    yield _REFUSED, _ERRNO | _EPERM
    # what they are to do is in memory; libraries fall back to clone and openat
    yield "clone3 openat2", _ERRNO | _ENOSYS
    if options.landlock:
        yield _SHARED_MEMORY, _ERRNO | _EACCES
        yield _EXTENDED_ATTRIBUTES, _ERRNO | _EOPNOTSUPP
        yield ATTRIBUTE_CALLS, _NOTIFY if options.notify else _ERRNO | _EPERM
    if options.landlock and options.notify:
        yield "link unlink", _NOTIFY
    if options.landlock and not options.network:
        yield "socket", _ERRNO | _EACCES


def _conditions(machine: str, options: FilterOptions) -> Iterable[tuple[str, Sequence[_Line]]]:
    """Calls that depend on an argument; the last line of each block allows."""
    for name in ("clone", "unshare"):
        yield name, (_argument(0), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), _refuse(_EPERM))
    injections = _TERMINAL_INPUT + (_FILE_FLAGS if options.landlock else ())
    tests = [line for number in injections for line in ((_EQUAL, 0, 1, number), _refuse(_EPERM))]
    yield "ioctl", (_argument(1), *tests)
    if options.network or not options.landlock:
        families = (_INET, _INET6, _NETLINK, *(() if options.landlock else (_UNIX,)))
        known = [(_EQUAL, len(families) - number, 0, f) for number, f in enumerate(families)]
        yield "socket", (_argument(0), *known, _refuse(_EAFNOSUPPORT))
    if options.landlock:
        # the limits of another process; its own are process 0
        low, high = _argument(2), (_LOAD, 0, 0, 16 + 8 * 2 + 4)
        sets = (low, (_EQUAL, 0, 2, 0), high, (_EQUAL, 1, 0, 0), _refuse(_EPERM))
        yield "prlimit64", (_argument(0), (_EQUAL, len(sets), 0, 0), *sets)
    for name, mode in (("creat", 1), ("mknod", 1), ("mknodat", 2)):
        yield name, _refuse_set_user(mode)
    if not options.landlock:  # else they go to the supervisor
        for name, mode in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2)):
            yield name, _refuse_set_user(mode)
    opened_by_us = options.landlock and options.notify
    for name, flags in (("open", 1), ("openat", 2)):
        shared = (_argument(flags), *_shared_memory_flags(machine)) if opened_by_us else ()
        refused = _refuse_set_user(flags + 1)
        creates = (_argument(flags), (_ANY_BIT, 0, len(refused), _CREATES))
        yield name, (*creates, *refused, *shared)
    if opened_by_us:
        for name in ("linkat", "unlinkat"):
            yield name, (_argument(0), (_EQUAL, 0, 1, _HERE), (_RETURN, 0, 0, _NOTIFY))


def _refuse_set_user(mode: int) -> Sequence[_Line]:
    return (_argument(mode), (_ANY_BIT, 0, 1, SET_USER), _refuse(_EPERM))


def _shared_memory_flags(machine: str) -> Sequence[_Line]:
    return (
        (_ANY_BIT, 2, 0, _DIRECTORY[machine]),
        (_ANY_BIT, 0, 1, _NOFOLLOW[machine] | _EXCLUSIVE),
        (_RETURN, 0, 0, _NOTIFY),
    )


def _argument(number: int) -> _Line:
    return (_LOAD, 0, 0, 16 + 8 * number)  # the lower half: flags and descriptors are 32 bits


def _refuse(code: int) -> _Line:
    return (_RETURN, 0, 0, _ERRNO | code)
