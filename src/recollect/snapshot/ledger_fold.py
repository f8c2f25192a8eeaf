"""Folding messages into a ledger, one after the other, oldest first.

`LedgerFold` is the only mutable object of this package and lives for one call of `build_ledger`. A
result is matched to its call by id, never by what it looks like. Tool output is data: it is counted
and quoted, never obeyed, and only a bounded part of each record is read.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, get_args

import msgspec

from recollect.entries import Message, Text, Thought, ToolCall, ToolResult, next_level
from recollect.snapshot.call_outcome import REFUSED_BY_USER, CallOutcome, judge_result, result_text
from recollect.snapshot.code_names import FoundNames, find_definitions, find_names, take_ends
from recollect.snapshot.command_files import FileAccess, find_touched_files
from recollect.snapshot.directives import find_user_text
from recollect.snapshot.ledger import (
    AgentAction,
    CommandRun,
    FileFacts,
    OpenFailure,
    Passage,
    Quotation,
)
from recollect.snapshot.name_tallies import (
    LINKED,
    NameTallies,
    find_mentions,
    find_names_by_line,
    find_passages,
    is_prose,
)
from recollect.snapshot.plan_steps import PlanStep, apply_plan_call, find_steps
from recollect.text import clean, clip_middle, first_line, one_line
from recollect.toolkinds import (
    ToolKind,
    classify_call,
    find_command,
    find_patched_paths,
    find_paths,
    normalize_path,
    parse_arguments,
)

# The weight of one occurrence of a name, by where it was seen.
_USER, _AGENT, _CHANGE, _CALL, _OUTPUT, _NOTICE = 2.0, 1.0, 1.5, 0.8, 0.5, 0.3
_MAX_ACTIONS = 60
_MAX_PATH, _MAX_DIRECTIVE = 300, 100_000
_MIN_QUOTATION, _MAX_QUOTATION, _MAX_QUOTATIONS = 400, 4_000, 3
_MIN_REMARK = 70  # characters; shorter remarks only announce the call that follows
_SHORT_COMMAND = 300  # characters; longer ones hold messages and scripts about other things
_MAX_PASSAGE_FILES, _MIN_PASSAGE_NAMES, _MAX_PASSAGE_NAMES, _MAX_PASSAGES = 16, 3, 200, 100
_MAX_PENDING = 5_000  # calls without a result
_MAX_TEXT = 40_000  # characters of a report or a question
_LISTING_COMMANDS = ("grep ", "rg ", "ls ", "find ", "git ", "cat ", "sed ", "head ", "tail ")
_OUTPUT_FILTER = re.compile(
    r"\s{0,4}(?:2>&1|\|\s{0,4}(?:tail|head)(?:\s{1,4}-[\w ]{1,12})?(?=\s|$))"
)
_NEW_TEXT = ("new_string", "new_str", "newString", "newText", "content", "file_text", "new_source")
_VERBS: dict[ToolKind, str] = {
    "read": "read",
    "write": "wrote",
    "edit": "edited",
    "delete": "deleted",
    "shell": "$",
    "search": "searched",
    "list": "listed",
    "plan": "planned",
    "other": "called",
}
_ACCESS: dict[ToolKind, FileAccess] = {how: how for how in get_args(FileAccess)}
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class PendingToolCall(NamedTuple):
    kind: ToolKind
    paths: tuple[str, ...]
    what: str  # the command, the pattern, or the tool's name
    note: str
    touches: tuple[tuple[FileAccess, str], ...]
    ran: bool = False  # ran a command, did not just read the output of one


class LedgerFold:
    def __init__(self, root: str) -> None:
        self.root, self.now = root, 0
        self.goal = self.report = self.question = ""
        self.directives: dict[str, None] = {}
        self.knowledge: list[str] = []
        self.tallies = NameTallies()
        self.files: dict[str, FileFacts] = {}  # of files that calls named
        self.commands: dict[str, CommandRun] = {}
        self.failures: dict[str, OpenFailure] = {}
        self.actions: deque[AgentAction] = deque(maxlen=_MAX_ACTIONS)
        self.steps: tuple[PlanStep, ...] = ()
        self.passages: dict[tuple[str, ...], Passage] = {}
        self.quotations: dict[str, Quotation] = {}
        self.pending: dict[str, PendingToolCall] = {}

    def add_message(self, message: Message) -> None:
        if message.role == "user":
            self._add_user_text(message)
        by_model = message.role == "model"
        if by_model:
            self._add_report(message)
        for part in message.parts:
            if isinstance(part, ToolResult):
                self._add_result(part)
            elif by_model and isinstance(part, Text | Thought):
                self._count_prose(part.text, _AGENT)
            elif by_model and isinstance(part, ToolCall):
                self._add_call(part)

    def _add_user_text(self, message: Message) -> None:
        text = clip_middle(find_user_text(message), _MAX_DIRECTIVE)
        if text:
            self.directives.pop(text, None)  # a repeated one counts as the newest
            self.directives[text] = None
            self.question = ""
            self._count_prose(text, _USER)
            return
        for part in message.parts:
            if isinstance(part, Text):
                self._count_prose(part.text, _NOTICE)

    def _add_report(self, message: Message) -> None:
        text = "\n".join(part.text for part in message.parts if isinstance(part, Text))
        text = clean(take_ends(text, _MAX_TEXT)).strip()
        if any(isinstance(part, ToolCall) for part in message.parts):
            if len(text) >= _MIN_REMARK:
                self.actions.append(AgentAction("said:", one_line(text, 200)))
            return
        if not text:
            return
        self.report = text
        last = text.rsplit("\n", 1)[-1].strip()
        self.question = one_line(last, 400) if last.endswith(("?", "?")) else ""
        if not self.steps and (steps := find_steps(text)):
            self.steps = steps

    def _count_prose(self, text: str, weight: float) -> None:
        found = find_names(text)
        self.tallies.count(found, weight, self.now)
        if found.files:
            lines = find_names_by_line(text)
            self._count_mentions(lines, weight)
            self._add_passages(lines)

    def _count_mentions(self, lines: list[FoundNames], weight: float) -> None:
        for file, names in find_mentions(lines):
            path = self._path(file)
            self.tallies.mentions.add((path,), weight * LINKED, self.now)
            self.tallies.link(path, names.words | names.chains, weight * LINKED, self.now)

    def _add_passages(self, lines: list[FoundNames]) -> None:
        for names in find_passages(lines):
            paths = tuple(sorted({self._path(file) for file in names.files}))
            held = names.words | names.chains
            if len(paths) == 1:
                self.tallies.link(paths[0], held, LINKED, self.now)
            elif paths and len(paths) <= _MAX_PASSAGE_FILES and len(held) >= _MIN_PASSAGE_NAMES:
                passage = Passage(paths, tuple(sorted(held)[:_MAX_PASSAGE_NAMES]), self.now)
                _put_newest(self.passages, paths, passage, _MAX_PASSAGES)

    def file(self, path: str) -> FileFacts:
        return self.files.get(path) or FileFacts(path=path)

    def _define(self, path: str, text: str) -> FileFacts:
        """What is known of a file, with what this source code defines."""
        known = self.file(path)
        defines = dict.fromkeys((*known.defines, *find_definitions(text)))
        return msgspec.structs.replace(known, defines=tuple(defines))

    def _path(self, path: str) -> str:
        return clean(normalize_path(path, self.root))[:_MAX_PATH]

    def _add_call(self, call: ToolCall) -> None:
        self.now += 1
        value = parse_arguments(call.arguments)
        if value is None:
            self.tallies.count(find_names(call.arguments), _NOTICE, self.now)
            value = {}
        kind = classify_call(call.name, value)
        paths = tuple(self._path(path) for path in _paths_of_call(kind, value))
        if kind == "plan":
            self.steps = apply_plan_call(self.steps, value)
        what = self._count_call(kind, value, paths) or one_line(call.name, 80)
        touches = [(_ACCESS[kind], path) for path in paths] if kind in _ACCESS else []
        command = find_command(value) if kind == "shell" else ""
        if kind == "shell":
            touches += ((how, self._path(path)) for how, path in find_touched_files(command))
            touches += (("edit", self._path(path)) for path in find_patched_paths(value))
        if len(self.pending) < _MAX_PENDING:
            note = first_line(_find_new_text(value), 90) if kind in ("edit", "write") else ""
            pending = PendingToolCall(kind, paths, what, note, tuple(touches), bool(command))
            self.pending[call.id] = pending

    def _count_call(self, kind: ToolKind, value: Mapping[str, Any], paths: tuple[str, ...]) -> str:
        """Count the names of a call; returns what it was about, in one line."""
        for path in paths:
            self.tallies.count(find_names(path), _CALL, self.now, (path,))
            self.tallies.mentions.add((path,), _CALL, self.now)
        if kind in ("edit", "write"):
            self.tallies.count(find_names(collect_strings(value)), _CHANGE, self.now, paths)
            for path in paths:
                self.files[path] = self._define(path, _find_new_text(value))
            return ", ".join(paths[:4])
        command = find_command(value)
        if command:
            self._count_command(command)
            return one_line(shorten_command(command, self.root), 200)
        text = collect_strings(value)
        self.tallies.count(find_names(text), _CALL, self.now, paths)
        if kind == "other":
            self._count_mentions(find_names_by_line(text), _CALL)
        about = (value.get(key) for key in ("pattern", "query", "description", "url", "skill"))
        shown = [text for text in about if isinstance(text, str)][:1]
        return one_line(" in ".join((*shown, *paths[:3])), 160)

    def _count_command(self, command: str) -> None:
        found = find_names(command)
        self.tallies.count(found, _CALL, self.now)
        names = found.words | found.chains
        for file in sorted(found.files)[:20]:
            path = self._path(file)
            self.tallies.mentions.add((path,), _CALL, self.now)
            if len(command) <= _SHORT_COMMAND:
                self.tallies.link(path, names, _CALL * LINKED, self.now)

    def _add_result(self, result: ToolResult) -> None:
        text = result_text(result)
        call = self.pending.pop(result.call_id, None)
        if call is None:
            call = PendingToolCall("other", (), one_line(result.name, 80), "", ())
        outcome = judge_result(result, text, ran=call.kind == "shell")
        own = call.paths if call.kind == "read" and not outcome.failed else ()
        found = find_names(text)
        self.tallies.count(found, _OUTPUT, self.now, own)
        if call.kind != "read" and found.files:
            lines = find_names_by_line(text)
            self._count_mentions(lines, _OUTPUT)
            if is_prose(text):
                self._add_passages(lines)
                self._quote(call, text)
        if not outcome.failed:
            self._touch(call, text)
        self._record_outcome(call, outcome)
        if call.kind != "plan":
            note = outcome.line if call.kind in ("shell", "other") or outcome.failed else call.note
            verb = _VERBS[call.kind] + (" (failed)" if outcome.failed else "")
            self.actions.append(AgentAction(verb, call.what, note))

    def _touch(self, call: PendingToolCall, text: str) -> None:
        for how, path in call.touches:
            before = self._define(path, text if how == "read" else "")
            is_new = not (before.created or before.reads or before.edits)
            self.files[path] = msgspec.structs.replace(
                before,
                created=before.created or (how == "write" and is_new),
                deleted=how == "delete",
                edits=before.edits + (how == "edit" or (how == "write" and not is_new)),
                reads=before.reads + (how == "read"),
            )
            self.tallies.mentions.add((path,), _CHANGE if how == "edit" else _CALL, self.now)
            if how == "read" and call.kind == "shell":
                self.tallies.link(path, find_names(text).words, _OUTPUT, self.now)

    def _quote(self, call: PendingToolCall, text: str) -> None:
        if len(text) >= _MIN_QUOTATION and not call.what.startswith(_LISTING_COMMANDS):
            quotation = Quotation(call.what, clean(text[:_MAX_QUOTATION]).strip(), self.now)
            _put_newest(self.quotations, call.what, quotation, _MAX_QUOTATIONS)

    def _record_outcome(self, call: PendingToolCall, outcome: CallOutcome) -> None:
        shown = describe_call(call)
        if outcome.line == REFUSED_BY_USER:
            return
        if outcome.failed:
            self.failures[failure_subject(shown)] = OpenFailure(shown, outcome.line, self.now)
        else:
            self.failures.pop(failure_subject(shown), None)
        if call.ran:
            times = self.commands[call.what].times + 1 if call.what in self.commands else 1
            self.commands[call.what] = CommandRun(call.what, times, outcome.failed, self.now)


def _put_newest(values: dict[_Key, _Value], key: _Key, value: _Value, most: int) -> None:
    """A value that was there before counts as the newest; the oldest goes when there are more."""
    values.pop(key, None)
    values[key] = value
    if len(values) > most:
        del values[next(iter(values))]


def shorten_command(command: str, root: str) -> str:
    """A command without filters of its output, and with paths relative to the root."""
    text = command[:2000].replace(root + "/", "") if root else command[:2000]
    text = _OUTPUT_FILTER.sub("", text.strip())
    _, entered, rest = text.partition(" && ")
    return rest if entered and text.startswith("cd ") else text


def describe_call(call: PendingToolCall) -> str:
    if call.kind == "shell":
        return "$ " + one_line(call.what, 160)
    return f"{call.kind} {one_line(', '.join(call.paths[:4]) or call.what, 200)}"


def failure_subject(shown: str) -> str:
    """What a success must be about to resolve a failure: the same program and verb, or file."""
    if not shown.startswith("$ "):
        return shown
    words = [w for w in shown[2:].split() if not w.startswith("-") and "=" not in w]
    return "$ " + " ".join(words[:2])


def collect_strings(value: object) -> str:
    """All strings in a JSON value, down to twelve levels."""
    found: list[str] = []
    level = [value]
    for _ in range(12):
        found += (item for item in level if isinstance(item, str))
        level = next_level(level)
    return "\n".join(found)


def _find_new_text(value: Mapping[str, Any]) -> str:
    edits = value.get("edits")
    changes = [value, *(edits if isinstance(edits, list) else ())]
    pairs = ((change, key) for change in changes if isinstance(change, dict) for key in _NEW_TEXT)
    return "\n".join(t for change, key in pairs if isinstance(t := change.get(key), str))


def _paths_of_call(kind: ToolKind, value: Mapping[str, Any]) -> tuple[str, ...]:
    if kind in _ACCESS:
        return tuple(r.path for r in find_paths(value)) or find_patched_paths(value)
    # a search may name a directory; count only what looks like a file
    return tuple(r.path for r in find_paths(value) if find_names(r.path).files) if value else ()
