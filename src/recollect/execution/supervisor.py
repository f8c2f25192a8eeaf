"""Starts one command, owns all its processes and ends them: a program of its own.

`serve` runs in the process of the fork server: for each message on its standard input, a socket, it
forks a supervisor. The message brings descriptors: of a pipe that recollect holds, of the output,
of a file with a `CommandPlan`, of a pipe for the report, and those that the command gets. As soon
as the first pipe is closed, by recollect or by its death, everything is killed. The supervisor
adopts orphans, so nothing leaves it. Under Landlock it restricts itself first, then the command
further, and answers the calls that Landlock does not see. It watches over protected files while the
command runs and checks them when all has ended. A failure before the command begins is the report.
The standard library only, all imported before the first command: no command can change it.
"""

from __future__ import annotations

import _socket
import ctypes
import fcntl
import gc
import os
import select
import signal
import struct
import time
from contextlib import suppress
from typing import NoReturn

from recollect.execution import landlock, process_family, syscall_filter
from recollect.execution.attribute_calls import WritablePlaces, answer_call
from recollect.execution.command_plan import (
    FIRST_DESCRIPTOR,
    CommandPlan,
    CommandReport,
    decode_plan,
    encode_report,
)
from recollect.execution.landlock import LandlockRules, libc
from recollect.execution.protected_files import ProtectedFiles

SETUP_FAILED = 125  # the exit status when the command was not started
_MAX_REPAIRS = 40  # all of them must fit into the pipe
_WATCH_SECONDS = 0.25  # between two looks at the protected files
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_NEW_LISTENER, _KILLABLE = 8, 32
_RIGHTS = (1, 1)  # SOL_SOCKET, SCM_RIGHTS
_CLOSE_ON_EXEC = 0x40000000  # MSG_CMSG_CLOEXEC
_OWN_DESCRIPTORS = 4  # in a message, before those of the command


class _Supervisor:
    def __init__(self, plan: CommandPlan) -> None:
        self._plan = plan
        self._machine = os.uname().machine
        self._names = syscall_filter.call_names(self._machine) if self._can_filter else {}
        self._bounded = False
        self._repairs: list[str] = []
        self._status: int | None = None

    @property
    def _can_filter(self) -> bool:
        return syscall_filter.can_filter(self._machine)

    def run(self) -> CommandReport:
        parent = os.getppid()
        process_family.adopt_orphans()
        woken = _watch_children()
        plan = self._plan
        paths, before = plan.protected, plan.before
        if plan.rules is not None:
            landlock.restrict(plan.rules)
            self._bounded = process_family.bounds_signals(parent)
        if select.select([0], [], [], 0)[0]:
            return CommandReport()  # recollect has ended meanwhile
        files = None if paths is None or before is None else ProtectedFiles(paths, before)
        child, listener = self._start()
        self._follow(child, woken, listener, files)
        ended, survivors = process_family.end_family(bounded=self._bounded)
        if self._status is None and child in ended:
            self._status = None if ended[child] == signal.SIGKILL else ended[child]
        if files is not None:
            if plan.checks is not None:  # another command may exchange folders for links meanwhile
                landlock.restrict(plan.checks)
            self._repairs += files.check(last=True)
        code = None if self._status is None else os.waitstatus_to_exitcode(self._status)
        return CommandReport(code, survivors, tuple(dict.fromkeys(self._repairs))[:_MAX_REPAIRS])

    def _follow(self, child: int, woken: int, listener: int, files: ProtectedFiles | None) -> None:
        """Wait for the command's end or for that of recollect, and answer meanwhile."""
        poll = select.poll()
        for descriptor in (0, woken, listener):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        watches = files is not None and self._plan.rules is not None
        looked = time.monotonic()
        rules = self._plan.rules or LandlockRules((), (), (), network=False)
        closed = (*rules.closed, *rules.held)
        places = WritablePlaces(rules.writable, closed, self._plan.shared_memory)
        while True:
            ready = dict(poll.poll(int(_WATCH_SECONDS * 1000) if watches else None))
            if 0 in ready:
                return
            if woken in ready:
                with suppress(BlockingIOError):
                    os.read(woken, 4096)
                ended = process_family.reap()
                if child in ended:
                    self._status = ended[child]
                    return
            if ready.get(listener, 0) & select.POLLIN:
                answer_call(listener, self._names, places)
            elif ready.get(listener, 0):
                poll.unregister(listener)  # the last process with the filter has ended
            if watches and files is not None and time.monotonic() - looked >= _WATCH_SECONDS:
                self._repairs += files.check(last=False)
                looked = time.monotonic()

    def _start(self) -> tuple[int, int]:
        """Start the command; its id, and the listener for its calls or -1."""
        ours, theirs = _socket.socketpair()
        me = os.getpid()
        child = os.fork()
        if not child:
            try:
                ours.close()
                self._become_command(me, theirs)
            except BaseException as error:  # noqa: BLE001 - this copy of us must not live on
                _fail(error)
        theirs.close()
        _, ancillary, _, _ = ours.recvmsg(1, 64)
        ours.close()
        received = [struct.unpack("=i", data)[0] for *_, data in ancillary]
        return child, received[0] if received else -1

    def _become_command(self, parent: int, channel: _socket.socket) -> NoReturn:
        plan = self._plan
        os.setsid()  # no controlling terminal
        process_family.end_with_parent(parent)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        for number in range(len(plan.descriptors)):
            os.set_inheritable(FIRST_DESCRIPTOR + number, True)  # noqa: FBT003
        os.chdir(plan.directory)
        if plan.rules is not None:
            landlock.restrict_further()
            self._filter_calls(channel, plan.rules)
        channel.close()
        words = [word.encode("utf-8", "surrogateescape") for word in plan.words]
        os.execve(words[0], words, plan.environment)  # noqa: S606 - to become the command

    def _filter_calls(self, channel: _socket.socket, rules: LandlockRules) -> None:
        if not self._can_filter:
            return
        for flags in (_NEW_LISTENER | _KILLABLE, _NEW_LISTENER, 0):
            program = _landlock_filter(self._machine, network=rules.network, notify=bool(flags))
            buffer = ctypes.create_string_buffer(program, len(program))
            head = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
            made = libc().syscall(_SECCOMP[self._machine], 1, flags, head)
            if made >= 0:
                break
        else:
            raise OSError(ctypes.get_errno(), "the filter of system calls was refused")
        if flags:
            channel.sendmsg([b"x"], [(*_RIGHTS, struct.pack("=i", made))])
            os.close(made)


def _landlock_filter(machine: str, *, network: bool, notify: bool) -> bytes:
    options = syscall_filter.FilterOptions(landlock=True, network=network, notify=notify)
    return syscall_filter.build_filter(machine, options)


def _watch_children() -> int:
    """A descriptor that becomes readable when a child has ended."""
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken


def _fail(error: BaseException) -> NoReturn:
    message = f"the sandbox could not be set up: {error}\n"
    with suppress(OSError):
        os.write(2, message.encode("utf-8", "replace"))
    os._exit(SETUP_FAILED)


def _supervise(received: list[int]) -> NoReturn:
    """Be the supervisor of one command, with the descriptors of a message."""
    given = len(received) - _OWN_DESCRIPTORS
    above = FIRST_DESCRIPTOR + given
    # first out of the way: a number may be that of another one of them
    life, output, file, report, *rest = (
        fcntl.fcntl(item, fcntl.F_DUPFD_CLOEXEC, above) for item in received
    )
    for item, number in ((life, 0), (output, 1), (output, 2)):
        os.dup2(item, number)
    for number, item in enumerate(rest):
        os.dup2(item, FIRST_DESCRIPTOR + number, inheritable=False)
    try:
        os.setsid()
        os.write(report, f"{os.getpid()}\n".encode())
        with open(file, "rb") as text:
            plan = decode_plan(text.read())
        os.environ.clear()
        os.environ.update(plan.environment)
        ended = _Supervisor(plan).run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the command must not run unwatched
        process_family.end_family(bounded=False)
        with suppress(OSError):
            os.write(report, encode_report(CommandReport(SETUP_FAILED)))
        _fail(error)
    with suppress(OSError):
        os.write(report, encode_report(ended))
    os._exit(0)


def serve() -> NoReturn:
    """Fork a supervisor for each message, until the socket is closed."""
    channel = _socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    woken = _watch_children()
    gc.freeze()  # else a collection after a fork copies all pages
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        if woken in ready:
            with suppress(BlockingIOError):
                os.read(woken, 4096)
            process_family.reap()
        if channel.fileno() not in ready:
            continue
        message, ancillary, _, _ = channel.recvmsg(1, 4096, _CLOSE_ON_EXEC)
        if not message:
            os._exit(0)
        received = [
            item for *_, data in ancillary for item in struct.unpack(f"={len(data) // 4}i", data)
        ]
        if not os.fork():
            channel.close()
            _supervise(received)
        for item in received:
            os.close(item)
        _prepare_filters()  # while the first command runs


def _prepare_filters() -> None:
    """Build once what otherwise each supervisor would; forks get it with our memory."""
    machine = os.uname().machine
    if syscall_filter.can_filter(machine):
        for network in (False, True):
            _landlock_filter(machine, network=network, notify=True)
