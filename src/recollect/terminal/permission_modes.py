"""Shift+Tab goes through the permission modes; never to the one without a sandbox."""

from __future__ import annotations

import msgspec

from recollect.terminal.session_runner import SessionRunner

MEANINGS = {
    "plan": "reads only: changes and commands are refused",
    "ask": "asks before it changes a file or runs a command that no rule allows",
    "edit": "changes files of the folder without asking; commands ask",
    "free": "changes files and runs commands in the sandbox without asking",
}


def next_mode(mode: str) -> str:
    """The one after this; from any other, such as unrestricted, the strictest."""
    modes = [*MEANINGS]
    return modes[(modes.index(mode) + 1) % len(modes)] if mode in modes else modes[0]


async def switch_mode(runner: SessionRunner) -> str:
    """Go to the next mode; the line that says what it means."""
    before = (await runner.opened()).settings.permissions.mode
    mode = next_mode(before)
    await runner.reconfigure(msgspec.structs.replace(runner.overrides, mode=mode))
    late = ""
    if runner.busy:
        which = "call" if before in MEANINGS else "prompt"  # the sandbox would be another one
        late = f" (from the next {which} on)"
    return f"mode {mode}: {MEANINGS[mode]}{late}"
