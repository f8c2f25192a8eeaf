"""`recollect config`: every setting in force in this folder, and where its value comes from.

Headers, passwords and anything that looks like a key are never shown. stdout carries only settings;
ignored settings of a project are reported on stderr. An invalid file means exit code 52, as for the
agent; `--path` works all the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from recollect.cli.console import (
    paint,
    print_error,
    print_json,
    print_lines,
    print_note,
    terminal_width,
)
from recollect.cli.display_text import GAP, align_table, one_line
from recollect.cli.main import BAD_SETTINGS
from recollect.cli.options import command, json_option
from recollect.errors import BadSettings
from recollect.settings import SETTINGS_FILE, data_directory
from recollect.workspace.effective_settings import EffectiveSettings, resolve_settings
from recollect.workspace.setting_sources import EffectiveSetting, list_effective_settings


@command(
    ("recollect config", "every setting, and which file sets it"),
    ("recollect config --changed", "only those set in a file"),
    ("recollect config context.keep_reads", "one value"),
    ("recollect config permissions", "one section"),
    ("recollect config --json", "for programs"),
    ('"$EDITOR" "$(recollect config --path)"', "change your settings"),
)
@click.argument("key", metavar="[KEY]", required=False)
@click.option("--changed", is_flag=True, help="Only settings that a file sets.")
@click.option("--path", "only_path", is_flag=True, help="Print the path of your settings file.")
@json_option
def config(*, key: str | None, changed: bool, only_path: bool, as_json: bool) -> int:
    """Show the settings in force and where each comes from.

    docs/settings.md explains every setting. A project may have its own in .recollect/settings.toml;
    they apply once the folder is trusted and can only be stricter than yours.
    """
    if only_path:
        path = str(data_directory() / SETTINGS_FILE)
        print_json({"path": path}) if as_json else print_lines([path])
        return 0
    try:
        found = resolve_settings(Path.cwd())
    except BadSettings as error:
        print_error(str(error))
        return BAD_SETTINGS
    selected = _select(list_effective_settings(found), key)
    shown = [row for row in selected if row.sources or not changed]
    single = len(selected) == 1 and selected[0].key == key
    if as_json:
        print_json(_setting_document(selected[0]) if single else _settings_document(found, shown))
    elif single:
        print_lines([_shell_value(selected[0].value)])
    else:
        print_lines([*_table(shown, found), *_files(found)])
    for line in found.warnings:
        print_note(line)
    return 0


def _select(rows: Sequence[EffectiveSetting], key: str | None) -> list[EffectiveSetting]:
    if not key:
        return list(rows)
    key = key.removeprefix("[").removesuffix("]")
    selected = [row for row in rows if row.key == key or row.key.startswith(key + ".")]
    if not selected:
        near = get_close_matches(key[:80], [row.key for row in rows], n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise click.UsageError(f"There is no setting {key[:80]!r}.{hint}")
    return selected


def _table(rows: Sequence[EffectiveSetting], found: EffectiveSettings) -> list[str]:
    if not rows:
        return []
    cells = [["SETTING", "VALUE", "FROM"]]
    for row in rows:
        value = one_line(_format_value(row.value))
        cells.append([one_line(row.key), value, _origin_label(row, found)])
    head, *body = align_table(cells, width=terminal_width(), stretch=1)
    lines = [paint.dim(GAP.join(head).rstrip())]
    for _, section in groupby(zip(rows, body, strict=True), lambda pair: _section(pair[0])):
        texts = ((row, GAP.join(line).rstrip()) for row, line in section)
        lines += [*(text if row.sources else paint.dim(text) for row, text in texts), ""]
    return lines


def _section(row: EffectiveSetting) -> str:
    return row.key.partition(".")[0] if "." in row.key or row.key in ("models", "hooks") else ""


def _origin_label(row: EffectiveSetting, found: EffectiveSettings) -> str:
    """Short, because paths are long; `_files` prints the paths."""
    names = {str(found.user_file): "yours", str(found.project_file): "project"}
    places = [names[at.file] + (f", line {at.line}" if at.line else "") for at in row.sources]
    return "; ".join(places) or "default"


def _files(found: EffectiveSettings) -> list[str]:
    note = " (not used: the folder is not trusted)" if found.project_ignored else " (not there)"
    note = "" if found.project is not None else note
    mine = "" if found.user_file.exists() else " (not there)"
    return [
        f"yours    {one_line(str(found.user_file))}{mine}",
        f"project  {one_line(str(found.project_file))}{note}",
    ]


def _format_value(value: Any) -> str:
    return "not set" if value is None else json.dumps(value, ensure_ascii=False)


def _shell_value(value: Any) -> str:
    """For a shell: strings without quotes, nothing for an unset value."""
    if value is None:
        return ""
    return one_line(value if isinstance(value, str) else _format_value(value))


def _setting_document(row: EffectiveSetting) -> dict[str, Any]:
    origins = [{"file": at.file, "line": at.line or None} for at in row.sources]
    return {"key": row.key, "value": row.value, "origins": origins}


def _settings_document(
    found: EffectiveSettings, shown: Sequence[EffectiveSetting]
) -> dict[str, Any]:
    return {
        "settings": [_setting_document(row) for row in shown],
        "file": str(found.user_file),
        "project_file": str(found.project_file),
        "trusted": found.trusted,
        "ignored": list(found.warnings),
    }
