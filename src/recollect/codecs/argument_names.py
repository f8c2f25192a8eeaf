"""The names under which models give a tool's arguments, mapped to those that the tool declares.

Models know the tools of other agents, and sessions of those are imported: they write `filePath` or
`path` for `file_path`, and add what our tools do not have. One table serves calls in text and
native ones. A name is mapped only if the tool has the canonical one and lacks the one used, and the
call gives just one of them. An argument is left out only if that changes nothing: it is a comment,
or asks for what the tool does anyway. All else stays, and the tool refuses what it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

# tool: {canonical: accepted}; as in Gemini CLI, Qwen Code, Claude Code and OpenCode
_FILE = ("absolute_path", "path", "filename", "file", "target_file")
_FOLDER = ("absolute_path", "directory_path", "dir_path", "directory")
ARGUMENT_ALIASES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "write_file": {"file_path": _FILE, "content": ("file_content", "contents")},
    "read_file": {"absolute_path": ("path", "file_path", "filename", "file", "target_file")},
    "list_directory": {"path": _FOLDER},
    "search_file_content": {
        "pattern": ("search_pattern", "query", "regex"),
        "path": _FOLDER,
        "include": ("include_pattern", "glob", "file_pattern"),
    },
    "glob": {"pattern": ("glob_pattern",), "path": _FOLDER},
    "replace": {
        "file_path": _FILE,
        "old_string": ("old_content", "old_str", "old_text"),
        "new_string": ("new_content", "new_str", "new_text"),
    },
    "run_shell_command": {
        "command": ("shell_command", "cmd"),
        "directory": ("working_directory", "cwd", "dir_path", "workdir"),
        "background": ("is_background", "run_in_background"),
    },
    "save_memory": {"fact": ("memory", "content", "information")},
    "todo": {"items": ("todos",)},
}
# Comments, and what Gemini CLI records for itself.
_COMMENTS = frozenset(
    (
        *("instruction", "description", "explanation", "reason", "purpose"),
        *("ai_proposed_content", "modified_by_user", "wait_for_previous"),
    )
)
# What a tool does anyway: {tool: {argument: value}}.
_AS_ALWAYS: Mapping[str, Mapping[str, object]] = {
    "replace": {"replace_all": False, "allow_multiple": False},
    "glob": {"respect_git_ignore": True, "respect_gemini_ignore": True},
    "list_directory": {"ignore": [], "file_filtering_options": {}},
    "search_file_content": {"case_sensitive": True},
}
_REPEATED = "say with expected_replacements how often old_string stands in the file"
# Why an argument of another agent's tool is refused, and what to do instead.
_REMEDIES: Mapping[tuple[str, str], str] = {
    ("replace", "replace_all"): _REPEATED,
    ("replace", "allow_multiple"): _REPEATED,
    ("read_file", "start_line"): "use offset and limit",
    ("read_file", "end_line"): "use offset and limit",
    ("search_file_content", "case_sensitive"): "use ignore_case",
}
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


def rename_arguments(
    tool: str, arguments: Mapping[str, Any], parameters: Collection[str]
) -> dict[str, Any]:
    """The arguments under the names that the tool's parameters have."""
    unknown = {key: _snake_case(key) for key in arguments if key not in parameters}
    aliases = ARGUMENT_ALIASES.get(tool, {})
    canonical_of: dict[str, str] = {}
    for canonical in parameters if unknown else ():
        if canonical in arguments:
            continue
        accepted = (_snake_case(canonical), *aliases.get(canonical, ()))
        used = [key for key, plain in unknown.items() if plain in accepted or key in accepted]
        if len(used) == 1:
            canonical_of.setdefault(used[0], canonical)
    return {canonical_of.get(key, key): value for key, value in arguments.items()}


def fit_arguments(
    tool: str, arguments: Mapping[str, Any], parameters: Collection[str]
) -> dict[str, Any]:
    """The arguments under the tool's names, without those that change nothing."""
    renamed = rename_arguments(tool, arguments, parameters)
    return {
        key: value
        for key, value in renamed.items()
        if key in parameters or not _changes_nothing(tool, _snake_case(key), value)
    }


def _changes_nothing(tool: str, key: str, value: object) -> bool:
    if tool not in ARGUMENT_ALIASES:  # somebody else's tool: its author decides
        return False
    always = _AS_ALWAYS.get(tool, {})
    return value is None or key in _COMMENTS or (key in always and value == always[key])


def remedy_for(tool: str, arguments: Mapping[str, Any], parameters: Collection[str]) -> str:
    """What to do instead of an argument that the tool lacks; may be empty."""
    unknown = (key for key in arguments if key not in parameters)
    found = (_REMEDIES.get((tool, _snake_case(key)), "") for key in unknown)
    return next(filter(None, found), "")


def _snake_case(name: str) -> str:
    return _HUMP.sub(r"_\1", name[:100]).lower()
