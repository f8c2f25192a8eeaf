"""`recollect config`: every setting in force in this folder, and where its value comes from.

Headers, passwords and whatever looks like a key are never shown. stdout carries the settings alone;
what of a project's file does not count is told on stderr. A file that cannot be used is exit code
52, as with the agent; `--path` works all the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.options import examples, json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.workspace.effective_settings import EffectiveSettings
    from recollect.workspace.setting_sources import EffectiveSetting

BAD_SETTINGS = 52


@click.command(
    epilog=examples(
        ("recollect config", "every setting, and which file sets it"),
        ("recollect config --changed", "only what a file sets"),
        ("recollect config context.keep_reads", "one value"),
        ("recollect config permissions", "one section"),
        ("recollect config --json", "for programs"),
        ('"$EDITOR" "$(recollect config --path)"', "change your settings"),
    )
)
@click.argument("key", metavar="[KEY]", required=False)
@click.option("--changed", is_flag=True, help="Only what a file sets.")
@click.option("--path", "place", is_flag=True, help="Print where your settings file is, or may be.")
@json_option
@click.pass_context
def config(
    ctx: click.Context, *, key: str | None, changed: bool, place: bool, as_json: bool
) -> None:
    """Show the settings in force, and where each comes from.

    docs/settings.md says what each of them means. A project may have settings of its own, in
    .recollect/settings.toml; they count once the folder is trusted, and can only tighten.
    """
    from recollect.cli.console import print_error, print_json, print_lines, print_note
    from recollect.errors import BadSettings
    from recollect.settings import SETTINGS_FILE, data_directory
    from recollect.workspace.effective_settings import resolve_settings
    from recollect.workspace.setting_sources import list_effective_settings

    if place:
        print_json({"path": str(data_directory() / SETTINGS_FILE)}) if as_json else print_lines(
            [str(data_directory() / SETTINGS_FILE)]
        )
        return
    try:
        found = resolve_settings(Path.cwd())
    except BadSettings as error:
        print_error(str(error))
        ctx.exit(BAD_SETTINGS)
    wanted = _select(list_effective_settings(found), key)
    shown = [row for row in wanted if row.sources or not changed]
    one = len(wanted) == 1 and wanted[0].key == key
    if as_json:
        print_json(_setting_document(wanted[0]) if one else _settings_document(found, shown))
    elif one:
        print_lines([_shell_value(wanted[0].value)])
    else:
        print_lines([*_table(shown, found), *_files(found)])
    for line in found.warnings:
        print_note(line)


def _select(found: Sequence[EffectiveSetting], key: str | None) -> list[EffectiveSetting]:
    if not key:
        return list(found)
    key = key.removeprefix("[").removesuffix("]")
    wanted = [row for row in found if row.key == key or row.key.startswith(key + ".")]
    if not wanted:
        from difflib import get_close_matches

        near = get_close_matches(key[:80], [row.key for row in found], n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise click.UsageError(f"There is no setting {key[:80]!r}.{hint}")
    return wanted


def _table(found: Sequence[EffectiveSetting], all_: EffectiveSettings) -> list[str]:
    from recollect.cli.console import make_styler, terminal_width
    from recollect.cli.display_text import GAP, align_table, one_line

    if not found:
        return []
    cells = [["SETTING", "VALUE", "FROM"]]
    cells += [
        [one_line(row.key), one_line(_format_value(row.value)), _origin_label(row, all_)]
        for row in found
    ]
    paint = make_styler()
    head, *body = align_table(cells, width=terminal_width(), stretch=1)
    lines = [paint.dim(GAP.join(head).rstrip())]
    section = _section(found[0])
    for row, line in zip(found, body, strict=True):
        if _section(row) != section:
            section = _section(row)
            lines.append("")
        text = GAP.join(line).rstrip()
        lines.append(text if row.sources else paint.dim(text))
    return [*lines, ""]


def _section(row: EffectiveSetting) -> str:
    return row.key.partition(".")[0] if "." in row.key or row.key in ("models", "hooks") else ""


def _origin_label(row: EffectiveSetting, found: EffectiveSettings) -> str:
    """Short, because paths are long; `_files` says which files are meant."""
    names = {str(found.user_file): "yours", str(found.project_file): "project"}
    places = [names[at.file] + (f", line {at.line}" if at.line else "") for at in row.sources]
    return "; ".join(places) or "default"


def _files(found: EffectiveSettings) -> list[str]:
    from recollect.cli.display_text import one_line

    if found.project is not None:
        note = ""
    else:
        note = " (not used: the folder is not trusted)" if found.project_ignored else " (not there)"
    mine = "" if found.user_file.exists() else " (not there)"
    return [
        f"yours    {one_line(str(found.user_file))}{mine}",
        f"project  {one_line(str(found.project_file))}{note}",
    ]


def _format_value(value: Any) -> str:
    import json

    return "not set" if value is None else json.dumps(value, ensure_ascii=False)


def _shell_value(value: Any) -> str:
    """For a shell: a text without quotes, nothing when it is not set."""
    from recollect.cli.display_text import one_line

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
