"""Every setting with its default, the user's settings file, and where data is stored.

`load_settings` reads `settings.toml` in the data directory; without a file the defaults hold. Files
are read strictly: an unknown key or a wrong value is refused with the remedy and, if possible, its
line. `recollect.workspace.effective_settings` adds a project's own file.
"""

from __future__ import annotations

from recollect.settings.data_paths import (
    SETTINGS_FILE,
    data_directory,
    is_open_to_others,
    make_private_folder,
    store_path,
)
from recollect.settings.setting_definitions import (
    AgentSettings,
    ContextSettings,
    CustomModel,
    GenerationDefaults,
    HookCommand,
    ModelPrice,
    Settings,
    TransportSettings,
)
from recollect.settings.settings_file import (
    ParsedSettings,
    load_settings,
    parse_settings,
    read_settings,
)

__all__ = [
    "SETTINGS_FILE",
    "AgentSettings",
    "ContextSettings",
    "CustomModel",
    "GenerationDefaults",
    "HookCommand",
    "ModelPrice",
    "ParsedSettings",
    "Settings",
    "TransportSettings",
    "data_directory",
    "is_open_to_others",
    "load_settings",
    "make_private_folder",
    "parse_settings",
    "read_settings",
    "store_path",
]
