"""Every default in one place, where data lives, and the person's own settings.

`load` reads `settings.toml` in the home directory; a file that is not there means the defaults.
Reading is strict: an unknown key is refused with the nearest known one, a wrong value with what it
must be, and the line is named where it can be found. What a project's own file may add to this is
decided in `recollect.workspace.configuring`.
"""

from __future__ import annotations

from recollect.settings.places import FILE, home, store_path
from recollect.settings.reading import MAX_FILE, Given, load, parse, read, understood
from recollect.settings.sections import (
    AgentSettings,
    ContextSettings,
    HookCommand,
    OwnModel,
    Permissions,
    Price,
    RoutingSettings,
    Settings,
    Transport,
    Wishes,
)

__all__ = [
    "FILE",
    "MAX_FILE",
    "AgentSettings",
    "ContextSettings",
    "Given",
    "HookCommand",
    "OwnModel",
    "Permissions",
    "Price",
    "RoutingSettings",
    "Settings",
    "Transport",
    "Wishes",
    "home",
    "load",
    "parse",
    "read",
    "store_path",
    "understood",
]
