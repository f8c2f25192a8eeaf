"""A tool call in one line: what it does, with what, and what came of it.

Whatever agent made the call: tools are told by their names, arguments by theirs. All texts are as
they were stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from recollect.call_outcome import REFUSED_BY_USER
from recollect.display.display_text import pluralize
from recollect.display.entry_summary import format_argument
from recollect.terminal.block import Block
from recollect.toolkinds import (
    ToolKind,
    classify_call,
    find_command,
    find_patched_paths,
    find_paths,
    parse_arguments,
)
from recollect.tools.diff import unified_diff
from recollect.view.shown_lines import find_shown_lines

MAX_TITLE = 2_000  # characters
_VERBS: dict[ToolKind, str] = {
    "read": "read", "write": "write", "edit": "edit", "delete": "delete", "shell": "$",
    "search": "search", "list": "list", "plan": "plan", "other": "",
}  # fmt: skip
_PATTERNS = ("pattern", "query", "regex", "q", "search", "words")
_PARTIAL = re.compile(
    r'"(?:command|cmd|file_path|filePath|path|absolute_path|pattern|query|description)"\s*:\s*'
    r'"((?:[^"\\]|\\.){1,200})'
)
_DIFF = re.compile(r"^--- .*\n\+\+\+ .*\n|^@@ -\d", re.M)
_EXIT = re.compile(r"^\[?(?:exit code|Exit code:?|exited with(?: code)?)[ :]*(-?\d{1,4})", re.M)
_OUR_EXIT = re.compile(r"\n?\[exit code (-?\d+)[^\]]*\]\s*$")
_MATCHES = re.compile(r"(?:Found )?(\d[\d,]*) match(?:es)?(?: in (\d[\d,]*) files?)?", re.I)
_LISTED = re.compile(r"(?:(\d[\d,]*) folders? and )?(\d[\d,]*) files?\b")
_NONE = re.compile(r"\s*(?:no (?:match|file|result)|0 match)", re.I)
_TASK_HEADER = re.compile(r"^\[sub-agent ([0-9a-f]{32}) [^\n]*\n", re.M)
_TASK_END = re.compile(r"\n\[end of sub-agent [0-9a-f]{32}\]\s*$")


class CallSummary(NamedTuple):
    title: str
    facts: tuple[str, ...] = ()


def title_of_call(block: Block) -> str:
    """What a call does, with what."""
    given = parse_arguments(block.text)
    if given is None:
        return f"{block.name} {block.text}"[:MAX_TITLE]
    kind = classify_call(block.name, given)
    subject = _subject(kind, block.name, given)
    if not subject:
        named = (f"{name}={format_argument(value)}" for name, value in given.items())
        return f"{block.name} {', '.join(named)}"[:MAX_TITLE].rstrip()
    verb = _VERBS[kind] or block.name
    if kind == "list" and any(isinstance(given.get(key), str) for key in _PATTERNS):
        verb = "find"
    return f"{verb} {subject}"[:MAX_TITLE]


def partial_title(name: str, arguments: str) -> str:
    """The title while the arguments still arrive."""
    found = _PARTIAL.search(arguments[:2_000])
    return f"{name} {found[1]}" if found else name


def summarize_call(block: Block) -> CallSummary:
    if block.state == "running":
        return CallSummary(title_of_call(block))
    return CallSummary(title_of_call(block), tuple(fact for fact in _facts(block) if fact))


def _subject(kind: ToolKind, name: str, given: Mapping[str, Any]) -> str:
    if kind == "shell" and (command := find_command(given)):
        first, _, more = command.strip().partition("\n")
        return f"{first} …" if more else first
    if kind in ("search", "list"):
        pattern = next((given[k] for k in _PATTERNS if isinstance(given.get(k), str)), "")
        folder = next((each.path for each in find_paths(given)), "")
        return f"{pattern} in {folder}" if pattern and folder else pattern or folder
    if kind in ("read", "write", "edit", "delete"):
        return _files(kind, given)
    if name == "task" or "subagent_type" in given:
        said = given.get("description")
        return said if isinstance(said, str) else ""
    return ""


def _files(kind: ToolKind, given: Mapping[str, Any]) -> str:
    files = find_paths(given)
    if not files:
        return ", ".join(find_patched_paths(given))
    first = files[0]
    lines = f":{first.start}-{first.end or ''}" if first.start and kind == "read" else ""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{first.path}{lines}{more}"


# --- what came of it -----------------------------------------------------------------------------


def _facts(block: Block) -> Iterator[str]:
    given = parse_arguments(block.text) or {}
    kind, output = classify_call(block.name, given), block.output
    if block.state == "interrupted":
        yield "interrupted"
    elif kind == "shell":
        yield from _command_facts(output)
    elif block.state == "failed":
        yield _first_line(output.removeprefix("Error: "))
    elif kind == "read":
        yield _read_fact(output, given)
    elif kind in ("write", "edit"):
        yield _change_fact(block)
    elif kind == "search":
        yield _search_fact(output)
    elif kind == "list":
        yield _list_fact(output)
    elif block.name == "task":
        yield _first_line(subagent_answer(output))
    if block.seconds is not None and block.seconds >= 0.1:
        yield f"{block.seconds:.1f} s"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text[:2_000].split("\n") if line.strip()), "")[:200]


def _count_lines(text: str) -> str:
    return pluralize(sum(1 for line in text.split("\n") if line.strip()), "line")


def _command_facts(output: str) -> Iterator[str]:
    """How it ended, and the last line that it said."""
    found = [*_EXIT.finditer(output[:300]), *_EXIT.finditer(output[-600:])]
    code = int(found[-1][1]) if found else 0
    if output.startswith("The user doesn't want"):
        yield REFUSED_BY_USER
        return
    if code:
        yield f"exit {code}"
    said = _OUR_EXIT.sub("", output.removeprefix("Error: ")[-4_000:])
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    last = lines[-1] if lines else ""
    if last and not _EXIT.match(last):
        yield last[:200]


def _read_fact(output: str, given: Mapping[str, Any]) -> str:
    start = find_paths(given)[:1]
    ranges = find_shown_lines(output, whole=not start or start[0].start is None)
    if ranges:
        return pluralize(sum(last - first + 1 for first, last in ranges), "line")
    return _count_lines(output)


def _search_fact(output: str) -> str:
    if _NONE.match(output):
        return "no matches"
    found = _MATCHES.match(output)
    if found is None:
        return _count_lines(output)
    matches = "1 match" if found[1] == "1" else f"{found[1]} matches"
    return (
        f"{matches} in {pluralize(int(found[2].replace(',', '')), 'file')}" if found[2] else matches
    )


def _list_fact(output: str) -> str:
    found = _LISTED.search(output[:400])
    if found is None:
        return "nothing" if _NONE.match(output) else _count_lines(output)
    folders, files = (int((count or "0").replace(",", "")) for count in found.groups())
    told = (pluralize(folders, "folder") if folders else "", pluralize(files, "file"))
    return ", ".join(filter(None, told))


def _change_fact(block: Block) -> str:
    diff = find_diff(block)
    if not diff:
        content = (parse_arguments(block.text) or {}).get("content")
        return f"+{_lines_of(content)}" if isinstance(content, str) and content else ""
    lines = diff.split("\n")
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("--- ") for line in lines)
    return f"+{added} −{removed}"


def _lines_of(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def find_diff(block: Block) -> str:
    """What a call changed, as a unified diff: from its result, or from its arguments."""
    found = _DIFF.search(block.output)
    if found is not None:
        return block.output[found.start() :]
    given = parse_arguments(block.text) or {}
    edits = given.get("edits")
    changes = edits if isinstance(edits, list) else [given]
    diffs = [_edit_diff(each) for each in changes if isinstance(each, dict)]
    if any(diffs):
        return "\n".join(filter(None, diffs))
    for name in ("patch", "diff", "input"):
        patch = given.get(name)
        if isinstance(patch, str) and ("\n+" in patch or "\n-" in patch):
            return patch
    return ""


def _edit_diff(given: Mapping[str, Any]) -> str:
    pairs = (("old_string", "new_string"), ("old_str", "new_str"), ("oldText", "newText"))
    for old, new in pairs:
        before, after = given.get(old), given.get(new)
        if isinstance(before, str) and isinstance(after, str):
            diff = unified_diff(before, after, "")
            return diff.split("\n", 2)[2] if diff.startswith("--- ") else diff
    return ""


def subagent_answer(output: str) -> str:
    """What a sub-agent said, without what frames it."""
    return _TASK_END.sub("", _TASK_HEADER.sub("", output, count=1)).strip()


def subagent_session(output: str) -> str:
    found = _TASK_HEADER.search(output[:4_000])
    return found[1] if found else ""
