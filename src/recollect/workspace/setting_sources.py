"""Where each setting in force comes from: the default, the user's file, or the project's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from recollect.settings.settings_listing import list_settings
from recollect.workspace.effective_settings import EffectiveSettings


class SettingSource(NamedTuple):
    file: str
    line: int = 0  # 0: unknown


class EffectiveSetting(NamedTuple):
    """One setting in force. Without a source it is the default."""

    key: str
    value: Any  # a JSON type, secrets hidden
    sources: tuple[SettingSource, ...] = ()


_JOINED = ("permissions.deny", "permissions.ask", "agent.memory_files", "hooks")


def list_effective_settings(found: EffectiveSettings) -> tuple[EffectiveSetting, ...]:
    permissions = found.settings.permissions
    ask = (*permissions.ask, *found.project_ask)
    joined = msgspec.structs.replace(
        found.settings,
        permissions=msgspec.structs.replace(permissions, ask=ask),
        hooks=(*found.settings.hooks, *found.project_hooks),
    )
    return tuple(
        EffectiveSetting(key, value, tuple(_sources(found, key)))
        for key, value in list_settings(joined).items()
    )


def _sources(found: EffectiveSettings, key: str) -> Iterator[SettingSource]:
    by_project = key in found.project_keys
    if key in found.user.lines and (not by_project or key in _JOINED):
        yield SettingSource(str(found.user_file), found.user.lines[key])
    if by_project and found.project is not None:
        yield SettingSource(str(found.project_file), found.project.lines[key])
