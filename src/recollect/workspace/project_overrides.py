"""How a project's settings change the user's: they tighten, and never loosen.

A project's `.recollect/settings.toml` must be a regular file and not a link. It adds rules that
deny and ask, lowers limits, adds names of memory files and hooks, and sets preferences that permit
nothing more. Values that would loosen are ignored with a warning. Keys that decide where the
conversation is sent are refused, and so is every key that is not in the table below. The caller has
made sure that the folder is trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from recollect.errors import BadSettings
from recollect.settings import (
    ContextSettings,
    HookCommand,
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
    file = read_inside(path, (root,), MAX_PROJECT_FILE + 1)
    if isinstance(file, ReadRefused):
        raise BadSettings(str(path), file.why)
    if file.path != path:
        raise BadSettings(
            str(path), "it is a link, and project settings are not read through links"
        )
    project = parse_settings(decode_settings(file.data, str(path), MAX_PROJECT_FILE), str(path))
    for key, line in project.lines.items():
        if key not in _MERGE_RULES:
            where = f"line {line}, " if line else ""
            raise BadSettings(
                str(path),
                f"{where}a project may not set `{one_line(key, 80)}`; "
                f"put it into {user_file} and remove it here",
            )
    if project.settings.hooks and file.writable_by_others:
        raise BadSettings(str(path), "it has hooks, and other users can write to it")
    return project


_MODES = ("plan", "ask", "edit", "free")  # from strict to lax


class _Merged(NamedTuple):
    value: Any
    ignored: str = ""  # why the project's value is ignored, or part of it


_MergeRule = Callable[[Any, Any], _Merged]


def _set(user: Any, project: Any) -> _Merged:  # noqa: ARG001 - all rules have one signature
    return _Merged(project)


def _keep_apart(user: Any, project: Any) -> _Merged:  # noqa: ARG001
    return _Merged(user)


def _add(user: tuple[str, ...], project: tuple[str, ...]) -> _Merged:
    return _Merged(tuple(dict.fromkeys((*user, *project))))


def _never(user: Any, project: Any) -> _Merged:
    return _Merged(user, "a project cannot allow anything" if project else "")


def _lower(user: int, project: int) -> _Merged:
    why = f"it may only be lowered from {user}" if project > user else ""
    return _Merged(min(user, project), why)


def _lower_or_on(user: int, project: int) -> _Merged:
    """As lower, but 0 is never."""
    if project and (not user or project <= user):
        return _Merged(project)
    return _Merged(user, f"it may only come sooner than {user}" if project != user else "")


def _only_on(user: bool, project: bool) -> _Merged:  # noqa: FBT001
    return _Merged(user or project, "it may only be switched on" if user and not project else "")


def _only_off(user: bool, project: bool) -> _Merged:  # noqa: FBT001
    return _Merged(user and project, "it may only be switched off" if project and not user else "")


def _stricter(user: str, project: str) -> _Merged:
    if _MODES.index(project) <= _MODES.index(user):
        return _Merged(project)
    return _Merged(user, f'it may only be stricter than "{user}"')


def _add_texts(user: tuple[str, ...], project: tuple[str, ...]) -> _Merged:
    """Memory files are looked for in the home directory too, which has files of other kinds."""
    texts = tuple(name for name in project if name.lower().endswith((".md", ".txt")))
    why = "a project may only name .md and .txt files" if len(texts) < len(project) else ""
    return _Merged(_add(user, texts).value, why)


_MERGE_RULES: dict[str, _MergeRule] = {
    "language": _set,
    **{f"context.{field.name}": _set for field in msgspec.structs.fields(ContextSettings)},
    "agent.max_turns": _lower,
    "agent.detect_loops": _only_on,
    "agent.loop_check_after": _lower_or_on,
    "agent.memory_files": _add_texts,
    "permissions.mode": _stricter,
    "permissions.allow": _never,
    "permissions.ask": _keep_apart,
    "permissions.deny": _add,
    "permissions.network": _only_off,
    "hooks": _keep_apart,
}


def apply_project_settings(user: Settings, project: ParsedSettings) -> AppliedOverrides:
    settings, warnings, keys = user, [], set()
    for key, line in project.lines.items():
        merge = _MERGE_RULES[key]
        own, theirs = _value(settings, key), _value(project.settings, key)
        value, ignored = merge(own, theirs)
        if value != own or (merge is _keep_apart and theirs):
            settings = _replace(settings, key, value)
            keys.add(key)
        if ignored:
            where = f", line {line}" if line else ""
            warnings.append(f"{where}: `{key}`: {ignored}")
    return AppliedOverrides(settings, frozenset(keys), tuple(warnings))


def digest_hooks(hooks: tuple[HookCommand, ...]) -> str:
    return sha256(msgspec.json.encode(hooks)).hexdigest()


def _value(settings: Settings, key: str) -> Any:
    section, _, name = key.rpartition(".")
    return getattr(getattr(settings, section) if section else settings, name)


def _replace(settings: Settings, key: str, value: Any) -> Settings:
    section, _, name = key.rpartition(".")
    if not section:
        return msgspec.structs.replace(settings, **{name: value})
    table = msgspec.structs.replace(getattr(settings, section), **{name: value})
    return msgspec.structs.replace(settings, **{section: table})
