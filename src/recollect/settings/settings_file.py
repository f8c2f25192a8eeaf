"""Reads a settings file strictly: any bytes in, `ParsedSettings` or one error message out.

`parse_settings` takes the text, `read_settings` a file of the user, which may be a link but must be
a regular file. Neither blocks or takes long, and `BadSettings` is the only error; it names the line
if that can be found. `ParsedSettings` also has the line on which each key is set.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from recollect.errors import BadSettings
from recollect.settings.data_paths import SETTINGS_FILE, data_directory
from recollect.settings.setting_definitions import SETTINGS_SECTIONS, Settings
from recollect.settings.settings_validation import (
    RENAMED_KEYS,
    InvalidSetting,
    check_settings,
    choices_of,
    last_name,
    printable,
    refuse_unknown,
    rename_old_keys,
)

MAX_FILE = 1_000_000  # bytes
MAX_DOTS = 200  # of one line: tomllib takes a minute for a key of 50,000 parts


class ParsedSettings(msgspec.Struct, frozen=True):
    """A file's settings, the line that sets each of its keys (0: unknown), and hints."""

    settings: Settings = Settings()
    lines: dict[str, int] = {}
    hints: tuple[str, ...] = ()  # about old names of settings


def load_settings(path: Path | None = None) -> Settings:
    """The user's settings; `BadSettings` says what is wrong with them."""
    return read_settings(data_directory() / SETTINGS_FILE if path is None else path).settings


def read_settings(path: Path) -> ParsedSettings:
    """One file; the defaults if there is none."""
    try:
        data = _bytes(path)
    except FileNotFoundError:
        return ParsedSettings()
    except BadSettings:
        raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise BadSettings(str(path), why) from error
    return parse_settings(decode_settings(data, str(path)), str(path))


def _bytes(path: Path) -> bytes:
    no_wait = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would block without it
    with open(path, "rb", opener=lambda path, flags: os.open(path, flags | no_wait)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise BadSettings(str(path), "it is not a regular file")
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise BadSettings(str(path), f"it has more than {MAX_FILE:,} bytes")
    return data


def decode_settings(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadSettings(path, f"it is not UTF-8 at byte {error.start:,}") from None


def parse_settings(text: str, path: str = SETTINGS_FILE) -> ParsedSettings:
    value = _toml(text, path)
    try:
        hints = rename_old_keys(value)
        refuse_unknown(value)
        settings = msgspec.convert(value, Settings)
        check_settings(settings)
    except InvalidSetting as wrong:
        raise BadSettings(path, _at_line(text, wrong.key) + wrong.why) from None
    except msgspec.ValidationError as error:
        key, why = _explain(str(error))
        raise BadSettings(path, _at_line(text, key) + why) from None
    lines = _lines(text)
    return ParsedSettings(settings, {key: _line_of(key, lines) for key in _keys(value)}, hints)


def _toml(text: str, path: str) -> dict[str, Any]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MAX_DOTS:
            raise BadSettings(path, f"line {number} has more than {MAX_DOTS} dots; break it")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(path, f"it is not TOML: {str(error)[:300]}") from None
    except RecursionError:
        raise BadSettings(path, "it is nested too deeply") from None
    except ValueError:  # such as a number of more than 4,300 digits
        raise BadSettings(path, "it has a number or a date that is out of range") from None


def _keys(value: dict[str, Any]) -> list[str]:
    """Every setting that the file sets, in its order."""
    keys = []
    for name, given in value.items():
        if name in SETTINGS_SECTIONS:
            keys += [f"{name}.{key}" for key in given]
        elif name == "models":
            keys += [f"models.{model}.{key}" for model, table in given.items() for key in table]
        else:
            keys.append(name)
    return keys


def _explain(error: str) -> tuple[str, str]:
    """The key, and msgspec's message with the key in front."""
    message, _, place = error.partition(" - at `")
    key = re.sub(r"\[[0-9.]+\]", "", place.rpartition("$.")[2].rstrip("`")) or "the file"
    missing = re.search(r"missing required field `(\w+)`", message)
    choices = ", ".join(f'"{choice}"' for choice in choices_of(key))
    why = f" lacks `{missing[1]}`" if missing else f": {message[:1].lower()}{message[1:300]}"
    if (given := message.removeprefix("Invalid enum value ")) != message and choices:
        why = f" must be one of {choices}, not {given[:100]}"
    return last_name(key), f"`{printable(key)}`{why}"


def _at_line(text: str, key: str) -> str:
    """The line that sets the key, if there is exactly one."""
    found = [number for path, number in _key_lines(text) if last_name(path) == key]
    return f"line {found[0]}, " if len(found) == 1 else ""


def _lines(text: str) -> dict[str, int]:
    """The line that seems to set each key; 0 if several do."""
    found: dict[str, int] = {}
    for path, number in _key_lines(text):
        key = RENAMED_KEYS.get(path, path)
        found[key] = 0 if key in found else number
    return found


def _line_of(key: str, lines: dict[str, int]) -> int:
    """The line of the key, else of the table around it, which may be an inline table."""
    while key not in lines and "." in key:
        key = key.rpartition(".")[0]
    return lines.get(key, 0)


def _key_lines(text: str) -> list[tuple[str, int]]:
    table, found = "", []
    for number, line in enumerate(text.split("\n"), 1):
        start = line.strip()
        if start.startswith("["):
            table = _bare(start.lstrip("[").partition("]")[0])
            found.append((table, number))
        elif "=" in start:
            key = _bare(start.partition("=")[0])
            found.append((f"{table}.{key}" if table else key, number))
    return found


def _bare(key: str) -> str:
    return ".".join(part.strip("\"' \t") for part in key.split("."))
