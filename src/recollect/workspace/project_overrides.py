"""How a project's settings change the user's: they tighten, and never loosen.

A project's `.recollect/settings.toml` must be a regular file and not a link. It adds rules that
deny and ask, lowers limits, adds names of memory files and hooks, and sets preferences that permit
nothing more. Values that would loosen are ignored with a warning. Keys that decide where the
conversation is sent are refused, and so is every key that is not in the table below. The caller has
made sure that the folder is trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import and_, attrgetter, or_
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from recollect.errors import BadSettings
from recollect.settings import (
    ContextSettings,
    ParsedSettings,
    Settings,
    parse_settings,
)
from recollect.settings.settings_file import decode_settings
from recollect.workspace.safe_files import ReadRefused, read_inside
from recollect.workspace.untrusted_text import one_line

MAX_PROJECT_FILE = 100_000  # bytes


class AppliedOverrides(NamedTuple):
    settings: Settings
    keys: frozenset[str]  # of the project's file: those that take effect
    warnings: tuple[str, ...]  # what was ignored; each continues the name of the file


def read_project_settings(path: Path, root: Path, user_file: Path) -> ParsedSettings:
    file = read_inside(path, (root,), MAX_PROJECT_FILE)
    if isinstance(file, ReadRefused):
        raise BadSettings(str(path), file.why)
    if file.path != path:
        why = "it is a link, and project settings are not read through links"
        raise BadSettings(str(path), why)
    project = parse_settings(decode_settings(file.data, str(path)), str(path))
    check_project_keys(project, path, user_file)
    if project.settings.hooks and file.writable_by_others:
        raise BadSettings(str(path), "it has hooks, and other users can write to it")
    return project


def check_project_keys(project: ParsedSettings, path: Path, user_file: Path) -> None:
    """`BadSettings` if the file sets what a project may not set."""
    for key, line in project.lines.items():
        if key not in _MERGE_RULES:
            why = f"a project may not set `{one_line(key, 80)}`; put it into {user_file}"
            where = f"line {line}, " if line else ""
            raise BadSettings(str(path), f"{where}{why} and remove it here")


_MODES = ("plan", "ask", "edit", "free", "unrestricted")  # from strict to lax


_SANDBOXES = ("none", "landlock", "auto", "bubblewrap")  # from lax to strict


class _MergeRule(NamedTuple):
    merge: Callable[[Any, Any], Any]  # of the user's value and the project's
    limit: str = ""  # why the project's value is ignored, or part of it; {} is the user's value


def _set(user: Any, project: Any) -> Any:  # noqa: ARG001 - all merges have one signature
    return project


def _keep(user: Any, project: Any) -> Any:  # noqa: ARG001
    return user


def _add(user: tuple[str, ...], project: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*user, *project)))


def _add_texts(user: tuple[str, ...], project: tuple[str, ...]) -> tuple[str, ...]:
    """Memory files are looked for in the data directory too, which has files of other kinds; a
    path would name any file of the user's."""
    names = (name for name in project if "/" not in name)
    return _add(user, tuple(n for n in names if n.lower().endswith((".md", ".txt"))))


def _sooner(user: int, project: int) -> int:
    """The smaller number, where 0 means never."""
    return min(user, project) or max(user, project)


def _stricter(user: str, project: str) -> str:
    return min(user, project, key=_MODES.index)


def _tighter(user: str, project: str) -> str:
    """`auto` may end in none, where another choice would refuse: it is tighter only than none."""
    if project == "auto" and user != "none":
        return user
    return max(user, project, key=_SANDBOXES.index)


_MERGE_RULES = {
    "language": _MergeRule(_set),
    **{f"context.{f.name}": _MergeRule(_set) for f in msgspec.structs.fields(ContextSettings)},
    "agent.max_turns": _MergeRule(min, "it may only be lowered from {}"),
    "agent.detect_loops": _MergeRule(or_, "it may only be switched on"),
    "agent.loop_check_after": _MergeRule(_sooner, "it may only come sooner than {}"),
    "agent.memory_files": _MergeRule(_add_texts, "only bare names that end in .md or .txt count"),
    "agent.memory_imports": _MergeRule(_set),
    "permissions.mode": _MergeRule(_stricter, 'it may only be stricter than "{}"'),
    "permissions.allow": _MergeRule(_keep, "a project cannot allow anything"),
    "permissions.ask": _MergeRule(_keep),  # kept apart from the user's
    "permissions.deny": _MergeRule(_add),
    "permissions.network": _MergeRule(and_, "it may only be switched off"),
    "permissions.sandbox": _MergeRule(_tighter, 'it may only be tighter than "{}"'),
    "hooks": _MergeRule(_keep),  # kept apart from the user's
}


def apply_project_settings(user: Settings, project: ParsedSettings) -> AppliedOverrides:
    settings, warnings, keys = user, [], set()
    for key, line in project.lines.items():
        merge, limit = _MERGE_RULES[key]
        own, theirs = map(attrgetter(key), (settings, project.settings))
        value = merge(own, theirs)
        kept_apart = merge is _keep and not limit and theirs
        if value != own or kept_apart:
            settings = _replace(settings, key, value)
            keys.add(key)
        in_force = set(theirs) <= set(value) if isinstance(value, tuple) else value == theirs
        if limit and not in_force:
            where = f", line {line}" if line else ""
            warnings.append(f"{where}: `{key}`: {limit.format(own)}")
    return AppliedOverrides(settings, frozenset(keys), tuple(warnings))


def _replace(settings: Settings, key: str, value: Any) -> Settings:
    section, _, name = key.rpartition(".")
    if not section:
        return msgspec.structs.replace(settings, **{name: value})
    table = msgspec.structs.replace(getattr(settings, section), **{name: value})
    return msgspec.structs.replace(settings, **{section: table})
