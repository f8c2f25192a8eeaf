"""What a project's settings do to the person's own: they tighten, and never loosen.

A project's `.recollect/settings.toml` is read only as a regular file that is no link. It adds rules
that deny and ask, lowers limits, adds names of memory files and hooks, and sets preferences that
widen nothing. What would loosen is ignored and told; what decides where the conversation goes is
refused, and so is a key that is not in the table below, also one that is new. Its hooks run only if
the person was shown these very ones. Whoever asks has seen that the folder is trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from recollect.errors import BadSettings
from recollect.settings import ContextSettings, HookCommand, ParsedSettings, Settings
from recollect.settings.settings_file import decode_settings, parse_settings
from recollect.workspace.effective_settings import EffectiveSettings
from recollect.workspace.safe_files import ReadRefused, read_inside
from recollect.workspace.untrusted_text import one_line

MAX_PROJECT_FILE = 100_000  # bytes


def read_project_settings(found: EffectiveSettings) -> ParsedSettings:
    path = found.project_file
    file = read_inside(path, (found.root,), MAX_PROJECT_FILE + 1)
    if isinstance(file, ReadRefused):
        raise BadSettings(str(path), file.why)
    if file.path != path:
        raise BadSettings(str(path), "it is a link, and a project's settings are not read by links")
    given = parse_settings(decode_settings(file.data, str(path), MAX_PROJECT_FILE), str(path))
    for key, line in given.lines.items():
        if key not in _MERGED:
            where = f"line {line}, " if line else ""
            raise BadSettings(
                str(path),
                f"{where}`{one_line(key, 80)}` is not a project's to set; "
                f"put it into {found.user_file}, and take it out here",
            )
    if given.settings.hooks and file.writable_by_others:
        raise BadSettings(str(path), "it has hooks, and other people can write to it")
    return given


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
    "agent.detect_loops": _only_on,
    "agent.loop_check_after": _sooner,
    "agent.memory_files": _memory,
    "permissions.mode": _stricter,
    "permissions.allow": _never,
    "permissions.ask": _apart,
    "permissions.deny": _added,
    "permissions.network": _only_off,
    "hooks": _apart,
}
_STAND_APART = ("permissions.ask", "hooks")
_UNSEEN = (
    "hooks of this project that do not run, because they are new or have changed: {}; "
    "`recollect trust` shows them and lets them run"
)


def apply_project_settings(found: EffectiveSettings, project: ParsedSettings) -> EffectiveSettings:
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
    hooks, unseen = project.settings.hooks, ()
    if hooks and digest_hooks(hooks) != found.seen:
        hooks, unseen = (), hooks
        taken.discard("hooks")
        told.append(_UNSEEN.format(len(unseen)))
    return msgspec.structs.replace(
        found,
        settings=settings,
        project=project,
        project_ask=project.settings.permissions.ask,
        project_hooks=hooks,
        unapproved_hooks=unseen,
        told=tuple(told),
        taken=frozenset(taken),
    )


def digest_hooks(hooks: tuple[HookCommand, ...]) -> str:
    return sha256(msgspec.json.encode(hooks)).hexdigest()


def _value(settings: Settings, key: str) -> Any:
    section, _, name = key.rpartition(".")
    return getattr(getattr(settings, section) if section else settings, name)


def _replaced(settings: Settings, key: str, value: Any) -> Settings:
    section, _, name = key.rpartition(".")
    if not section:
        return msgspec.structs.replace(settings, **{name: value})
    table = msgspec.structs.replace(getattr(settings, section), **{name: value})
    return msgspec.structs.replace(settings, **{section: table})
