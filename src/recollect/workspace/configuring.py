"""The settings in force in a folder: the defaults, the person's file, and what a project may add.

A project's `.recollect/settings.toml` is read only where the folder is trusted, only as a regular
file that is no link, and can only tighten: it adds rules that deny and ask, lowers limits, adds
names of memory files and hooks, and sets preferences that widen nothing. What would loosen is
ignored and told; what decides where the conversation goes is refused, and so is a file that cannot
be read as it is, because it may be there to forbid something. A key that is not in the table below
is refused, also one that is new.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from recollect.compaction.proposing import MAX_SNAPSHOT, MIN_SNAPSHOT, Budget
from recollect.errors import BadSettings
from recollect.profiles import Profile
from recollect.settings import FILE, ContextSettings, Given, HookCommand, Settings, read
from recollect.settings import home as home_directory
from recollect.settings.reading import decoded, understood
from recollect.view.rules import Rules
from recollect.workspace.files import Refused, read_inside
from recollect.workspace.prose import one_line
from recollect.workspace.trust import trusted_folders

FOLDER = ".recollect"  # in a project's root
MAX_PROJECT_FILE = 100_000  # bytes


class Origin(NamedTuple):
    place: str  # a file
    line: int = 0  # 0: not known


class Row(NamedTuple):
    """One setting as it is in force. No origin: the default."""

    key: str
    value: Any  # as JSON has it, secrets hidden
    origins: tuple[Origin, ...] = ()


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
    told: tuple[str, ...] = ()  # for the person: what was ignored, and why
    own: Given = Given()
    project: Given | None = None  # none: there is no file, or it is not used
    taken: frozenset[str] = frozenset()  # keys of the project's file that count


def configured(folder: Path, home: Path | None = None) -> Configured:
    """The settings for work in a folder; `BadSettings` when a file that counts is wrong."""
    home = home_directory() if home is None else home
    root = project_root(folder)
    found = Configured(
        settings=Settings(),
        root=root,
        own_file=home / FILE,
        project_file=root / FOLDER / FILE,
        trusted=_is_trusted(root, home),
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
    return _with_project(found, _project_settings(found))


def _is_trusted(root: Path, home: Path) -> bool:
    # asked of the root: were the folder in it a link, what it leads to would decide
    trust = trusted_folders(home)
    return trust.covers(root) and trust.folders.get(str(root / FOLDER), True)


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


def _project_settings(found: Configured) -> Given:
    path = found.project_file
    file = read_inside(path, (found.root,), MAX_PROJECT_FILE + 1)
    if isinstance(file, Refused):
        raise BadSettings(str(path), file.why)
    if file.path != path:
        raise BadSettings(str(path), "it is a link, and a project's settings are not read by links")
    given = understood(decoded(file.data, str(path), MAX_PROJECT_FILE), str(path))
    for key, line in given.lines.items():
        if key not in _MERGED:
            where = f"line {line}, " if line else ""
            raise BadSettings(
                str(path),
                f"{where}`{one_line(key, 80)}` is not a project's to set; "
                f"put it into {found.own_file}, and take it out here",
            )
    if given.settings.hooks and file.shared:
        raise BadSettings(str(path), "it has hooks, and other people can write to it")
    return given


# --- what a project may do ---------------------------------------------------------------------

_MODES = ("plan", "ask", "edit", "free")  # from strict to lax


class _Merged(NamedTuple):
    value: Any
    ignored: str = ""  # why the project's value does not count, or not all of it


_Merge = Callable[[Any, Any], _Merged]


def _set(own: Any, theirs: Any) -> _Merged:  # noqa: ARG001 - all of these have one signature
    return _Merged(theirs)


def _apart(own: Any, theirs: Any) -> _Merged:  # noqa: ARG001
    return _Merged(own)


def _added(own: tuple[str, ...], theirs: tuple[str, ...]) -> _Merged:
    return _Merged(tuple(dict.fromkeys((*own, *theirs))))


def _never(own: Any, theirs: Any) -> _Merged:
    return _Merged(own, "a project cannot allow anything" if theirs else "")


def _lower(own: int, theirs: int) -> _Merged:
    return _Merged(min(own, theirs), f"it may only be lowered from {own}" if theirs > own else "")


def _sooner(own: int, theirs: int) -> _Merged:
    """As lower, but 0 is never."""
    if theirs and (not own or theirs <= own):
        return _Merged(theirs)
    return _Merged(own, f"it may only come sooner than {own}" if theirs != own else "")


def _only_on(own: bool, theirs: bool) -> _Merged:  # noqa: FBT001
    return _Merged(own or theirs, "it may only be switched on" if own and not theirs else "")


def _only_off(own: bool, theirs: bool) -> _Merged:  # noqa: FBT001
    return _Merged(own and theirs, "it may only be switched off" if theirs and not own else "")


def _stricter(own: str, theirs: str) -> _Merged:
    if _MODES.index(theirs) <= _MODES.index(own):
        return _Merged(theirs)
    return _Merged(own, f'it may only be stricter than "{own}"')


def _memory(own: tuple[str, ...], theirs: tuple[str, ...]) -> _Merged:
    """Names are looked for in the home directory too, where there are files of other kinds."""
    prose = tuple(name for name in theirs if name.lower().endswith((".md", ".txt")))
    why = "a project may only name .md and .txt files" if len(prose) < len(theirs) else ""
    return _Merged(_added(own, prose).value, why)


_MERGED: dict[str, _Merge] = {
    "language": _set,
    **{f"context.{field.name}": _set for field in msgspec.structs.fields(ContextSettings)},
    "agent.max_turns": _lower,
    "agent.watch_loops": _only_on,
    "agent.judge_after": _sooner,
    "agent.memory_files": _memory,
    "permissions.mode": _stricter,
    "permissions.allow": _never,
    "permissions.ask": _apart,
    "permissions.deny": _added,
    "permissions.network": _only_off,
    "hooks": _apart,
}
_STAND_APART = ("permissions.ask", "hooks")


def _with_project(found: Configured, project: Given) -> Configured:
    settings, told, taken = found.settings, [], set()
    for key, line in project.lines.items():
        own, theirs = _value(settings, key), _value(project.settings, key)
        value, ignored = _MERGED[key](own, theirs)
        if value != own or (key in _STAND_APART and theirs):
            settings = _replaced(settings, key, value)
            taken.add(key)
        if ignored:
            where = f", line {line}" if line else ""
            told.append(f"{one_line(str(found.project_file))}{where}: `{key}`: {ignored}")
    return msgspec.structs.replace(
        found,
        settings=settings,
        project=project,
        project_ask=project.settings.permissions.ask,
        project_hooks=project.settings.hooks,
        told=tuple(told),
        taken=frozenset(taken),
    )


def _value(settings: Settings, key: str) -> Any:
    section, _, name = key.rpartition(".")
    return getattr(getattr(settings, section) if section else settings, name)


def _replaced(settings: Settings, key: str, value: Any) -> Settings:
    section, _, name = key.rpartition(".")
    if not section:
        return msgspec.structs.replace(settings, **{name: value})
    table = msgspec.structs.replace(getattr(settings, section), **{name: value})
    return msgspec.structs.replace(settings, **{section: table})


# --- where values come from --------------------------------------------------------------------

_JOINED = ("permissions.deny", "permissions.ask", "agent.memory_files", "hooks")


def rows(found: Configured) -> tuple[Row, ...]:
    """Every setting in force with its origins, secrets hidden."""
    from recollect.settings.listing import listed

    permissions = found.settings.permissions
    whole = msgspec.structs.replace(
        found.settings,
        permissions=msgspec.structs.replace(
            permissions, ask=(*permissions.ask, *found.project_ask)
        ),
        hooks=(*found.settings.hooks, *found.project_hooks),
    )
    return tuple(Row(key, value, tuple(_origins(found, key))) for key, value in listed(whole))


def _origins(found: Configured, key: str) -> Iterator[Origin]:
    theirs = key in found.taken
    if key in found.own.lines and (not theirs or key in _JOINED):
        yield Origin(str(found.own_file), found.own.lines[key])
    if theirs and found.project is not None:
        yield Origin(str(found.project_file), found.project.lines[key])


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
