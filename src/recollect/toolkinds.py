"""What a tool does, judged by its name, and which files a call names in its arguments.

Agents name the same tool differently; the names are data here, in one place, for the ledger and for
the elision rules. `classify_tool` never fails: an unknown name is "other". `parse_paths` takes the
arguments as they were received and returns nothing when they are empty, malformed or name no file
in a known shape; it never guesses. Both are linear in the size of the arguments.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from recollect.entries import Text, ToolResult

ToolKind: TypeAlias = Literal[
    "read", "write", "edit", "delete", "shell", "search", "list", "plan", "other"
]

# Tool names as `_plain_name` returns them: lower case, without separators.
TOOL_NAMES: dict[ToolKind, str] = {
    "read": "read readfile readfiles readmanyfiles filesystemread view viewfile openfile cat "
    "notebookread readtextfile readmultiplefiles readmediafile getfilecontents fsread",
    "write": "write writefile writetofile create createfile filesystemcreate filesystemwrite "
    "savefile fswrite newfile",
    "edit": "edit editfile replace multiedit strreplace strreplaceeditor strreplacebasededittool "
    "applypatch applydiff filesystemedit filesystemeditsearch editsearch searchreplace insert "
    "notebookedit patch replaceinfile inserteditintofile fsreplace smartedit",
    "delete": "delete deletefile removefile filesystemdelete remove unlink rm",
    "shell": "bash shell runshellcommand terminalexecute executecommand runcommand exec "
    "execcommand localshell runterminalcmd runinterminal terminal runbash powershell sh "
    "containerexec bashoutput taskoutput writestdin unifiedexec",
    "search": "grep searchfilecontent filesystemsearch search ripgrep rg searchfiles searchtext "
    "codebasesearch greptool textsearch acesearchtextsearch findstring searchcode "
    "acesearchfilesearch acetextsearch grepsearch findinfiles",
    "list": "glob ls list listdirectory listdir filesystemlist findfiles globtool directorytree "
    "listfiles filesearch tree finddirectories",
    "plan": "todowrite updateplan writetodos todo todoupdate todocreate todoadd todos taskcreate "
    "taskupdate managetodolist plan todoread updatetodolist",
}
_KIND: dict[str, ToolKind] = {
    name: kind for kind, names in TOOL_NAMES.items() for name in names.split()
}

# The arguments that name a file, in order of precedence.
_KEYS = """
file_path filePath filepath path paths absolute_path absolutePath file files file_paths filePaths
filename fileName target_file targetFile notebook_path notebookPath dir_path dirPath directory
relative_path relativePath relative_workspace_path
"""
_PATH_KEYS = tuple(_KEYS.split())
_STARTS = ("startLine", "start_line", "start", "offset", "line_start", "startingLine")
_ENDS = ("endLine", "end_line", "end", "line_end", "endingLine")
# Arguments that choose no part of a file other than by the lines that are known from them.
_OTHER_KEYS = "limit view_range command description explanation reason purpose encoding"
_UNDERSTOOD = frozenset((*_PATH_KEYS, *_STARTS, *_ENDS, *_OTHER_KEYS.split()))
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete|Move to) ?(?:File)?: (.{1,1000})$", re.M)
_ABSOLUTE_PATH = re.compile(
    r'"(?:file_path|filePath|path|absolute_path|cwd|workdir)"\s{0,2}:\s{0,2}"(/[^"\\]{1,500})"'
)
_DRIVE = re.compile(r"[A-Za-z]:(?:/|$)")
_FILE_DRIVE = re.compile(r"file:///[A-Za-z]:/")
_LONG_DRIVE = re.compile(r"//[?.]/[A-Za-z]:")
_LONG_PATH = re.compile(r"^//[?.]/(?:UNC/)?", re.I)
_WSL_SHARE = re.compile(r"^//wsl(?:\$|\.localhost)/[^/]{1,200}(?:/|$)", re.I)
_SHARE = re.compile(r"^//[^/]{1,300}(?:/[^/]{1,300})?")
_COMMANDS = ("command", "cmd", "script", "commandLine", "shell_command")
_VERBS: dict[str, ToolKind] = {
    "view": "read",
    "create": "write",
    "str_replace": "edit",
    "insert": "edit",
    "undo_edit": "edit",
    "delete": "delete",
}


class PathRange(NamedTuple):
    """A file that a call names, and the lines it asks for: from 1, both ends included."""

    path: str
    start: int | None = None
    end: int | None = None
    is_chosen: bool = False  # something else in the call may choose a part of the file


@lru_cache(maxsize=512)
def classify_tool(name: str) -> ToolKind:
    """What the tool of this name does, also with a server's prefix (`mcp__files__read`)."""
    plain = _plain_name(name)
    if plain in _KIND:
        return _KIND[plain]
    for separator in ("__", ".", "/", ":"):
        last = name.rsplit(separator, 1)[-1]
        if last != name and (kind := _KIND.get(_plain_name(last))) is not None:
            return kind
    return "other"


def _plain_name(name: str) -> str:
    return name[:200].lower().replace("_", "").replace("-", "").replace(" ", "")


def classify_call(name: str, value: Mapping[str, Any]) -> ToolKind:
    """Like `classify_tool`, for tools that do several things and name which in an argument."""
    verb = value.get("command")
    if isinstance(verb, str) and verb in _VERBS and "path" in value:
        return _VERBS[verb]
    return classify_tool(name)


def parse_arguments(arguments: str) -> Mapping[str, Any] | None:
    """The arguments as a JSON object, or None when they are anything else."""
    value = _parse_json(arguments)
    return value if isinstance(value, dict) else None


def _parse_json(text: str) -> Any:
    for decode in (_decode, json.loads):  # json accepts a little more, and is slower
        with suppress(ValueError, RecursionError):
            return decode(text)
    return None


class _UsualArguments(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The arguments of most reads; decoding into this takes a tenth of the time."""

    file_path: str = ""
    path: str = ""
    absolute_path: str = ""
    offset: int | None = None
    limit: int | None = None


_decode = msgspec.json.Decoder().decode
_decode_usual = msgspec.json.Decoder(_UsualArguments).decode


def parse_usual_path(arguments: str, root: str) -> str:
    """The normalized path of a read that names one file in the usual way; else empty."""
    try:
        given = _decode_usual(arguments)
    except ValueError:
        return ""
    path = given.file_path or given.path or given.absolute_path
    if "\\" in arguments or len(path) > 4096:  # control characters need an escape
        return ""
    path = path.strip()
    return normalize_path(path, root) if path and path[0] != "[" else ""


def _parse_usual_range(arguments: str) -> tuple[PathRange, ...]:
    try:
        given = _decode_usual(arguments)
    except ValueError:
        return ()
    path = (given.file_path or given.path or given.absolute_path).strip()
    if not _is_path(path) or path[0] == "[":
        return ()
    start, limit = given.offset, given.limit
    start = max(1, start) if start is not None else None
    end = (start or 1) + limit - 1 if limit is not None and limit > 0 else None
    return (PathRange(path, start, end),)


def parse_paths(arguments: str) -> tuple[PathRange, ...]:
    """The files that the arguments of a call name, each with the range of lines asked for."""
    if usual := _parse_usual_range(arguments):
        return usual
    value = parse_arguments(arguments)
    return find_paths(value) if value is not None else ()


def find_paths(value: Mapping[str, Any]) -> tuple[PathRange, ...]:
    for key in _PATH_KEYS:
        if key in value and (found := _ranges(value[key], value)):
            return found
    return ()


def _ranges(given: object, around: Mapping[str, Any]) -> tuple[PathRange, ...]:
    if isinstance(given, str):
        listed = _parse_list(given)
        if listed is None:
            path = given.strip()
            return (_with_range(path, around),) if _is_path(path) else ()
        given = listed
    if not isinstance(given, list):
        return ()
    found: list[PathRange] = []
    everywhere = _with_range("", around)
    for item in given:
        one = item if isinstance(item, dict) else {"path": item}
        named = (one[key] for key in _PATH_KEYS if isinstance(one.get(key), str))
        name = next(named, "").strip()
        if not _is_path(name):
            return ()  # one unclear item makes the whole list unclear
        own = _with_range(name, one)
        found.append(everywhere._replace(path=name) if own == PathRange(name) else own)
    return tuple(dict.fromkeys(found))


def _parse_list(text: str) -> list[Any] | None:
    """A string that is itself a JSON list, as some models write it."""
    value = _parse_json(text) if text.lstrip()[:1] == "[" else None
    return value if isinstance(value, list) else None


def _is_path(text: str) -> bool:
    return 0 < len(text) <= 4096 and "\n" not in text and "\0" not in text


def _with_range(path: str, around: Mapping[str, Any]) -> PathRange:
    chosen = any(
        value not in (None, "", [], {}) and not isinstance(value, bool)
        for key, value in around.items()
        if key not in _UNDERSTOOD
    )
    return PathRange(path, *_line_range(around), is_chosen=chosen)


def _line_range(around: Mapping[str, Any]) -> tuple[int | None, int | None]:
    view = around.get("view_range")
    if isinstance(view, list) and len(view) == 2:
        first, last = _parse_number(view[0]), _parse_number(view[1])
        return first, last if last is not None and last >= 1 else None
    start = next((n for key in _STARTS if (n := _parse_number(around.get(key))) is not None), None)
    start = max(1, start) if start is not None else None  # some tools call the first line 0
    end = next((n for key in _ENDS if (n := _parse_number(around.get(key))) is not None), None)
    limit = _parse_number(around.get("limit"))
    if end is None and limit is not None and limit > 0:
        end = (start or 1) + limit - 1
    return start, end


def _parse_number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    return value if isinstance(value, int) else None


def find_patched_paths(value: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that a patch in the arguments adds, updates, moves or deletes."""
    texts = (*(value.get(key) for key in ("patch", "input", "diff")), find_command(value))
    found = [m for text in texts if isinstance(text, str) for m in _PATCHED.findall(text)]
    return tuple(dict.fromkeys(path.strip() for path in found if _is_path(path.strip())))


def find_absolute_paths(arguments: Iterable[str]) -> set[str]:
    """The absolute paths that the arguments of calls name, whole or broken."""
    return {path for text in arguments for path in _ABSOLUTE_PATH.findall(text[:100_000])}


def guess_root(paths: Iterable[str]) -> str:
    """The deepest directory that holds most of these absolute paths."""
    found, within = set(paths), Counter[str]()
    for path in found:
        pieces = path.split("/")[1:-1]
        within.update("/" + "/".join(pieces[:n]) for n in range(1, len(pieces) + 1))
    # a root must hold two files at least, and not be a directory that every project shares
    most = [d for d, n in within.items() if n >= max(2, 0.6 * len(found)) and d.count("/") > 1]
    return max(most, key=lambda d: (d.count("/"), d)) if most else ""


def find_command(value: Mapping[str, Any]) -> str:
    """The command line that a call runs; may be empty."""
    for key in _COMMANDS:
        given = value.get(key)
        if isinstance(given, str):
            return given
        if isinstance(given, list) and all(isinstance(item, str) for item in given):
            # ["bash", "-lc", "the command"] is how some agents spell it
            shell = len(given) == 3 and given[1] in ("-c", "-lc")
            return given[2] if shell else " ".join(given)
    return ""


def normalize_path(path: str, root: str = "") -> str:
    """One name for each file: relative to the root, with `/`, without `.` and `..` if possible.

    `C:` and `c:` are one drive."""
    whole = path or "."
    is_odd = "/." in path or "//" in path or "\\" in path or whole[0] == "." or whole[-1] == "/"
    if is_odd or whole[1:2] == ":":
        whole = _normal_path(path)
    if not root:
        return whole
    top = _normal_root(root)
    if top and whole.removesuffix("/") == top:
        return "."
    if top and whole.startswith(top + "/"):
        return whole[len(top) + 1 :]
    return whole


@lru_cache(maxsize=64)
def _normal_root(root: str) -> str:
    folded = _normal_path(root).rstrip("/")
    return "" if folded == "." else folded


def _normal_path(path: str) -> str:
    """Any spelling of a path with `/`, as the system it was written for understands it."""
    plain = path.replace("\\", "/")
    if path.startswith("\\\\"):
        # `\\?\` begins a long path; a share's name has no case; WSL's share is its own root
        plain = _LONG_PATH.sub("//", plain, 1) if not _LONG_DRIVE.match(plain) else plain[4:]
        plain = _WSL_SHARE.sub("/", plain, 1)
        plain = _SHARE.sub(lambda share: share[0].lower(), plain, 1)
    elif plain.startswith("file://"):
        plain = plain[len("file:///") :] if _FILE_DRIVE.match(plain) else plain[len("file://") :]
    if not _DRIVE.match(plain):
        return _fold_path(plain)
    # a drive has a root of its own, which `..` does not leave
    return plain[0].lower() + ":" + _fold_path(plain[2:] or "/")


def _fold_path(path: str) -> str:
    rooted = path.startswith("/")
    kept: list[str] = []
    for piece in path.split("/"):
        if piece in ("", "."):
            continue
        if piece == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif piece != ".." or not rooted:
            kept.append(piece)
    return ("/" if rooted else "") + "/".join(kept) or "."


_FAILED_STATUSES = frozenset({"error", "failed", "failure", "cancelled", "interrupted", "timeout"})
_EXIT = re.compile(
    r"\s*(?:\(?exit(?:ed)?[ _](?:with )?(?:code|status)\)?|exit code)[:= ]+(-?\d+)", re.I
)


_FAILED_CHANGE = re.compile(
    r"\s*(?:❌|<(?:tool_use_)?error>|Error\b|Failed\b|(?:Could not|Cannot|Can't|Unable to)\b"
    r"|File not found|No (?:changes|match|occurrences?|replacement)|0 occurrences|not allowed\b"
    r"|The user (?:doesn't|does not) want|User (?:rejected|denied)|\[Request interrupted)",
    re.I,
)
_FAILED_FILE = re.compile(
    r"❌|<error>|Error(?: reading[^\n]{0,4200}?)?: |(?:Failed to|Could not|Cannot) (?:read|open)\b"
    r"|File not found\b|[^\n]{1,4200}? was not read: ",
    re.I,
)


def has_failed_file(text: str) -> bool:
    """Whether a block of a batch says that its file could not be read."""
    return len(text) < 10_000 and _FAILED_FILE.match(text) is not None


def has_failed_change(part: ToolResult) -> bool:
    """Like `has_failed`, and what programs answer instead of changing a file, unmarked."""
    first = part.content[0] if part.content else None
    said = type(first) is Text and _FAILED_CHANGE.match(first.text) is not None
    return said or has_failed(part)


def has_failed(part: ToolResult) -> bool:
    """Errors stay and are not counted: without them the model repeats its mistake."""
    if part.is_error or (part.status and part.status.lower() in _FAILED_STATUSES):
        return True
    first = part.content[0] if part.content else None
    if type(first) is not Text:
        return False
    text = first.text
    if text.startswith("Error:"):
        return True
    if "exit" not in text[:200].lower() and "exit" not in text[-200:].lower():
        return False
    code = _EXIT.match(text, 0, 200)
    if code is None:
        end = text[-200:].rstrip()
        code = _EXIT.match(end[end.rfind("\n") + 1 :])
    return code is not None and int(code[1][:9]) != 0
