"""Settings in force as lines: values, where each comes from, and a change of one.

An unknown key suggests the nearest. Headers, passwords and anything that looks like a key are
hidden by the listing that this is made of.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from recollect.display.display_text import one_line
from recollect.errors import BadInput
from recollect.settings.settings_validation import RENAMED_KEYS
from recollect.workspace.effective_settings import EffectiveSettings, resolve_settings
from recollect.workspace.setting_sources import EffectiveSetting, list_effective_settings
from recollect.workspace.settings_writer import add_to_setting, unset_setting, write_setting


class UnknownSetting(BadInput):
    def __init__(self, key: str, near: str) -> None:
        hint = f"did you mean {near!r}?" if near else "docs/settings.md lists them"
        super().__init__(f"there is no setting {key[:80]!r}; {hint}")
        self.key, self.near = key, near


class SectionNamed(BadInput):
    def __init__(self, key: str) -> None:
        super().__init__(f"{key!r} is a section; name one of its settings")


def change_setting(
    folder: Path, key: str, value: str | None, *, add: bool = False, project: bool = False
) -> str:
    """Change one setting in a file, or remove it without a value; says what was done."""
    found = resolve_settings(folder)
    key = RENAMED_KEYS.get(key, key)
    if not key.startswith("models."):
        select_settings(list_effective_settings(found), key, single=True)
    if value is None:
        file = unset_setting(found, key, project=project)
        return f"removed from {file}" if file else f"{key} was not set there"
    if add:
        file = add_to_setting(found, key, value, project=project)
        return f"added in {file}" if file else f"{value!r} is in the list already"
    return f"set in {write_setting(found, key, value, project=project)}"


def select_settings(
    rows: Sequence[EffectiveSetting], key: str | None, *, single: bool = False
) -> list[EffectiveSetting]:
    """The settings of this key or section; `BadInput` if there is none, or `single` is wanted."""
    if not key:
        return list(rows)
    key = key.removeprefix("[").removesuffix("]")
    selected = [row for row in rows if row.key == key or row.key.startswith(key + ".")]
    parent = key.rpartition(".")[0]
    if single and not selected and any(isinstance(r.value, dict) and r.key == parent for r in rows):
        return []  # a name of its own in a table, such as a header
    if single and selected and selected[0].key != key:
        raise SectionNamed(key)
    if not selected:
        near = get_close_matches(key[:80], [row.key for row in rows], n=1, cutoff=0.5)
        raise UnknownSetting(key, near[0] if near else "")
    return selected


def origin_label(row: EffectiveSetting, found: EffectiveSettings) -> str:
    """Short, because paths are long; `settings_files` prints the paths."""
    names = {str(found.user_file): "yours", str(found.project_file): "project"}
    places = [names[at.file] + (f", line {at.line}" if at.line else "") for at in row.sources]
    return "; ".join(places) or "default"


def settings_files(found: EffectiveSettings) -> list[str]:
    note = " (not used: the folder is not trusted)" if found.project_ignored else " (not there)"
    note = "" if found.project is not None else note
    mine = "" if found.user_file.exists() else " (not there)"
    return [
        f"yours    {one_line(str(found.user_file))}{mine}",
        f"project  {one_line(str(found.project_file))}{note}",
    ]


def format_setting(value: Any) -> str:
    return "not set" if value is None else json.dumps(value, ensure_ascii=False)
