"""What an agent said, changed and ran, in order: one item for each of its messages.

Calls are matched with their results by id. An edit is kept as the lines it added, a command as the
line or lines of its output that say most. What the user and other programs put into the log is
quoted, never obeyed, and only a bounded part of each record is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from recollect.added_lines import find_added, find_written
from recollect.call_outcome import (
    REFUSED_BY_USER,
    CallOutcome,
    judge_result,
    result_text,
)
from recollect.code_names import take_ends
from recollect.entries import Entry, Message, Text, Thought, ToolCall, ToolResult
from recollect.text import clean, one_line
from recollect.toolkinds import (
    ToolKind,
    classify_call,
    find_command,
    find_patched_paths,
    find_paths,
    normalize_path,
    parse_arguments,
)

_MAX_SAID, _MAX_COMMAND, _MAX_PATH = 20_000, 2_000, 300
_MAX_OUTPUT = 6_000
_MAX_PENDING = 5_000  # calls without a result
_OPTION = re.compile(r"-|\w+=|\d?>")
_VERBS: dict[ToolKind, str] = {"edit": "edited", "write": "wrote", "delete": "deleted"}


class JournalChange(NamedTuple):
    verb: str
    path: str
    lines: tuple[str, ...]  # that it added


class JournalRead(NamedTuple):
    path: str
    entry: str  # of the result
    text: str = ""  # empty if the result has several files


class CommandRun(NamedTuple):
    command: str
    outcome: CallOutcome
    output: str


class JournalItem(msgspec.Struct):
    """One message of the agent, with what came of its calls."""

    entry: str
    turn: int = 0  # the number of prompts before it
    calls: bool = False  # whether it called a tool, whatever came of it
    said: str = ""
    changes: list[JournalChange] = []
    runs: list[CommandRun] = []
    reads: list[JournalRead] = []

    @property
    def acts(self) -> bool:
        return bool(self.changes or self.runs or self.reads)


class ToolOutputText(NamedTuple):
    """The text that a call returned, with what was asked of it."""

    entry: str
    kind: ToolKind
    asked: str  # the command, the path or the arguments, in one line
    text: str


class _PendingCall(NamedTuple):
    item: JournalItem
    kind: ToolKind
    name: str
    value: Mapping[str, Any]


class WorkJournal:
    """Grows with each entry; `outputs` are the texts that succeeding calls returned."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.items: list[JournalItem] = []
        self.outputs: list[ToolOutputText] = []
        self.refused: list[str] = []  # calls that the user did not allow
        self.turn = 0  # the caller counts the prompts
        self._pending: dict[str, _PendingCall] = {}

    def add(self, entry: Entry, message: Message) -> None:
        if message.role == "model":
            calls = any(isinstance(part, ToolCall) for part in message.parts)
            item = JournalItem(entry.id, self.turn, calls, _spoken(message))
            self.items.append(item)
            for part in message.parts:
                if isinstance(part, ToolCall) and len(self._pending) < _MAX_PENDING:
                    value = parse_arguments(part.arguments) or {}
                    kind = classify_call(part.name, value)
                    self._pending[part.id] = _PendingCall(item, kind, part.name, value)
        for part in message.parts:
            if isinstance(part, ToolResult):
                self._add_result(entry, part)

    def _add_result(self, entry: Entry, result: ToolResult) -> None:
        call = self._pending.pop(result.call_id, None)
        if call is None:
            return
        text = result_text(result)
        outcome = judge_result(result, text, ran=call.kind == "shell")
        command = find_command(call.value)
        paths = self.paths(call.kind, call.value)
        asked = command or ", ".join(paths) or f"{call.name} {_about(call.value)}"
        asked = self._relative(asked)
        if outcome.line == REFUSED_BY_USER:
            self.refused.append(one_line(f"{call.name} {_about(call.value)}", 200))
            return
        if command or outcome.failed:
            shown = asked if command else f"{call.kind} {asked}"
            run = CommandRun(one_line(shown, _MAX_COMMAND), outcome, take_ends(text, _MAX_OUTPUT))
            call.item.runs.append(run)
        if not outcome.failed:
            if call.kind == "read":
                shown = text if len(paths) == 1 else ""
                call.item.reads += (JournalRead(path, entry.id, shown) for path in paths)
            self._add_changes(call, paths, command)
            if text.strip():
                self.outputs.append(ToolOutputText(entry.id, call.kind, asked, text))

    def _add_changes(self, call: _PendingCall, paths: tuple[str, ...], command: str) -> None:
        if call.kind in _VERBS:
            lines = find_added(call.value)
            call.item.changes += (JournalChange(_VERBS[call.kind], path, lines) for path in paths)
        call.item.changes += (
            JournalChange("wrote", self._path(path), lines) for path, lines in find_written(command)
        )

    def paths(self, kind: ToolKind, value: Mapping[str, Any]) -> tuple[str, ...]:
        if kind not in ("read", "edit", "write", "delete"):
            return ()
        named = tuple(r.path for r in find_paths(value)) or find_patched_paths(value)
        return tuple(map(self._path, named))

    def _path(self, path: str) -> str:
        return clean(normalize_path(path, self.root))[:_MAX_PATH]

    def _relative(self, text: str) -> str:
        return text[:8_000].replace(self.root + "/", "") if self.root else text[:8_000]


def _spoken(message: Message) -> str:
    """The agent's own words, and its thoughts where they say more."""
    said, thought = (
        clean("\n".join(part.text for part in message.parts if isinstance(part, kind))).strip()
        for kind in (Text, Thought)
    )
    return take_ends(f"{said}\n{thought}".strip() if len(thought) > len(said) else said, _MAX_SAID)


def _about(value: Mapping[str, Any]) -> str:
    found = (f"{key}={text}" for key, text in value.items() if isinstance(text, str | int))
    return one_line(" ".join(found), 200)


def check_key(command: str) -> str:
    """The same check, whatever its options: the program, its verb and its subject."""
    last = command.rsplit(" && ", 1)[-1]
    words = [w for w in last.split("|")[0].split() if not _OPTION.match(w)]
    return " ".join(words[:3])


def show_run(run: CommandRun) -> str:
    failed = "FAILED " if run.outcome.failed else ""
    told = one_line(run.outcome.line, 240)
    return f"`{one_line(run.command, 160)}` → {failed}{told or 'no output'}"
