"""The environment of a hook's command: what programs need, and what the hook's settings name.

Nothing else: the user's shell has the keys of providers, tokens and passwords, and a hook gets none
that was not named for it. The list is that of the commands which a model runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from recollect.execution.sandbox import ALLOWED_VARIABLES

# A hook is the user's program: it finds its settings, and may show a notification.
_MORE = """
SHELL TERM TMPDIR RECOLLECT_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME
XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY DBUS_SESSION_BUS_ADDRESS
"""
_KEPT = ALLOWED_VARIABLES.union(_MORE.split())


def hook_environment(named: Collection[str], given: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in given.items()
        if name in _KEPT or name in named or name.startswith("LC_")
    }
    # a program in the project must not pass for a known one
    path = [item for item in kept.get("PATH", "").split(":") if item.startswith("/")]
    return {**kept, "PATH": ":".join(path) or "/usr/local/bin:/usr/bin:/bin"}
