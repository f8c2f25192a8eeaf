"""Every default in one place, where data lives, and the person's own settings.

`load` reads `settings.toml` in the home directory; a file that is not there means the defaults.
Reading is strict: an unknown key is refused with the nearest known one, a wrong value with what it
must be, and the line is named where it can be found. What a project's own file may add to this is
decided in `recollect.workspace.effective_settings`.
"""

from __future__ import annotations

from recollect.settings.data_paths import SETTINGS_FILE, data_directory, store_path
from recollect.settings.setting_definitions import (
    AgentSettings,
    ContextSettings,
    CustomModel,
    GenerationDefaults,
    HookCommand,
    ModelPrice,
    PermissionSettings,
    RoutingSettings,
    Settings,
    TransportSettings,
)
from recollect.settings.settings_file import (
    MAX_FILE,
    ParsedSettings,
    load_settings,
    parse,
    parse_settings,
    read_settings,
)

__all__ = [
    "MAX_FILE",
    "SETTINGS_FILE",
    "AgentSettings",
    "ContextSettings",
    "CustomModel",
    "GenerationDefaults",
    "HookCommand",
    "ModelPrice",
    "ParsedSettings",
    "PermissionSettings",
    "RoutingSettings",
    "Settings",
    "TransportSettings",
    "data_directory",
    "load_settings",
    "parse",
    "parse_settings",
    "read_settings",
    "store_path",
]
