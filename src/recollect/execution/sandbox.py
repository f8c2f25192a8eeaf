"""Which isolation there is for commands, and how a command is started inside it.

`find_isolation` says in words what is in force: bubblewrap, else Landlock, else none; `lacks` names
what that kind cannot do. `enter_sandbox` gives what to start, and holds what it needs while its block
lasts. The environment is clean in every kind. Under bubblewrap all is read-only but the workspace,
secrets and other programs' sockets are not there, /tmp and the processes are the command's own,
there is no network unless granted, and the guarded names in the workspace cannot be written,
replaced or made. One that does not exist is held by a placeholder, which git does not see; it is
taken away when no command needs it any more, and only ever when it is empty.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from recollect.entries import json_text
from recollect.execution import landlock

IsolationKind: TypeAlias = Literal["bubblewrap", "landlock", "none"]

# Never shown to a command: below the home, or absolute.
_SECRET_LIST = """
.ssh .aws .azure .gnupg .kube .docker .netrc .npmrc .pypirc .git-credentials .pgpass .my.cnf .boto
.s3cfg .vault-token .password-store .terraform.d .huggingface .mozilla .thunderbird .age .claude
.claude.json .codex .gemini .config/gh .config/hub .config/gcloud .config/op .config/rclone
.config/sops .config/git/credentials .config/recollect .config/google-chrome .config/chromium
.config/BraveSoftware .config/anthropic .local/share/keyrings .local/share/recollect
.cargo/credentials .cargo/credentials.toml .gem/credentials .cache/huggingface/token .bash_history
.zsh_history .python_history .psql_history .mysql_history .sqlite_history .node_repl_history
/etc/shadow /etc/gshadow /etc/sudoers /etc/sudoers.d
"""
SECRET_PATHS = tuple(_SECRET_LIST.split())
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


class GuardedName(NamedTuple):
    """A name in the workspace that commands may read but not write, replace or make.

    `holder` is what stands there while it does not exist: an empty folder; a socket, which opens
    for nobody and which git skips; or a file that means the same to git as none.
    """

    path: str
    holder: Literal["folder", "socket", "empty", "itself"]


GUARDED_NAMES = (
    GuardedName(".recollect", "folder"),
    GuardedName("AGENTS.md", "socket"),
    GuardedName("GEMINI.md", "socket"),
    GuardedName("CLAUDE.md", "socket"),
    GuardedName(".git/config", "empty"),
    GuardedName(".git/config.worktree", "empty"),
    GuardedName(".git/hooks", "folder"),
    # with another folder named here git would take its settings and hooks from there
    GuardedName(".git/commondir", "itself"),
)
_PLACEHOLDER_BYTES = {"empty": b"", "itself": b".\n"}


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    kind: IsolationKind
    words: str  # for people: what is in force
    limitations: tuple[str, ...] = ()
    program: str = ""


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What commands may see and touch. All paths are absolute and without links."""

    roots: tuple[str, ...]
    home: str
    temporary: str  # a folder of the session's own: its /tmp
    shown: tuple[str, ...] = ()  # read-only, wherever it lies
    secrets: tuple[str, ...] = SECRET_PATHS
    guarded: tuple[GuardedName, ...] = GUARDED_NAMES
    network: bool = False


class SandboxLaunch(NamedTuple):
    """What a command's words are put behind. `repairs` is filled when the block ends."""

    start: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    descriptors: tuple[int, ...]
    repairs: list[str]


@cache
def find_isolation() -> Isolation:
    """What this machine can do, tried out once."""
    program = shutil.which("bwrap", path=PROGRAM_PATH)
    why = "bubblewrap is not installed" if program is None else _refusal_of(program)
    if program is None or why:
        return landlock_isolation(why)
    words = "sandboxed with bubblewrap: only the workspace is writable, secrets are hidden"
    return Isolation(kind="bubblewrap", words=words, program=program)


def landlock_isolation(why: str = "") -> Isolation:
    version = landlock.abi_version()
    if version < 1:
        return no_isolation(f"{why or 'no bubblewrap'}; this system has no Landlock")
    lacks = [
        "processes that left their session are found by searching, not ended by the kernel",
        "the names of hidden files can be seen, their content cannot",
        "nothing new can be made directly in the workspace's top folder or in .git",
    ]
    if version < 3:
        lacks.append("files outside the workspace can be emptied")
    if not landlock.can_filter_sockets():
        lacks.append("local sockets of other programs and UDP are open")
        if version < 4:
            lacks.append("the network is open")
    return Isolation(
        kind="landlock",
        words=f"sandboxed with Landlock {version} ({why or 'as asked'}): "
        "only folders in the workspace are writable, secrets cannot be read",
        limitations=tuple(lacks),
    )


def no_isolation(why: str) -> Isolation:
    return Isolation(kind="none", words=f"unsandboxed ({why}): commands can do whatever you can")


def _refusal_of(program: str) -> str:
    """Why bubblewrap cannot be used, in its own words; nothing when it can."""
    words = (program, *_BASE_OPTIONS, "--unshare-net", *_SYSTEM_MOUNTS, "--", "/bin/sh", "-c", ":")
    try:
        tried = subprocess.run(  # noqa: S603 - a fixed program from the system's own folders
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
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
    # a program in whatever folder the command stands in must not pass for a known one
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
        with _enter_bubblewrap(policy, isolation.program, directory, environment) as made:
            yield made
        return
    environment["TMPDIR"] = policy.temporary
    rules = json_text(_landlock_rules(policy)._asdict()) if isolation.kind == "landlock" else "null"
    start = (sys.executable, "-I", "-S", landlock.__file__, rules, "--")
    yield SandboxLaunch(start, environment, directory, (), [])


def _landlock_rules(policy: SandboxPolicy) -> landlock.LandlockRules:
    extra = _SYSTEM_IN_RUN + (_NAME_SERVICE if policy.network else ())
    return landlock.LandlockRules(
        closed=(*_secret_paths(policy), *PRIVATE_FOLDERS),
        open=(*policy.roots, *policy.shown, *extra),
        writable=(*policy.roots, policy.temporary),
        kept=tuple(f"{root}/{guard.path}" for root in policy.roots for guard in policy.guarded),
        network=policy.network,
    )


def _secret_paths(policy: SandboxPolicy) -> tuple[str, ...]:
    named = [item if item[0] == "/" else f"{policy.home}/{item}" for item in policy.secrets]
    real = (os.path.realpath(path) if _file_mode(path) else path for path in named)
    return tuple(path for path in dict.fromkeys(real) if path not in policy.roots)


@contextmanager
def _enter_bubblewrap(
    policy: SandboxPolicy, program: str, directory: str, environment: dict[str, str]
) -> Iterator[SandboxLaunch]:
    with ExitStack() as stack:
        repairs: list[str] = []
        held = [
            stack.enter_context(hold_names(root, policy.guarded, repairs)) for root in policy.roots
        ]
        spots = [spot for some in held for spot in some]
        mounts = _plan_mounts(policy) | {
            pin: ("--bind", pin) for spot in spots for pin in spot.pins
        }
        for spot in (spot for spot in spots if spot.found != "link"):
            is_socket = spot.found == "socket"
            mounts[spot.path] = ("data",) if is_socket else ("--ro-bind", spot.path)
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
        line = (program, *_BASE_OPTIONS, *net, *options, "--chdir", directory, "--")
        yield SandboxLaunch(line, environment, "/", tuple(descriptors), repairs)


def _plan_mounts(policy: SandboxPolicy) -> dict[str, tuple[str, ...]]:
    """What is mounted where, but for the guarded names; later ones replace earlier ones."""
    mounts: dict[str, tuple[str, ...]] = {}
    visible = (*policy.roots, *policy.shown)
    for path in _secret_paths(policy):
        gone = any(landlock.is_below(path, item) for item in PRIVATE_FOLDERS)
        if gone and not any(landlock.is_below(path, item) for item in visible):
            continue
        if mode := _file_mode(path):
            mounts[path] = ("--tmpfs",) if stat.S_ISDIR(mode) else ("data",)
    for path in PRIVATE_FOLDERS:
        if stat.S_ISDIR(_file_mode(path)):
            mounts[path] = ("--tmpfs",) if path == "/run" else ("--bind", policy.temporary)
    for path in _SYSTEM_IN_RUN + (_NAME_SERVICE if policy.network else ()):
        if _file_mode(path):
            mounts[path] = ("--ro-bind", path)
    mounts |= {path: ("--ro-bind", path) for path in policy.shown}
    return mounts | {path: ("--bind", path) for path in policy.roots}


def _file_mode(path: str) -> int:
    """What is there; 0 for nothing, and for what we may not even look at."""
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


class HeldName(NamedTuple):
    """Where a guard is held: the name itself, or the first missing or odd one on the way to it."""

    path: str
    found: Literal["missing", "link", "socket", "other"]
    holder: Literal["folder", "socket", "empty", "itself"]
    pins: tuple[str, ...]  # folders on the way: as mounts they cannot be renamed away
    link: str = ""


@contextmanager
def hold_names(
    root: str, guards: Iterable[GuardedName], repairs: list[str]
) -> Iterator[tuple[HeldName, ...]]:
    """Keeps every guarded name occupied while the block lasts.

    All who hold the same workspace share a lock on its folder; the last one clears up. Nobody waits
    for the lock: a command may hold it for ever.
    """
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
        made: set[str] = set()
        spots = tuple(dict.fromkeys(_hold_name(root, guard, made) for guard in guards))
        try:
            yield tuple(spot for spot in spots if spot.found != "missing")
        finally:
            repairs += [told for spot in spots if (told := _restore_link(spot))]
            repairs += [
                f"{spot.path} could not be guarded" for spot in spots if _is_unguarded(spot)
            ]
            with suppress(OSError):
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for spot in reversed(spots):
                    _remove_placeholder(spot, made)
    finally:
        os.close(folder)


def _hold_name(root: str, guard: GuardedName, made: set[str]) -> HeldName:
    spot = _locate(root, guard)
    if spot.found != "missing":
        return spot
    with suppress(OSError):  # who cannot make it here cannot make it in the sandbox either
        _create_placeholder(spot)
        made.add(spot.path)
    return _locate(root, guard)


def _is_unguarded(spot: HeldName) -> bool:
    """Whether a command could have made it, because we could not."""
    return spot.found == "missing" and os.access(Path(spot.path).parent, os.W_OK)


def _create_placeholder(spot: HeldName) -> None:
    path = Path(spot.path)
    if spot.holder in _PLACEHOLDER_BYTES:
        with path.open("xb") as file:
            file.write(_PLACEHOLDER_BYTES[spot.holder])
    elif spot.holder == "folder":
        path.mkdir()
    else:
        try:
            os.mknod(path, stat.S_IFSOCK | 0o600)
        except OSError:
            path.mkdir()  # some filesystems have no sockets


def _locate(root: str, guard: GuardedName) -> HeldName:
    path, names = root, guard.path.split("/")
    pins: list[str] = []
    for name in names:
        path = f"{path}/{name}"
        last = name is names[-1]
        holder = guard.holder if last else "folder"
        if not (mode := _file_mode(path)):
            return HeldName(path, "missing", holder, tuple(pins))
        if stat.S_ISLNK(mode):
            return HeldName(path, "link", holder, tuple(pins), os.readlink(path))  # noqa: PTH115
        if last or not stat.S_ISDIR(mode) or _is_empty(path):
            found: Literal["socket", "other"] = "socket" if stat.S_ISSOCK(mode) else "other"
            return HeldName(path, found, holder, tuple(pins))
        pins.append(path)
    raise AssertionError("a guard names something")


def _is_empty(folder: str) -> bool:
    with suppress(OSError):
        return not os.listdir(folder)  # noqa: PTH208
    return False


def _remove_placeholder(spot: HeldName, made: set[str]) -> None:
    """Takes a placeholder away; a folder only goes when it is empty, a file only as we made it."""
    path = Path(spot.path)
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        if stat.S_ISSOCK(mode) and spot.holder == "socket":
            path.unlink()
        elif stat.S_ISDIR(mode) and (spot.path in made or spot.holder == "folder"):
            path.rmdir()
        elif stat.S_ISREG(mode) and (spot.path in made or spot.holder == "itself"):
            words = _PLACEHOLDER_BYTES.get(spot.holder)
            if path.stat().st_size < 9 and path.read_bytes() == words:
                path.unlink()


def _restore_link(spot: HeldName) -> str:
    """A link cannot be mounted over: it is looked at afterwards and put back."""
    if spot.found != "link":
        return ""
    with suppress(OSError):
        if os.readlink(spot.path) == spot.link:  # noqa: PTH115
            return ""
    beside = Path(f"{spot.path}.recollect-{os.getpid()}")
    try:
        beside.symlink_to(spot.link)
        beside.replace(spot.path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        return f"{spot.path} was a link to {spot.link} and cannot be put back: {error.strerror}"
    return f"{spot.path} was replaced and is a link to {spot.link} again"
