"""`recollect config`: every setting in force in this folder, where its value comes from, and a
change of one.

Headers, passwords and anything that looks like a key are never shown. stdout carries only settings;
ignored settings of a project are reported on stderr. An invalid file means exit code 52, as for the
agent; `--path` works all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from recollect.cli.console import (
    paint,
    print_error,
    print_json,
    print_lines,
    print_note,
    terminal_width,
)
from recollect.cli.isolation_report import isolation_document, isolation_lines
from recollect.cli.main import BAD_SETTINGS
from recollect.cli.options import command, json_option
from recollect.display.display_text import GAP, align_table, one_line
from recollect.display.settings_report import (
    SectionNamed,
    UnknownSetting,
    change_setting,
    format_setting,
    origin_label,
    select_settings,
    settings_files,
)
from recollect.errors import BadSettings
from recollect.execution.sandbox import find_isolation
from recollect.settings import SETTINGS_FILE, Settings, data_directory
from recollect.settings.settings_listing import list_settings
from recollect.settings.settings_validation import RENAMED_KEYS
from recollect.workspace.effective_settings import EffectiveSettings, resolve_settings
from recollect.workspace.setting_sources import EffectiveSetting, list_effective_settings


def _complete_key(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    rows = list_settings(Settings()).items()
    return [CompletionItem(key, help=format_setting(v)) for key, v in rows if key.startswith(typed)]


@command(
    ("recollect config", "every setting, and which file sets it"),
    ("recollect config --changed", "only those set in a file"),
    ("recollect config context.keep_reads", "one value"),
    ("recollect config permissions", "one section"),
    ("recollect config model gpt-5", "set one in your file"),
    ('recollect config permissions.deny \'["rm *", "git push *"]\'', "a list, written as in TOML"),
    ("recollect config --add permissions.allow 'git diff *'", "one more item of a list"),
    ("recollect config --unset model", "back to the default"),
    ("recollect config --project agent.max_turns 20", "in this project's file"),
    ("recollect config --json", "for programs"),
)
@click.argument("key", metavar="[KEY]", required=False, shell_complete=_complete_key)
@click.argument("value", metavar="[VALUE]", required=False)
@click.option("--add", is_flag=True, help="Add VALUE to the list KEY.")
@click.option("--unset", is_flag=True, help="Remove KEY from your settings file.")
@click.option("--project", is_flag=True, help="With VALUE or --unset: in this project's file.")
@click.option("--changed", is_flag=True, help="Only settings that a file sets.")
@click.option("--path", "only_path", is_flag=True, help="Print the path of your settings file.")
@json_option
def config(
    *,
    key: str | None,
    value: str | None,
    add: bool,
    unset: bool,
    project: bool,
    changed: bool,
    only_path: bool,
    as_json: bool,
) -> int:
    """Show the settings and where each comes from, or set one.

    docs/settings.md explains every setting. A project may have its own in .recollect/settings.toml;
    they apply once the folder is trusted and can only be stricter than yours.
    """
    if add and (value is None or unset):
        raise click.UsageError("--add takes KEY and VALUE.")
    _check_usage(key, value, unset=unset, project=project, looks=changed or only_path)
    if only_path:
        path = str(data_directory() / SETTINGS_FILE)
        print_json({"path": path}) if as_json else print_lines([path])
        return 0
    try:
        if key is not None and (unset or value is not None):
            print_note(_change(key, value, add=add, project=project))
            key = RENAMED_KEYS.get(key, key)
        found = resolve_settings(Path.cwd())
    except BadSettings as error:
        print_error(str(error))
        return BAD_SETTINGS
    rows = list_effective_settings(found)
    if (value is None and not unset) or any(row.key == key for row in rows):
        _show(found, rows, key, changed=changed, as_json=as_json)
    return 0


def _check_usage(
    key: str | None, value: str | None, *, unset: bool, project: bool, looks: bool
) -> None:
    if unset and (key is None or value is not None):
        raise click.UsageError("--unset takes a KEY and no VALUE.")
    if project and not unset and value is None:
        raise click.UsageError("--project needs KEY and VALUE, or --unset KEY.")
    if looks and (unset or value is not None):
        raise click.UsageError("--changed and --path only look; leave out VALUE and --unset.")


def _change(key: str, value: str | None, *, add: bool, project: bool) -> str:
    with _usage_errors():
        return change_setting(Path.cwd(), key, value, add=add, project=project)


@contextmanager
def _usage_errors() -> Iterator[None]:
    """An unknown key is wrong usage; so is a section where one setting is meant."""
    try:
        yield
    except UnknownSetting as error:
        hint = f" Did you mean {error.near!r}?" if error.near else ""
        raise click.UsageError(f"There is no setting {error.key[:80]!r}.{hint}") from None
    except SectionNamed as error:
        raise click.UsageError(f"{error}.") from None


def _show(
    found: EffectiveSettings,
    rows: Sequence[EffectiveSetting],
    key: str | None,
    *,
    changed: bool,
    as_json: bool,
) -> None:
    with _usage_errors():
        selected = select_settings(rows, key)
    shown = [row for row in selected if row.sources or not changed]
    single = len(selected) == 1 and selected[0].key == key
    if as_json:
        print_json(_setting_document(selected[0]) if single else _settings_document(found, shown))
    elif single:
        print_lines([_shell_value(selected[0].value)])
    else:
        isolation = find_isolation(found.settings.permissions.sandbox)
        print_lines([*_table(shown, found), *settings_files(found), *isolation_lines(isolation)])
    for line in found.warnings:
        print_note(line)


def _table(rows: Sequence[EffectiveSetting], found: EffectiveSettings) -> list[str]:
    if not rows:
        return []
    cells = [["SETTING", "VALUE", "FROM"]]
    for row in rows:
        value = one_line(format_setting(row.value))
        cells.append([one_line(row.key), value, origin_label(row, found)])
    head, *body = align_table(cells, width=terminal_width(), stretch=1)
    lines = [paint.dim(GAP.join(head).rstrip())]
    for _, section in groupby(zip(rows, body, strict=True), lambda pair: _section(pair[0])):
        texts = ((row, GAP.join(line).rstrip()) for row, line in section)
        lines += [*(text if row.sources else paint.dim(text) for row, text in texts), ""]
    return lines


def _section(row: EffectiveSetting) -> str:
    return row.key.partition(".")[0] if "." in row.key or row.key in ("models", "hooks") else ""


def _shell_value(value: Any) -> str:
    """For a shell: strings without quotes, nothing for an unset value."""
    if value is None:
        return ""
    return one_line(value if isinstance(value, str) else format_setting(value))


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
        "sandbox": isolation_document(find_isolation(found.settings.permissions.sandbox)),
    }
