"""Which isolation this machine has for commands, and how a command is started inside it.

`find_isolation` describes what is in force (bubblewrap, else Landlock, else none), what that kind
cannot do, and how to get a better one. `enter_sandbox` gives the plan by which the supervisor
starts a command, and holds what it needs while its block lasts. The environment is clean in every
kind, and its locale is one in which a shell reads what we judged. In a sandbox, everything is
read-only except the workspace; secrets and other programs' sockets cannot be reached; there is no
network unless granted; the files that decide what runs later cannot be written, or are put back.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from recollect.execution import landlock
from recollect.execution.bubblewrap import (
    NAME_SERVICE,
    PRIVATE_FOLDERS,
    PROGRAM_PATH,
    SYSTEM_IN_RUN,
    BubblewrapView,
    bubblewrap_words,
    folders_above,
    probe_bubblewrap,
    secret_paths,
)
from recollect.execution.command_plan import CommandPlan, ProtectedPaths
from recollect.execution.guarded_names import GUARDED_NAMES, GuardedName, hold_names
from recollect.execution.landlock import LandlockRules, is_below
from recollect.execution.syscall_filter import can_filter
from recollect.execution.workspace_guard import (
    WorkspaceBaseline,
    WorkspaceSurvey,
    names_to_hold,
    share_baseline,
)
from recollect.workspace.private_paths import SECRET_PATHS
from recollect.workspace.protected_names import PROTECTED_NAMES
from recollect.workspace.workspace_secrets import WorkspaceSecrets

_VARIABLE_LIST = """
PATH HOME USER LOGNAME TZ VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV GOPATH GOROOT
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
    "LC_ALL": "C.UTF-8",  # in a legacy locale a shell reads other words than we judged
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}
# Programs that cannot work without writing to their cache, which they keep in the home: it is
# read-only, so theirs lasts as long as the session.
CACHE_FOLDERS = {
    "UV_CACHE_DIR": "uv",
    "PIP_CACHE_DIR": "pip",
    "npm_config_cache": "npm",
    "GOCACHE": "go-build",
}


SandboxChoice: TypeAlias = Literal["auto", "bubblewrap", "landlock", "none"]


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    kind: Literal["bubblewrap", "landlock", "none"]
    description: str  # what is in force and why, for users and for the model
    limitations: tuple[str, ...] = ()  # what this kind cannot do
    remedy: str = ""  # how to get a better one
    refusal: str = ""  # why no command may run: the chosen sandbox is not to be had
    program: str = ""
    options: tuple[str, ...] = ()  # of bubblewrap, that not every version knows


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What commands may see and touch. All paths are absolute and without links."""

    roots: tuple[str, ...]
    home: str
    temporary: str  # a folder of the session's own: its /tmp
    shared_memory: str = ""  # another: under Landlock its /dev/shm
    aside: str = ""  # another: what was changed in protected files and is not there any more
    secrets: tuple[str, ...] = SECRET_PATHS
    guarded: tuple[GuardedName, ...] = GUARDED_NAMES
    programs: tuple[str, ...] = ()  # files that run later, outside every sandbox, such as hooks
    hidden: WorkspaceSecrets = WorkspaceSecrets()  # what bubblewrap hides in the workspace
    covers: tuple[str, str] = ("", "")  # with it: a file and a folder that cannot be opened
    network: bool = False


class SandboxLaunch(NamedTuple):
    """How to start a command: `plan.words` come before its own."""

    plan: CommandPlan
    repairs: list[str]  # of guarded names; filled when the block ends


@cache
def find_isolation(choice: SandboxChoice = "auto") -> Isolation:
    """What is in force on this machine, tried out once: the kind that was chosen, or the best."""
    if choice == "none":
        remedy = 'for one, set permissions.sandbox to "auto" and take no mode "unrestricted"'
        return no_isolation("as you chose", remedy)
    if choice == "landlock":
        return _insist(landlock_isolation(), choice, "this kernel has no Landlock")
    program = shutil.which("bwrap", path=PROGRAM_PATH)
    found = probe_bubblewrap(program) if program is not None else None
    why = "bubblewrap is not installed" if found is None else found.refusal
    if found is not None and not why:
        return Isolation(
            kind="bubblewrap",
            description="sandboxed with bubblewrap: only the workspace is writable, secrets are "
            "hidden",
            options=found.options,
            program=found.program,
        )
    return landlock_isolation(why) if choice == "auto" else _insist(no_isolation(why), choice, why)


def _insist(found: Isolation, choice: SandboxChoice, why: str) -> Isolation:
    """No command runs in a weaker sandbox than the one that was chosen."""
    if found.kind == choice:
        return found
    remedy = 'install it, or set permissions.sandbox to "auto"'
    refusal = f'permissions.sandbox is "{choice}", but {why}; {remedy}'
    return msgspec.structs.replace(no_isolation(why), refusal=refusal)


def landlock_isolation(why: str = "") -> Isolation:
    version = landlock.abi_version()
    if version < 1:
        remedy = "install bubblewrap for a sandbox"
        return no_isolation(f"{why or 'no bubblewrap'}, and this system has no Landlock", remedy)
    limitations = [
        "the names of hidden files, other processes and their command lines can be seen",
        "protected files are put back after a change, not held",
        "secrets in the workspace, such as .env, are not hidden; with one, mode free is edit",
        f"{PRIVATE_FOLDERS[0]} is closed ($TMPDIR is open), and no terminal can be made",
    ]
    if version < 3:
        limitations.append("files outside the workspace can be emptied")
    if version < 6:
        limitations.append("other processes of yours can be signaled")
    if not can_filter(os.uname().machine):
        limitations.append("local sockets of other programs and UDP are open")
        limitations.append("modes and times of files outside the workspace can be changed")
        if version < 4:
            limitations.append("the network is open")
    return Isolation(
        kind="landlock",
        description=f"sandboxed with Landlock {version} ({why or 'as you chose'}): "
        "only the workspace is writable, secrets in the home cannot be read",
        limitations=tuple(limitations),
        remedy="install bubblewrap for a tighter sandbox"
        if why
        else 'set permissions.sandbox to "auto" for a tighter one, where bubblewrap is installed',
    )


def no_isolation(why: str, remedy: str = "") -> Isolation:
    description = f"unsandboxed ({why}): commands can do whatever you can"
    return Isolation(kind="none", description=description, remedy=remedy)


def clean_environment(given: Mapping[str, str], policy: SandboxPolicy) -> dict[str, str]:
    """The variables a command gets: those it needs, and none that may carry a secret."""
    allowed = ALLOWED_VARIABLES | (NETWORK_VARIABLES if policy.network else frozenset())
    kept = {n: v for n, v in given.items() if n in allowed}
    # a program in the command's working folder must not pass for a known one
    path = [item for item in kept.get("PATH", "").split(":") if item.startswith("/")]
    kept["PATH"] = ":".join(path) or "/usr/local/bin:/usr/bin:/bin"
    return {**kept, "HOME": policy.home, **FIXED_VARIABLES}


@contextmanager
def enter_sandbox(
    policy: SandboxPolicy, isolation: Isolation, directory: str
) -> Iterator[SandboxLaunch]:
    environment = clean_environment(os.environ, policy)
    if isolation.kind == "none":
        environment["TMPDIR"] = policy.temporary
        yield SandboxLaunch(CommandPlan((), environment, directory), [])
        return
    above: tuple[str, ...] = ()
    if isolation.kind == "bubblewrap":
        secrets = secret_paths(policy.secrets, policy.home, policy.roots)
        above = (*policy.hidden.parents, *folders_above(secrets, policy.roots))
    with share_baseline(policy.roots, policy.home, policy.programs, above) as baseline:
        if isolation.kind == "bubblewrap":
            environment |= _temporary_variables(PRIVATE_FOLDERS[0])
            plan = CommandPlan((), environment, directory, before=baseline.saved)
            with _enter_bubblewrap(policy, isolation, plan, baseline) as launch:
                yield launch
            return
        environment |= _temporary_variables(policy.temporary)
        plan = CommandPlan((), environment, directory, shared_memory=policy.shared_memory)
        yield SandboxLaunch(_hold_to_landlock(policy, plan, baseline), [])


def _temporary_variables(folder: str) -> dict[str, str]:
    caches = {name: f"{folder}/.cache/{below}" for name, below in CACHE_FOLDERS.items()}
    # uv's links would not reach from one file system to another
    return {"TMPDIR": folder, **caches, "UV_LINK_MODE": "copy"}


def _hold_to_landlock(
    policy: SandboxPolicy, plan: CommandPlan, baseline: WorkspaceBaseline
) -> CommandPlan:
    secrets = secret_paths(policy.secrets, policy.home, policy.roots)
    survey, saved = baseline.survey, baseline.saved
    # the supervisor can compare no secrets, and a home is too large: these cannot be written at all
    hidden = [path for path in secrets if any(is_below(path, root) for root in policy.roots)]
    closed = tuple(
        path
        for path in survey.existing
        if any(is_below(path, item) or is_below(item, path) for item in hidden)
    )
    at_home = tuple(f"{policy.home}/{n.path}" for n in PROTECTED_NAMES if n.place == "home")
    extra = SYSTEM_IN_RUN + (NAME_SERVICE if policy.network else ())
    rules = LandlockRules(
        closed=(*secrets, *PRIVATE_FOLDERS),
        open=(*policy.roots, *extra),
        writable=(*policy.roots, policy.temporary, policy.shared_memory, policy.aside),
        network=policy.network,
        held=(*at_home, *closed),
    )
    kept = tuple(path for path in survey.existing if path not in closed)
    protected = _protected_paths(policy, survey, kept=kept, occupied=(*closed, *survey.at_home))
    trees = {path: tree for path, tree in saved.trees.items() if path not in closed}
    return plan._replace(rules=rules, protected=protected, before=saved._replace(trees=trees))


def _protected_paths(
    policy: SandboxPolicy,
    survey: WorkspaceSurvey,
    *,
    kept: tuple[str, ...] = (),
    occupied: tuple[str, ...] = (),
) -> ProtectedPaths:
    return ProtectedPaths(
        roots=policy.roots,
        projects=survey.projects,
        home=policy.home,
        kept=kept,
        occupied=occupied,
        absent=survey.absent,
        git_folders=survey.git.folders,
        git_links=survey.git.links,
        all_git=survey.git.complete,
        aside=policy.aside,
    )


@contextmanager
def _enter_bubblewrap(
    policy: SandboxPolicy, isolation: Isolation, plan: CommandPlan, baseline: WorkspaceBaseline
) -> Iterator[SandboxLaunch]:
    survey = baseline.survey
    with ExitStack() as stack:
        repairs: list[str] = []
        held = [
            name
            for root in policy.roots
            for name in stack.enter_context(
                hold_names(root, names_to_hold(root, survey, policy.guarded), repairs)
            )
        ]
        view = BubblewrapView(
            roots=policy.roots,
            temporary=policy.temporary,
            secrets=secret_paths(policy.secrets, policy.home, policy.roots),
            network=policy.network,
            hidden=policy.hidden,
            covers=policy.covers,
            above=baseline.above,
        )
        words, descriptors = stack.enter_context(
            bubblewrap_words(isolation.program, isolation.options, view, held, plan.directory)
        )
        # what mounts hold needs no copy
        occupied = (*(name.path for name in held), *survey.existing, *survey.at_home)
        saved = plan.before and plan.before._replace(trees={})
        writable = (*policy.roots, policy.aside)
        can_check = landlock.abi_version() > 0
        yield SandboxLaunch(
            plan._replace(
                words=words,
                directory="/",
                descriptors=descriptors,
                protected=_protected_paths(policy, survey, occupied=occupied),
                before=saved,
                checks=LandlockRules((), (), writable, network=False) if can_check else None,
            ),
            repairs,
        )
