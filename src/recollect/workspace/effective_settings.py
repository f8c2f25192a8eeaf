"""The settings in force in a folder: the defaults, the person's file, and what a project may add.

A project's `.recollect/settings.toml` is read only where the folder is trusted, and can only
tighten (`tightening.py`, which is loaded when there is such a file). One that cannot be read as it
is counts as an error, because it may be there to forbid something.
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
    read_settings,
)
from recollect.settings import data_directory as home_directory
from recollect.workspace.trusted_folders import load_trust
from recollect.workspace.untrusted_text import one_line

PROJECT_FOLDER = ".recollect"  # in a project's root


class EffectiveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force in a folder, and where it comes from.

    A project's ask rules and hooks stand apart from the person's own: an ask rule of a project must
    never turn a no into a question, and its hooks are run as the project's.
    """

    settings: Settings
    root: Path
    user_file: Path
    project_file: Path
    trusted: bool = False
    project_ask: tuple[str, ...] = ()
    project_hooks: tuple[HookCommand, ...] = ()
    unapproved_hooks: tuple[
        HookCommand, ...
    ] = ()  # the project's too: nobody was shown them, so none runs
    seen: str = ""  # a digest of the hooks that the person was shown
    told: tuple[str, ...] = ()  # for the person: what was ignored, and why
    own: ParsedSettings = ParsedSettings()
    project: ParsedSettings | None = None  # none: there is no file, or it is not used
    taken: frozenset[str] = frozenset()  # keys of the project's file that count


def resolve_settings(folder: Path, home: Path | None = None) -> EffectiveSettings:
    """The settings for work in a folder; `BadSettings` when a file that counts is wrong."""
    home = home_directory() if home is None else home
    root = project_root(folder)
    trust = load_trust(home)
    found = EffectiveSettings(
        settings=Settings(),
        root=root,
        user_file=home / SETTINGS_FILE,
        project_file=root / PROJECT_FOLDER / SETTINGS_FILE,
        # asked of the root: were the folder in it a link, what it leads to would decide
        trusted=trust.covers(root) and trust.folders.get(str(root / PROJECT_FOLDER), True),
        seen=trust.hooks.get(str(root), ""),
    )
    own = read_settings(found.user_file)
    found = msgspec.structs.replace(found, own=own, settings=own.settings)
    if not _is_there(found) or _is_own(found):
        return found
    if not found.trusted:
        told = (
            f"{one_line(str(found.project_file))} is not used, because the folder is not trusted; "
            "look at it, then `recollect trust`"
        )
        return msgspec.structs.replace(found, told=(told,))
    from recollect.workspace.project_overrides import apply_project_settings, read_project_settings

    return apply_project_settings(found, read_project_settings(found))


def project_root(folder: Path) -> Path:
    """The folder of the git repository, else the folder itself; links resolved. Git is not run."""
    place = Path(os.path.abspath(folder))  # noqa: PTH100 - as `identify_project` has it
    for parent in (place, *place.parents):
        if (parent / ".git").exists():
            return parent.resolve()
    return place.resolve()


def _is_there(found: EffectiveSettings) -> bool:
    try:
        found.project_file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        # it cannot be seen; where it counts, nobody may act as if it were not there
        if found.trusted:
            why = error.strerror or type(error).__name__
            raise BadSettings(str(found.project_file), why) from error
        return False
    return True


def _is_own(found: EffectiveSettings) -> bool:
    """Whether the home directory is the project's own folder, so that both are one file."""
    try:
        return found.user_file.samefile(found.project_file)
    except OSError:
        return False
