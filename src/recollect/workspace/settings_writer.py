"""Changes one setting in a settings file; comments and order of the file stay as they are.

The new file is validated as strictly as reading validates it, compared with the old one so that
nothing but this setting differs, and then replaces it as a whole, unless another program has
changed the file in the meantime. The user's file may be a link, which is followed; a project's may
not, and its folder must be trusted.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from recollect.errors import BadInput, BadSettings, CannotWrite
from recollect.settings import ParsedSettings, Settings, parse_settings
from recollect.settings.setting_definitions import SETTINGS_SECTIONS
from recollect.settings.settings_file import decode_settings
from recollect.settings.settings_listing import list_settings
from recollect.settings.settings_validation import RENAMED_KEYS
from recollect.workspace.effective_settings import EffectiveSettings
from recollect.workspace.project_overrides import check_project_keys
from recollect.workspace.safe_files import replace_file

_BOM = "\ufeff"
_LINE = re.compile(r"^line [0-9]+, ")  # of the file that was not written


def write_setting(found: EffectiveSettings, key: str, value: str, *, project: bool) -> Path:
    """Set a setting to a value as the user typed it; returns the file."""
    path = _settings_path(found, project=project)
    before, text = _read(path)
    problems: list[str] = []
    for candidate in _values(value):
        after = _changed(text, key, candidate, path)
        try:
            _check(after, path, found, project=project)
        except BadSettings as error:
            problems.append(_LINE.sub("", error.why))
        else:
            _write(path, before, after)
            return path
    raise BadInput(f"{problems[0]}; nothing was written")


def add_to_setting(found: EffectiveSettings, key: str, item: str, *, project: bool) -> Path | None:
    """Append a text to a list, which is the default if the file does not set it; returns the file,
    or none if the text is in the list already."""
    path = _settings_path(found, project=project)
    before, text = _read(path)
    items = _listed(text, key, path)
    if items is None:
        items = list_settings(Settings()).get(key)
        if not isinstance(items, list | tuple):
            raise BadInput(f"`{key}` is not a list; `recollect config {key} VALUE` sets it")
        text = _changed(text, key, list(items), path)
    if item in items:
        return None
    after = _changed(text, key, item, path, append=True)
    try:
        _check(after, path, found, project=project)
    except BadSettings as error:
        raise BadInput(f"{_LINE.sub('', error.why)}; nothing was written") from None
    _write(path, before, after)
    return path


def unset_setting(found: EffectiveSettings, key: str, *, project: bool) -> Path | None:
    """Remove a setting from the file, which is returned; none if it is not set there."""
    path = _settings_path(found, project=project)
    before, text = _read(path)
    after = _changed(text, key, None, path)
    if after == text:
        return None
    _check(after, path, found, project=project)
    _write(path, before, after)
    return path


def _settings_path(found: EffectiveSettings, *, project: bool) -> Path:
    if not project:
        return found.user_file.resolve()
    path = found.project_file
    if not found.trusted:
        why = "the folder is not trusted, so it would be ignored; `recollect trust` trusts it"
        raise BadInput(f"cannot set anything in {path}: {why}")
    if path.resolve() != path:
        why = "it is a link, and project settings are not read through links"
        raise BadInput(f"cannot set anything in {path}: {why}")
    return path


def _read(path: Path) -> tuple[bytes | None, str]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        raise BadSettings(str(path), error.strerror or type(error).__name__) from error
    return data, decode_settings(data, str(path))


def _write(path: Path, before: bytes | None, text: str) -> None:
    if _read(path)[0] != before:
        raise CannotWrite(str(path), "another program has changed it in the meantime")
    mark = _BOM if before is not None and before.startswith(_BOM.encode()) else ""
    replace_file(path, (mark + text).encode())


def _check(text: str, path: Path, found: EffectiveSettings, *, project: bool) -> ParsedSettings:
    parsed = parse_settings(text, str(path))
    if project:
        check_project_keys(parsed, path, found.user_file)
    return parsed


def _values(typed: str) -> list[Any]:
    """What the user may have meant: a TOML value, or else the text itself."""
    try:
        return [tomlkit.parse(f"value = {typed}")["value"], typed]
    except (TOMLKitError, ValueError, RecursionError):
        return [typed]


def _listed(text: str, key: str, path: Path) -> list[Any] | None:
    """The list that a file sets; None if it sets none."""
    table: Any = _parse(text, path)[1]
    for name in _names(key):
        table = table.get(name) if isinstance(table, dict) else None
    return table if isinstance(table, list) else None


def _parse(text: str, path: Path) -> tuple[tomlkit.TOMLDocument, dict[str, Any]]:
    """The file with its comments and order, and its values alone."""
    try:
        return tomlkit.parse(text), tomllib.loads(text)
    except (TOMLKitError, ValueError, RecursionError) as error:
        why = f"it is not TOML: {str(error)[:300]}; repair it first"
        raise BadSettings(str(path), why) from None


def _changed(text: str, key: str, value: Any, path: Path, *, append: bool = False) -> str:
    """The file with the setting changed; without it if the value is None."""
    names = _names(RENAMED_KEYS.get(key, key))
    document, plain = _parse(text, path)
    for old, new in RENAMED_KEYS.items():
        if new == key:  # set under its old name: the new one replaces it
            _edit(document, _names(old), None, tomlkit.table)
            _edit(plain, _names(old), None, dict)
    try:
        _edit(document, names, value, tomlkit.table, append=append)
        _edit(plain, names, value, dict, append=append)
        after = document.as_string()
        same = tomllib.loads(after) == plain
    except (TOMLKitError, ValueError, TypeError):
        same = False
    if not same:
        raise BadInput(f"cannot change `{key}` in {path} without other changes; edit the file")
    return after


def _names(key: str) -> list[str]:
    """A setting's tables and its name; the name of a model may have dots."""
    first, _, rest = key.partition(".")
    if first == "models" and "." in rest:
        model, _, name = rest.rpartition(".")
        return [first, model, name]
    return [first, *rest.split(".", 1)] if first in SETTINGS_SECTIONS and rest else [key]


def _edit(
    table: MutableMapping[str, Any],
    names: list[str],
    value: Any,
    new_table: Callable[[], Any],
    *,
    append: bool = False,
) -> None:
    for name in names[:-1]:
        if name not in table:
            if value is None:
                return
            table[name] = new_table()
        table = table[name]
    if append:
        table[names[-1]].append(value)
    elif value is not None:
        table[names[-1]] = value
    elif names[-1] in table:
        del table[names[-1]]
