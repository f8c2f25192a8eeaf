"""The names under which models give a tool's arguments, mapped to those that the tool declares.

Models know the tools of other agents, and sessions of those are imported: they write `filePath` or
`path` for `file_path`, and add what our tools do not have. One table serves calls in text and
native ones. A name is mapped only if the tool has the canonical one and lacks the one used; several
names of one parameter must have the same value. An argument is left out only if that changes
nothing: it is a comment, or asks for what the tool does anyway. All else stays, and the tool
refuses what it does not know. The names inside the items of a list are in `item_names.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from recollect.codecs.fixes import quote_text
from recollect.codecs.line_ranges import names_lines, parse_line_range, snake_case

# tool: {canonical: accepted}; as in Gemini CLI, Qwen Code, Claude Code, Cursor and OpenCode
_FILE = ("absolute_path", "path", "filename", "file", "target_file")
_FILES = ("paths", "file_paths", "absolute_paths", "files")
_FOLDER = ("absolute_path", "directory_path", "dir_path", "directory")
ARGUMENT_ALIASES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "write_file": {
        "file_path": _FILE,
        "content": ("file_content", "contents", "file_text", "text"),
    },
    "read_file": {
        "absolute_path": ("path", "file_path", "filename", "file", "target_file", *_FILES)
    },
    "list_directory": {"path": _FOLDER},
    "search_file_content": {
        "pattern": ("search_pattern", "query", "regex"),
        "path": _FOLDER,
        "include": ("include_pattern", "glob", "file_pattern"),
    },
    "glob": {"pattern": ("glob_pattern",), "path": _FOLDER},
    "replace": {
        "file_path": _FILE,
        "old_string": ("old_content", "old_str", "old_text", "search"),
        "new_string": ("new_content", "new_str", "new_text", "replace"),
    },
    "run_shell_command": {
        "command": ("shell_command", "cmd"),
        "directory": ("working_directory", "cwd", "dir_path", "workdir"),
        "background": ("is_background", "run_in_background"),
    },
    "read_job": {"job": ("job_id", "job_name", "id")},
    "end_job": {"job": ("job_id", "job_name", "id")},
    "recall": {"handle": ("handles", "id", "ids")},
    "search_history": {"words": ("query", "search_query", "question", "pattern")},
    "note": {
        "path": ("file_path", "absolute_path", "filename", "file", "target_file"),
        "text": ("note", "content", "message"),
    },
    "save_memory": {"fact": ("memory", "content", "information")},
    "todo": {"items": ("todos", "tasks", "steps", "plan", "new_todos")},
    "sys_monitor": {},
}
# Comments, and what Gemini CLI records for itself.
_COMMENTS = frozenset(
    (
        *("instruction", "description", "explanation", "reason", "purpose", "comment", "thought"),
        *("ai_proposed_content", "modified_by_user", "wait_for_previous"),
    )
)
_HIDDEN = {"respect_gemini_ignore": True}
# What a tool does anyway: {tool: {argument: value}}.
_AS_ALWAYS: Mapping[str, Mapping[str, object]] = {
    "replace": {"replace_all": False, "allow_multiple": False},
    "read_file": {"should_read_entire_file": False},
    "glob": _HIDDEN,
    "list_directory": {"ignore": [], **_HIDDEN},
    "search_file_content": {
        "case_sensitive": True,
        "fixed_strings": False,
        "names_only": False,
        "no_ignore": False,
        "exclude_pattern": "",
        **dict.fromkeys(("context", "before", "after"), 0),
        **_HIDDEN,
    },
}
_REPEATED = "say with expected_replacements how often old_string stands in the file"
_WINDOW = "use offset and limit"
_STAYS_HIDDEN = "what .geminiignore hides stays hidden; leave respect_gemini_ignore out"
_AROUND = "read_file shows the lines around a match"
_ALL_MATCHES = "leave it out: a long result is cut, and says so"
# Why an argument of another agent's tool is refused, and what to do instead.
_REMEDIES: Mapping[str, Mapping[str, str]] = {
    "replace": {"replace_all": _REPEATED, "allow_multiple": _REPEATED},
    "read_file": {
        **dict.fromkeys(("start_line", "end_line", "view_range"), _WINDOW),
        "should_read_entire_file": "give either that or lines, as the two contradict each other",
    },
    "glob": {"respect_gemini_ignore": _STAYS_HIDDEN},
    "list_directory": {
        "ignore": "nothing can be left out of a listing by a pattern; find names with glob instead",
        "respect_gemini_ignore": _STAYS_HIDDEN,
        "file_filtering_options": "only respect_git_ignore can be chosen",
    },
    "search_file_content": {
        "case_sensitive": "use ignore_case",
        "fixed_strings": "write the pattern with a backslash before each sign that is meant as is",
        "names_only": _ALL_MATCHES,
        "max_matches_per_file": _ALL_MATCHES,
        "total_max_matches": _ALL_MATCHES,
        "no_ignore": "use respect_git_ignore=false",
        "exclude_pattern": "name the files to search with include",
        **dict.fromkeys(("context", "before", "after"), _AROUND),
        "respect_gemini_ignore": _STAYS_HIDDEN,
    },
}


def rename_arguments(
    tool: str, arguments: Mapping[str, Any], parameters: Collection[str]
) -> dict[str, Any]:
    """The arguments under the names that the tool's parameters have. Several names of one parameter
    stay as they are if their values differ."""
    canonical_of = {
        key: canonical
        for canonical, keys in _names_used(tool, arguments, parameters).items()
        if not _differ(arguments, keys)
        for key in keys
    }
    renamed: dict[str, Any] = {}
    for key, value in arguments.items():
        name = canonical_of.get(key, key)
        if renamed.get(name) is None:  # null stands for an argument that is left out
            renamed[name] = value
    return renamed


def find_name_conflict(tool: str, arguments: Mapping[str, Any], parameters: Collection[str]) -> str:
    """Which names of one parameter have different values; empty if none have."""
    for canonical, keys in _names_used(tool, arguments, parameters).items():
        if pair := _differ(arguments, keys):
            first, second = pair
            return (
                f"{quote_text(first)} and {quote_text(second)} both name {canonical}, with "
                f"different values; give {canonical} alone"
            )
    return ""


def _names_used(
    tool: str, arguments: Mapping[str, Any], parameters: Collection[str]
) -> dict[str, list[str]]:
    """By parameter: the names under which it is given, if one of them is not its own."""
    unknown = {key: snake_case(key) for key in arguments if key not in parameters}
    aliases = ARGUMENT_ALIASES.get(tool, {})
    found: dict[str, list[str]] = {}
    for canonical in parameters if unknown else ():
        accepted = (snake_case(canonical), *aliases.get(canonical, ()))
        used = [key for key, plain in unknown.items() if plain in accepted or key in accepted]
        if used:
            found[canonical] = [canonical, *used] if canonical in arguments else used
            unknown = {key: plain for key, plain in unknown.items() if key not in used}
    return found


def _differ(arguments: Mapping[str, Any], keys: Collection[str]) -> tuple[str, str] | None:
    """The first two of these arguments whose values differ."""
    given = [key for key in keys if arguments[key] is not None]
    for key in given[1:]:
        first, other = arguments[given[0]], arguments[key]
        if type(first) is not type(other) or first != other:
            return given[0], key
    return None


def fit_arguments(
    tool: str, arguments: Mapping[str, Any], parameters: Collection[str]
) -> dict[str, Any]:
    """The arguments under the tool's names, without those that change nothing."""
    renamed = rename_arguments(tool, arguments, parameters)
    if tool in ARGUMENT_ALIASES:
        renamed = _use_window(_lift_filtering(renamed, parameters), parameters)
    return {
        key: value
        for key, value in renamed.items()
        if key in parameters or not _changes_nothing(tool, snake_case(key), value)
    }


def _lift_filtering(arguments: dict[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """Gemini CLI puts the choice of ignore files into an object; our tools have it beside the
    other arguments."""
    key = next((key for key in arguments if snake_case(key) == "file_filtering_options"), "")
    options = arguments.get(key)
    if not key or key in parameters or not isinstance(options, dict):
        return arguments
    plain = {snake_case(name): value for name, value in options.items()}
    known = {"respect_git_ignore", "respect_gemini_ignore"}
    if len(plain) < len(options) or not plain.keys() <= known or plain.keys() & arguments.keys():
        return arguments
    return {name: value for name, value in arguments.items() if name != key} | plain


def _use_window(arguments: dict[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """Lines of a file, given by their numbers, as offset and limit: the same lines exactly."""
    if not {"absolute_path", "offset", "limit"}.issubset(parameters):
        return arguments
    beside = {key: value for key, value in arguments.items() if key not in parameters}
    chosen = parse_line_range(beside)
    rest = {key: value for key, value in arguments.items() if not names_lines(key)}
    has_window = any(arguments.get(name) is not None for name in ("offset", "limit"))
    if chosen is not None and len(rest) < len(arguments) and not has_window:
        window = {"offset": chosen.start, "limit": chosen.length}
        arguments = rest | {key: value for key, value in window.items() if value is not None}
        has_window = any(value is not None for value in window.values())
    if has_window:
        return arguments
    whole = "should_read_entire_file"
    return {k: v for k, v in arguments.items() if snake_case(k) != whole or v is not True}


def _changes_nothing(tool: str, key: str, value: object) -> bool:
    if tool not in ARGUMENT_ALIASES:  # somebody else's tool: its author decides
        return False
    always = _AS_ALWAYS.get(tool, {})
    return value is None or key in _COMMENTS or (key in always and value == always[key])


def remedy_for(tool: str, arguments: Mapping[str, Any], parameters: Collection[str]) -> str:
    """What to do instead of an argument that the tool lacks; may be empty."""
    unknown = (key for key in arguments if key not in parameters)
    found = (_REMEDIES.get(tool, {}).get(snake_case(key), "") for key in unknown)
    return next(filter(None, found), "")
