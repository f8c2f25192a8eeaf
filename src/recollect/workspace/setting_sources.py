"""Where each setting in force comes from: the default, the person's file, or the project's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from recollect.settings.settings_listing import list_settings
from recollect.workspace.effective_settings import EffectiveSettings


class SettingSource(NamedTuple):
    place: str  # a file
    line: int = 0  # 0: not known


class EffectiveSetting(NamedTuple):
    """One setting as it is in force. No origin: the default."""

    key: str
    value: Any  # as JSON has it, secrets hidden
    origins: tuple[SettingSource, ...] = ()


_JOINED = ("permissions.deny", "permissions.ask", "agent.memory_files", "hooks")


def list_effective_settings(found: EffectiveSettings) -> tuple[EffectiveSetting, ...]:
    """Every setting in force with its origins, secrets hidden."""
    permissions = found.settings.permissions
    whole = msgspec.structs.replace(
        found.settings,
        permissions=msgspec.structs.replace(
            permissions, ask=(*permissions.ask, *found.project_ask)
        ),
        hooks=(*found.settings.hooks, *found.project_hooks),
    )
    return tuple(
        EffectiveSetting(key, value, tuple(_origins(found, key)))
        for key, value in list_settings(whole)
    )


def _origins(found: EffectiveSettings, key: str) -> Iterator[SettingSource]:
    theirs = key in found.taken
    if key in found.own.lines and (not theirs or key in _JOINED):
        yield SettingSource(str(found.user_file), found.own.lines[key])
    if theirs and found.project is not None:
        yield SettingSource(str(found.project_file), found.project.lines[key])
