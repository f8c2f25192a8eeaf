"""Which isolation this machine has for commands, and how a command is started inside it.

`find_isolation` describes what is in force (bubblewrap, else Landlock, else none) and what that
kind cannot do. `enter_sandbox` gives the words to put before a command's own and holds what they
need while its block lasts. The environment is clean in every kind. Under bubblewrap everything is
read-only except the workspace; secrets and other programs' sockets are not there; /tmp and the
processes are the command's own; there is no network unless granted; and the guarded names in the
workspace cannot be written, replaced or created.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Literal, NamedTuple

import msgspec

from recollect.entries import json_text
from recollect.execution import landlock
from recollect.execution.guarded_names import GUARDED_NAMES, GuardedName, file_mode, hold_names
from recollect.workspace.private_paths import SECRET_PATHS

# Where other programs keep their sockets and temporary files: a command sees its own, or nothing.
PRIVATE_FOLDERS = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - named to be hidden
# What names are looked up with; some systems keep it among the sockets.
_NAME_SERVICE = ("/run/systemd/resolve", "/run/NetworkManager/resolv.conf", "/run/resolvconf")
_SYSTEM_IN_RUN = ("/run/current-system", "/run/opengl-driver")
# Programs of the system, whatever PATH says: it may lead into the workspace.
PROGRAM_PATH = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
_VARIABLE_LIST = """
PATH HOME USER LOGNAME LANG LANGUAGE TZ VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV GOPATH GOROOT
GOBIN CARGO_HOME RUSTUP_HOME JAVA_HOME ANDROID_HOME NVM_DIR NVM_BIN VOLTA_HOME PNPM_HOME BUN_INSTALL
DENO_DIR PYENV_ROOT PYENV_VERSION RBENV_ROOT GEM_HOME GEM_PATH ASDF_DIR ASDF_DATA_DIR DOTNET_ROOT
XDG_DATA_DIRS XDG_CONFIG_DIRS SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
NODE_EXTRA_CA_CERTS NIX_SSL_CERT_FILE NIX_PATH LD_LIBRARY_PATH
"""
ALLOWED_VARIABLES = frozenset(_VARIABLE_LIST.split())
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
NETWORK_VARIABLES = frozenset((*_PROXIES, *(name.upper() for name in _PROXIES)))
# No pager and no question can wait for somebody who is not there.
FIXED_VARIABLES = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    kind: Literal["bubblewrap", "landlock", "none"]
    description: str  # what is in force, for users and for the model
    limitations: tuple[str, ...] = ()
    program: str = ""


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What commands may see and touch. All paths are absolute and without links."""

    roots: tuple[str, ...]
    home: str
    temporary: str  # a folder of the session's own: its /tmp
    secrets: tuple[str, ...] = SECRET_PATHS
    guarded: tuple[GuardedName, ...] = GUARDED_NAMES
    network: bool = False


class SandboxLaunch(NamedTuple):
    """How to start a command: `prefix` comes before its own words."""

    prefix: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    descriptors: tuple[int, ...]
    repairs: list[str]  # of guarded names; filled when the block ends
    contained: bool  # its processes are in a namespace of their own and end with the first


@cache
def find_isolation() -> Isolation:
    """What this machine can do, tried out once."""
    program = shutil.which("bwrap", path=PROGRAM_PATH)
    why = "bubblewrap is not installed" if program is None else _refusal_of(program)
    if program is None or why:
        return landlock_isolation(why)
    description = "sandboxed with bubblewrap: only the workspace is writable, secrets are hidden"
    return Isolation(kind="bubblewrap", description=description, program=program)


def landlock_isolation(why: str = "") -> Isolation:
    version = landlock.abi_version()
    if version < 1:
        return no_isolation(f"{why or 'no bubblewrap'}; this system has no Landlock")
    limitations = [
        "processes that left their session are found by searching, not ended by the kernel",
        "the names of hidden files can be seen, their content cannot",
        "nothing new can be made directly in the workspace's top folder or in .git",
    ]
    if version < 3:
        limitations.append("files outside the workspace can be emptied")
    if not landlock.can_filter_sockets():
        limitations.append("local sockets of other programs and UDP are open")
        if version < 4:
            limitations.append("the network is open")
    return Isolation(
        kind="landlock",
        description=f"sandboxed with Landlock {version} ({why or 'as requested'}): "
        "only folders in the workspace are writable, secrets cannot be read",
        limitations=tuple(limitations),
    )


def no_isolation(why: str) -> Isolation:
    description = f"unsandboxed ({why}): commands can do whatever you can"
    return Isolation(kind="none", description=description)


def _refusal_of(program: str) -> str:
    """Why bubblewrap cannot be used, in its own words; empty when it can."""
    line = (program, *_BASE_OPTIONS, "--unshare-net", *_SYSTEM_MOUNTS, "--", "/bin/sh", "-c", ":")
    try:
        tried = subprocess.run(  # noqa: S603 - a fixed program from the system's own folders
            line, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {type(error).__name__}"
    if tried.returncode == 0:
        return ""
    said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"bubblewrap refuses: {(said or ['no reason given'])[-1][:200]}"


_BASE_OPTIONS = ("--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL")
_SYSTEM_MOUNTS = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")


def clean_environment(given: Mapping[str, str], policy: SandboxPolicy) -> dict[str, str]:
    """The variables a command gets: those it needs, and none that may carry a secret."""
    allowed = ALLOWED_VARIABLES | (NETWORK_VARIABLES if policy.network else frozenset())
    kept = {n: v for n, v in given.items() if n in allowed or n.startswith("LC_")}
    # a program in the command's working folder must not pass for a known one
    path = [item for item in kept.get("PATH", "").split(":") if item.startswith("/")]
    kept["PATH"] = ":".join(path) or "/usr/local/bin:/usr/bin:/bin"
    return {**kept, "HOME": policy.home, **FIXED_VARIABLES}


@contextmanager
def enter_sandbox(
    policy: SandboxPolicy, isolation: Isolation, directory: str
) -> Iterator[SandboxLaunch]:
    environment = clean_environment(os.environ, policy)
    if isolation.kind == "bubblewrap":
        environment["TMPDIR"] = PRIVATE_FOLDERS[0]
        with _enter_bubblewrap(policy, isolation.program, directory, environment) as launch:
            yield launch
        return
    environment["TMPDIR"] = policy.temporary
    rules = json_text(_landlock_rules(policy)._asdict()) if isolation.kind == "landlock" else "null"
    prefix = (sys.executable, "-I", "-S", landlock.__file__, rules, "--")
    yield SandboxLaunch(prefix, environment, directory, (), [], contained=False)


def _landlock_rules(policy: SandboxPolicy) -> landlock.LandlockRules:
    extra = _SYSTEM_IN_RUN + (_NAME_SERVICE if policy.network else ())
    return landlock.LandlockRules(
        closed=(*_secret_paths(policy), *PRIVATE_FOLDERS),
        open=(*policy.roots, *extra),
        writable=(*policy.roots, policy.temporary),
        kept=tuple(f"{root}/{guard.path}" for root in policy.roots for guard in policy.guarded),
        network=policy.network,
    )


def _secret_paths(policy: SandboxPolicy) -> tuple[str, ...]:
    named = [item if item[0] == "/" else f"{policy.home}/{item}" for item in policy.secrets]
    real = (os.path.realpath(path) if file_mode(path) else path for path in named)
    return tuple(path for path in dict.fromkeys(real) if path not in policy.roots)


@contextmanager
def _enter_bubblewrap(
    policy: SandboxPolicy, program: str, directory: str, environment: dict[str, str]
) -> Iterator[SandboxLaunch]:
    with ExitStack() as stack:
        repairs: list[str] = []
        held = [
            name
            for root in policy.roots
            for name in stack.enter_context(hold_names(root, policy.guarded, repairs))
        ]
        mounts = _plan_mounts(policy) | {pin: ("--bind", pin) for name in held for pin in name.pins}
        for name in (name for name in held if name.found != "link"):
            is_socket = name.found == "socket"
            mounts[name.path] = ("data",) if is_socket else ("--ro-bind", name.path)
        descriptors: list[int] = []
        options = list(_SYSTEM_MOUNTS)
        # what lies deeper is mounted later, or its folder would cover it
        for path in sorted(mounts, key=lambda item: item.count("/")):
            how = mounts[path]
            if how[0] == "data":
                descriptors.append(os.open(os.devnull, os.O_RDONLY))
                stack.callback(os.close, descriptors[-1])
                how = ("--ro-bind-data", str(descriptors[-1]))
            options += [*how, path]
        for path in (path for path, how in mounts.items() if how[0] == "--tmpfs"):
            options += ["--remount-ro", path]
        net = () if policy.network else ("--unshare-net",)
        prefix = (program, *_BASE_OPTIONS, *net, *options, "--chdir", directory, "--")
        yield SandboxLaunch(prefix, environment, "/", tuple(descriptors), repairs, contained=True)


def _plan_mounts(policy: SandboxPolicy) -> dict[str, tuple[str, ...]]:
    """What is mounted where, except for the guarded names; later mounts replace earlier ones."""
    mounts: dict[str, tuple[str, ...]] = {}
    for path in _secret_paths(policy):
        gone = any(landlock.is_below(path, item) for item in PRIVATE_FOLDERS)
        if gone and not any(landlock.is_below(path, item) for item in policy.roots):
            continue
        if mode := file_mode(path):
            mounts[path] = ("--tmpfs",) if stat.S_ISDIR(mode) else ("data",)
    for path in PRIVATE_FOLDERS:
        if stat.S_ISDIR(file_mode(path)):
            mounts[path] = ("--tmpfs",) if path == "/run" else ("--bind", policy.temporary)
    for path in _SYSTEM_IN_RUN + (_NAME_SERVICE if policy.network else ()):
        if file_mode(path):
            mounts[path] = ("--ro-bind", path)
    return mounts | {path: ("--bind", path) for path in policy.roots}
