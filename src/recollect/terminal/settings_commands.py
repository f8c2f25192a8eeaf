"""`/settings`: every setting and where it comes from, or one of them changed. `/theme`: the colours
of the screens, kept in the user's settings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import get_args

from recollect.display.display_text import GAP, align_table, one_line
from recollect.display.settings_report import (
    change_setting,
    format_setting,
    origin_label,
    select_settings,
    settings_files,
)
from recollect.errors import BadInput
from recollect.settings.setting_definitions import ThemeName
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.slash_commands import ANSWER_WIDTH
from recollect.workspace.effective_settings import resolve_settings
from recollect.workspace.setting_sources import list_effective_settings

THEMES: tuple[ThemeName, ...] = get_args(ThemeName)


async def run_settings(runner: SessionRunner, arguments: str) -> str:
    key, _, value = arguments.partition(" ")
    runtime = await runner.opened()
    if value.strip():
        done = await _change(runner, key, value.strip())
        return f"{done}; it holds from the next prompt on"
    found = runtime.effective
    rows = select_settings(list_effective_settings(found), key or None)
    cells = [["SETTING", "VALUE", "FROM"]]
    for row in rows:
        shown = one_line(format_setting(row.value))
        cells.append([one_line(row.key), shown, origin_label(row, found)])
    lines = [GAP.join(row).rstrip() for row in align_table(cells, width=ANSWER_WIDTH, stretch=1)]
    if len(rows) == 1:  # whole, however long
        lines = [f"{one_line(rows[0].key)} = {one_line(format_setting(rows[0].value))}"]
        lines.append(f"from: {origin_label(rows[0], found)}")
    return "\n".join([*lines, "", *settings_files(found), *found.warnings])


async def _change(runner: SessionRunner, key: str, value: str) -> str:
    done = await asyncio.to_thread(change_setting, Path.cwd(), key, value)
    await runner.reconfigure(runner.overrides)
    return done


async def run_theme(runner: SessionRunner, arguments: str) -> str:
    """The text answer; the screen then shows itself in the new colours."""
    await runner.opened()
    current = resolve_settings(Path.cwd()).settings.terminal.theme
    if not arguments:
        marks = [f"{'*' if name == current else ' '} {name}" for name in THEMES]
        return "\n".join([*marks, "/theme NAME sets another; `auto` follows the terminal"])
    if arguments not in THEMES:
        raise BadInput(f"there is no theme {arguments[:40]!r}; take {', '.join(THEMES)}")
    await _change(runner, "terminal.theme", arguments)
    return f"the theme is {arguments} now"
