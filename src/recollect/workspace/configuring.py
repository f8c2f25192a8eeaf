"""The settings in force in a folder: the defaults, the person's file, and what a project may add.

A project's `.recollect/settings.toml` is read only where the folder is trusted, and can only
tighten (`tightening.py`, which is loaded when there is such a file). One that cannot be read as it
is counts as an error, because it may be there to forbid something.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from recollect.compaction.budget import MAX_SNAPSHOT, MIN_SNAPSHOT, Budget
from recollect.errors import BadSettings
from recollect.profiles import Profile
from recollect.settings import FILE, ContextSettings, Given, HookCommand, Settings, read
from recollect.settings import home as home_directory
from recollect.view.rules import Rules
from recollect.workspace.prose import one_line
from recollect.workspace.trust import trusted_folders

FOLDER = ".recollect"  # in a project's root


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force in a folder, and where it comes from.

    A project's ask rules and hooks stand apart from the person's own: an ask rule of a project must
    never turn a no into a question, and its hooks are run as the project's.
    """

    settings: Settings
    root: Path
    own_file: Path
    project_file: Path
    trusted: bool = False
    project_ask: tuple[str, ...] = ()
    project_hooks: tuple[HookCommand, ...] = ()
    unseen_hooks: tuple[
        HookCommand, ...
    ] = ()  # the project's too: nobody was shown them, so none runs
    seen: str = ""  # a digest of the hooks that the person was shown
    told: tuple[str, ...] = ()  # for the person: what was ignored, and why
    own: Given = Given()
    project: Given | None = None  # none: there is no file, or it is not used
    taken: frozenset[str] = frozenset()  # keys of the project's file that count


def configured(folder: Path, home: Path | None = None) -> Configured:
    """The settings for work in a folder; `BadSettings` when a file that counts is wrong."""
    home = home_directory() if home is None else home
    root = project_root(folder)
    trust = trusted_folders(home)
    found = Configured(
        settings=Settings(),
        root=root,
        own_file=home / FILE,
        project_file=root / FOLDER / FILE,
        # asked of the root: were the folder in it a link, what it leads to would decide
        trusted=trust.covers(root) and trust.folders.get(str(root / FOLDER), True),
        seen=trust.hooks.get(str(root), ""),
    )
    own = read(found.own_file)
    found = msgspec.structs.replace(found, own=own, settings=own.settings)
    if not _is_there(found) or _is_own(found):
        return found
    if not found.trusted:
        told = (
            f"{one_line(str(found.project_file))} is not used, because the folder is not trusted; "
            "look at it, then `recollect trust`"
        )
        return msgspec.structs.replace(found, told=(told,))
    from recollect.workspace.tightening import project_settings, tightened

    return tightened(found, project_settings(found))


def project_root(folder: Path) -> Path:
    """The folder of the git repository, else the folder itself; links resolved. Git is not run."""
    place = Path(os.path.abspath(folder))  # noqa: PTH100 - as `identify` has it
    for parent in (place, *place.parents):
        if (parent / ".git").exists():
            return parent.resolve()
    return place.resolve()


# --- the project's file ------------------------------------------------------------------------


def _is_there(found: Configured) -> bool:
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


def _is_own(found: Configured) -> bool:
    """Whether the home directory is the project's own folder, so that both are one file."""
    try:
        return found.own_file.samefile(found.project_file)
    except OSError:
        return False


# --- sections as the values that the code uses --------------------------------------------------


def elision_rules(settings: Settings, root: str = "") -> Rules:
    """`[context]` as the rules that leave things out."""
    context = settings.context
    return Rules(
        keep_reads=context.keep_reads,
        keep_read_tokens=context.keep_read_tokens,
        keep_shell=context.keep_shell,
        shell_age=round(context.shell_age * 1_000),
        keep_search=context.keep_search,
        search_age=round(context.search_age * 1_000),
        max_characters=context.max_characters,
        max_lines=context.max_lines,
        min_saving=context.min_saving,
        language=settings.language,
        root=root,
    )


def budget_for(profile: Profile, context: ContextSettings, learnt: int | None = None) -> Budget:
    """A model's budget with the person's figures, within a window that an error once named."""
    window = min(profile.window, learnt or profile.window)
    by_model = min(profile.threshold, window * 7 // 10)
    threshold = min(context.threshold or by_model, window * 9 // 10)
    target = min(context.target or threshold * 8 // 10, threshold)
    snapshot = max(MIN_SNAPSHOT, min(1_000, window // 8), min(MAX_SNAPSHOT, target // 5))
    return Budget(window, threshold, target, snapshot)
