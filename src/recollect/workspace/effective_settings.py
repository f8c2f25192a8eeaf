"""The settings in force in a folder: the defaults, the user's file, and the project's file.

A project's `.recollect/settings.toml` is used only where the user trusts the folder's settings, and
can only tighten (`project_overrides`). If it cannot be used as it is, that is an error, because it
may be there to forbid something. Its hooks run only if the user has approved exactly these, with
the files that they name, whether or not the settings are trusted.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from recollect.errors import BadSettings
from recollect.settings import (
    SETTINGS_FILE,
    HookCommand,
    ParsedSettings,
    Settings,
    data_directory,
    read_settings,
)
from recollect.workspace.hook_approval import digest_hook_files, digest_hooks
from recollect.workspace.project_identity import git_root
from recollect.workspace.project_overrides import (
    apply_project_settings,
    read_project_settings,
)
from recollect.workspace.trusted_folders import FolderTrust, load_trust
from recollect.workspace.untrusted_text import one_line

PROJECT_FOLDER = ".recollect"  # in a project's root
_UNAPPROVED = (
    "hooks of this project that do not run, because they are new or have changed: {}; "
    "`recollect trust --hooks` shows them and asks whether they may"
)


class EffectiveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings in force in a folder, and where they come from.

    A project's ask rules and hooks are kept apart from the user's: a project's ask rule must never
    turn a no into a question, and its hooks run as the project's.
    """

    settings: Settings
    root: Path
    user_file: Path
    project_file: Path
    trusted: bool = False  # the project's settings are
    project_ask: tuple[str, ...] = ()
    project_hooks: tuple[HookCommand, ...] = ()
    hook_digests: tuple[str, ...] = ()  # of the files that `project_hooks` name, when approved
    unapproved_hooks: tuple[HookCommand, ...] = ()  # of the project; they do not run
    warnings: tuple[str, ...] = ()  # for the user: what was ignored, and why
    user: ParsedSettings = ParsedSettings()
    project: ParsedSettings | None = None  # none: there is no file, or it is ignored
    project_ignored: bool = False  # there is a file, but the folder is not trusted
    project_keys: frozenset[str] = frozenset()  # keys of the project's file that take effect


def default_settings(folder: Path, home: Path | None = None) -> EffectiveSettings:
    """The defaults, where the files cannot be used."""
    root = project_root(folder)
    user_file = data_directory(home) / SETTINGS_FILE
    project_file = root / PROJECT_FOLDER / SETTINGS_FILE
    return EffectiveSettings(
        settings=Settings(), root=root, user_file=user_file, project_file=project_file
    )


def resolve_settings(folder: Path, home: Path | None = None) -> EffectiveSettings:
    """The settings for work in a folder; `BadSettings` if a file in force is wrong."""
    home = data_directory(home)
    root = project_root(folder)
    trust = load_trust(home)
    user_file = home / SETTINGS_FILE
    user = read_settings(user_file)
    found = EffectiveSettings(
        settings=user.settings,
        root=root,
        user_file=user_file,
        project_file=root / PROJECT_FOLDER / SETTINGS_FILE,
        # the root decides: were the folder in it a link, its target would decide
        trusted=_covers_project(trust, root),
        user=user,
        warnings=tuple(f"{one_line(str(user_file))}: {hint}" for hint in user.hints),
    )
    if not _has_project_file(found) or _is_same_file(found):
        return found
    if found.trusted:
        return _with_project(found, trust)
    ignored = (
        f"{one_line(str(found.project_file))} is ignored, because its settings are not trusted; "
        "look at it, then `recollect trust`"
    )
    found = msgspec.structs.replace(found, project_ignored=True)
    if str(root) in trust.hooks:
        return _with_hooks_only(found, trust, ignored)
    return msgspec.structs.replace(found, warnings=(*found.warnings, ignored))


def read_untrusted(folder: Path, home: Path | None = None) -> EffectiveSettings:
    """The settings as they would be if the project's were trusted, so that the user can be shown
    them; `unapproved_hooks` are all of its hooks."""
    found = resolve_settings(folder, home)
    if not _has_project_file(found) or _is_same_file(found):
        return found
    own = msgspec.structs.replace(found, settings=found.user.settings, warnings=(), trusted=True)
    return _with_project(own, FolderTrust())


def _covers_project(trust: FolderTrust, root: Path) -> bool:
    of_folder = trust.settings_decisions.get(str(root / PROJECT_FOLDER), True)
    return trust.covers_settings(root) and of_folder


def project_root(folder: Path) -> Path:
    """The folder of the git repository, else the folder itself; links resolved."""
    start = Path(os.path.abspath(folder))  # noqa: PTH100 - as `identify_project` does
    return (git_root(start) or start).resolve()


def _has_project_file(found: EffectiveSettings) -> bool:
    try:
        found.project_file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        # it may exist: in a trusted folder it must not be taken for missing
        if found.trusted:
            why = error.strerror or type(error).__name__
            raise BadSettings(str(found.project_file), why) from error
        return False
    return True


def _is_same_file(found: EffectiveSettings) -> bool:
    """Whether the data directory is the project's own folder, so that both are one file."""
    try:
        return found.user_file.samefile(found.project_file)
    except OSError:
        return False


def _with_project(found: EffectiveSettings, trust: FolderTrust) -> EffectiveSettings:
    project = read_project_settings(found.project_file, found.root, found.user_file)
    applied = apply_project_settings(found.settings, project)
    name, keys = one_line(str(found.project_file)), applied.keys
    warnings = [*found.warnings, *(f"{name}: {hint}" for hint in project.hints)]
    warnings += [f"{name}{warning}" for warning in applied.warnings]
    found = _with_hooks(found, project.settings.hooks, trust)
    if found.unapproved_hooks:
        keys -= {"hooks"}
        warnings.append(_UNAPPROVED.format(len(found.unapproved_hooks)))
    return msgspec.structs.replace(
        found,
        settings=applied.settings,
        project=project,
        project_ask=project.settings.permissions.ask,
        warnings=tuple(warnings),
        project_keys=keys,
    )


def _with_hooks_only(
    found: EffectiveSettings, trust: FolderTrust, ignored: str
) -> EffectiveSettings:
    """The hooks that were approved; nothing else of the file counts, not even that it is wrong."""
    try:
        project = read_project_settings(found.project_file, found.root, found.user_file)
    except BadSettings as error:
        return msgspec.structs.replace(found, warnings=(*found.warnings, ignored, str(error)))
    found = _with_hooks(found, project.settings.hooks, trust)
    warnings = [] if set(project.lines) <= {"hooks"} else [ignored]
    if found.unapproved_hooks:
        warnings.append(_UNAPPROVED.format(len(found.unapproved_hooks)))
    return msgspec.structs.replace(found, warnings=(*found.warnings, *warnings))


def _with_hooks(
    found: EffectiveSettings, hooks: tuple[HookCommand, ...], trust: FolderTrust
) -> EffectiveSettings:
    if not hooks:
        return found
    digests = tuple(digest_hook_files(hook.words, found.root) for hook in hooks)
    if not trust.approves(found.root, digest_hooks(hooks, found.root)):
        return msgspec.structs.replace(found, unapproved_hooks=hooks)
    return msgspec.structs.replace(found, project_hooks=hooks, hook_digests=digests)
