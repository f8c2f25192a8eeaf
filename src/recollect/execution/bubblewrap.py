"""The words with which bubblewrap starts a command, and whether it can.

The root is mounted read-only; secrets and other programs' sockets are covered; /tmp, /dev and the
processes are the command's own; the workspace is writable but for the guarded names, which are
mounted read-only, and the workspace's secrets, over which something is mounted that nobody can
open. Folders above such a secret are mounts of their own: a command could otherwise move them to
where the next command does not look. Nothing in it can make another namespace, and a filter
refuses the system calls that containers refuse.
"""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from recollect.execution.command_plan import FIRST_DESCRIPTOR
from recollect.execution.guarded_names import HeldName, file_mode
from recollect.execution.landlock import is_below
from recollect.execution.syscall_filter import FilterOptions, build_filter, can_filter
from recollect.workspace.workspace_secrets import WorkspaceSecrets

# Where other programs keep their sockets and temporary files: a command sees its own, or nothing.
PRIVATE_FOLDERS = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - named to be hidden
# What names are looked up with; some systems keep it among the sockets.
NAME_SERVICE = ("/run/systemd/resolve", "/run/NetworkManager/resolv.conf", "/run/resolvconf")
SYSTEM_IN_RUN = ("/run/current-system", "/run/opengl-driver")
# Programs of the system, whatever PATH says: it may lead into the workspace.
PROGRAM_PATH = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
_BASE_OPTIONS = (
    *("--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"),
    *("--cap-drop", "ALL"),
)
# /proc is read-only: /proc/sys asks for root's number, not for a privilege, and the kernel runs
# outside every sandbox what root writes to kernel/core_pattern there
_SYSTEM_MOUNTS = (
    *("--ro-bind", "/", "/", "--dev", "/dev"),
    *("--proc", "/proc", "--remount-ro", "/proc"),
)
_WITHOUT_NAMESPACES = ("--unshare-user", "--disable-userns")


class BubblewrapProbe(NamedTuple):
    program: str
    options: tuple[str, ...]  # that this version knows and this system allows
    refusal: str  # why it cannot be used, in its own words; empty when it can


class BubblewrapView(NamedTuple):
    """What a command sees and may write."""

    roots: tuple[str, ...]
    temporary: str
    secrets: tuple[str, ...]
    network: bool
    hidden: WorkspaceSecrets = WorkspaceSecrets()
    covers: tuple[str, str] = ("", "")  # a file and a folder that cannot be opened
    above: tuple[str, ...] = ()  # folders of the workspace that stay where they are


def probe_bubblewrap(program: str) -> BubblewrapProbe:
    for options in (_WITHOUT_NAMESPACES, ()):
        refusal = _try_out(program, options)
        if not refusal:
            break
    return BubblewrapProbe(program, options, refusal)


def _try_out(program: str, options: tuple[str, ...]) -> str:
    line = (program, *_BASE_OPTIONS, *options, "--unshare-net", *_SYSTEM_MOUNTS, "--")
    try:
        tried = subprocess.run(  # noqa: S603 - a fixed program from the system's own folders
            (*line, "/bin/sh", "-c", ":"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {type(error).__name__}"
    if tried.returncode == 0:
        return ""
    said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"bubblewrap refuses: {(said or ['no reason given'])[-1][:200]}"


def secret_paths(secrets: Iterable[str], home: str, roots: tuple[str, ...]) -> tuple[str, ...]:
    """Absolute paths of secrets, where they really are."""
    named = [item if item[0] == "/" else f"{home}/{item}" for item in secrets]
    real = (os.path.realpath(path) if file_mode(path) else path for path in named)
    return tuple(path for path in dict.fromkeys(real) if path not in roots)


@contextmanager
def bubblewrap_words(
    program: str,
    options: tuple[str, ...],
    view: BubblewrapView,
    held: Sequence[HeldName],
    directory: str,
) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """The words before a command's own, and our descriptors for the numbers in them."""
    mounts = _plan_mounts(view)
    # what is hidden is read-only already, and a mount of its own would show it again
    gone = (*view.secrets, *view.hidden.paths)
    held = [n for n in held if not any(is_below(n.path, item) for item in gone)]
    mounts |= {pin: ("--bind", pin) for name in held for pin in name.pins if pin not in mounts}
    for name in (name for name in held if name.found != "link"):
        mounts[name.path] = ("data",) if name.found == "socket" else ("--ro-bind", name.path)
    mounts = _plan_covers(view) | mounts
    descriptors: list[int] = []
    words = list(_SYSTEM_MOUNTS)
    with ExitStack() as stack:
        # what lies deeper is mounted later, or its folder would cover it
        for path in sorted(mounts, key=lambda item: item.count("/")):
            how = mounts[path]
            if how[0] == "data":
                how = ("--ro-bind-data", str(FIRST_DESCRIPTOR + len(descriptors)))
                descriptors.append(os.open(os.devnull, os.O_RDONLY))
                stack.callback(os.close, descriptors[-1])
            words += [*how, path]
        for path in (path for path, how in mounts.items() if how[0] == "--tmpfs"):
            words += ["--remount-ro", path]
        if can_filter(machine := os.uname().machine):
            code = build_filter(machine, FilterOptions(landlock=False, network=view.network))
            words += ["--seccomp", str(FIRST_DESCRIPTOR + len(descriptors))]
            descriptors.append(stack.enter_context(_file_of(code)))
        net = () if view.network else ("--unshare-net",)
        start = (program, *_BASE_OPTIONS, *options, *net)
        yield (*start, *words, "--chdir", directory, "--"), tuple(descriptors)


@contextmanager
def _file_of(data: bytes) -> Iterator[int]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file.fileno()


def _plan_mounts(view: BubblewrapView) -> dict[str, tuple[str, ...]]:
    """What is mounted where, except for the guarded names; later mounts replace earlier ones."""
    mounts: dict[str, tuple[str, ...]] = {}
    for path in view.secrets:
        gone = any(is_below(path, item) for item in PRIVATE_FOLDERS)
        if gone and not any(is_below(path, item) for item in view.roots):
            continue
        if mode := file_mode(path):
            mounts[path] = ("--tmpfs",) if stat.S_ISDIR(mode) else ("data",)
    for path in PRIVATE_FOLDERS:
        if stat.S_ISDIR(file_mode(path)):
            mounts[path] = ("--tmpfs",) if path == "/run" else ("--bind", view.temporary)
    for path in SYSTEM_IN_RUN + (NAME_SERVICE if view.network else ()):
        if file_mode(path):
            mounts[path] = ("--ro-bind", path)
    return mounts | {path: ("--bind", path) for path in view.roots}


def folders_above(secrets: Iterable[str], roots: Iterable[str]) -> Iterator[str]:
    """The folders of the workspace above secrets that lie in it."""
    for secret in map(Path, secrets):
        for above in map(str, secret.parents):
            inside = any(above != root and is_below(above, root) for root in roots)
            if inside and stat.S_ISDIR(file_mode(above)):
                yield above


def _is_real(folder: str) -> bool:
    """Whether no link leads elsewhere: where it led would be mounted writable."""
    return stat.S_ISDIR(file_mode(folder)) and os.path.realpath(folder) == folder


def _plan_covers(view: BubblewrapView) -> dict[str, tuple[str, ...]]:
    """What is mounted over the secrets of the workspace, and over the folders above them."""
    file, folder = view.covers

    def is_gone(path: str) -> bool:
        elsewhere = not any(is_below(path, item) for item in view.roots)
        # a link leads to a temporary folder, which the sandbox does not have
        temporary = elsewhere and any(is_below(path, item) for item in PRIVATE_FOLDERS)
        return temporary or any(is_below(path, item) for item in view.secrets)

    mounts: dict[str, tuple[str, ...]] = {
        path: ("--bind", path) for path in view.above if not is_gone(path) and _is_real(path)
    }
    for path in view.hidden.paths:
        if not is_gone(path) and (mode := file_mode(path)):
            mounts[path] = ("--ro-bind", folder if stat.S_ISDIR(mode) else file)
    return mounts
