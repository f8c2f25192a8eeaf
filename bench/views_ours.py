"""The view: folding, growing, and what the rules save, with nothing remembered between rounds."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from bench import clock, conversation
from recollect import toolkinds
from recollect.entries import (
    Compaction,
    Elide,
    Entry,
    Message,
    Part,
    Restore,
    ToolCall,
    ToolResult,
    handle_of,
    json_text,
)
from recollect.transcripts.format_table import read_file
from recollect.transcripts.source_file import SourceFile
from recollect.view import tool_uses
from recollect.view.curation import is_spoken
from recollect.view.elision_plan import ElisionPlan
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.view import View

_BETWEEN = 20_000  # milliseconds from one message to the next


def messages(n: int, *, working: bool) -> list[Message]:
    """The conversation that everybody stores; its calls give the rules next to nothing to do, so
    in a `working` one the same results come from commands, searches and reads of fewer files."""
    found = conversation.messages(n)
    return [_working(i // 4, message) for i, message in enumerate(found)] if working else found


def _working(turn: int, message: Message) -> Message:
    names = ("read_file", "run_shell_command", "search_file_content")
    given = (
        {"path": f"src/module_{turn // 3 % 100}.py"},
        {"command": f"pytest tests/test_{turn}.py"},
        {"pattern": f"name_{turn}"},
    )
    name, arguments = names[turn % 3], json_text(given[turn % 3])
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            parts.append(msgspec.structs.replace(part, name=name, arguments=arguments))
        elif isinstance(part, ToolResult):
            parts.append(msgspec.structs.replace(part, name=name))
        else:
            parts.append(part)
    return msgspec.structs.replace(message, parts=tuple(parts))


def _entries(bodies: Iterable[Message], start: int = 0) -> list[Entry]:
    return [
        Entry(f"{i:032x}", f"{i - 1:032x}" if i else None, i * _BETWEEN, body)
        for i, body in enumerate(bodies, start)
    ]


def _edits(found: ElisionPlan, view: View, now: int) -> list[Entry]:
    """As a store would write them."""
    return [Entry(f"e{view.n + i:031x}", None, now, edit) for i, edit in enumerate(found.edits)]


def _forget() -> None:
    """What rules remember of calls they have seen; the first round must not help the second."""
    for module in (tool_uses, toolkinds):
        for thing in vars(module).values():
            if hasattr(thing, "cache_clear"):
                thing.cache_clear()


async def ready(
    _: Path, n: int, working: bool, counted: bool = False, repeats: int = 5
) -> dict[str, Any]:
    """Everything from entries to messages, and every token counted as well if wanted; in a
    `working` session what the rules propose is appended."""
    entries = _entries(messages(n, working=working))
    now = entries[-1].time
    proposed = ElisionPlan()

    async def work() -> int:
        nonlocal proposed
        _forget()
        view = View.fold(entries)
        proposed = plan_elisions(view, now)
        if working:
            view = view.append(*_edits(proposed, view, now))
        return view.tokens and len(view.items) if counted else len(view.messages)

    found = await clock.repeat(work, repeats)
    return found | {"left_out": len(proposed.savings), "saved": proposed.tokens}


async def growing(_: Path, sizes: tuple[int, int], appends: int) -> dict[str, Any]:
    """Single appends to a short and a long session in turn, each followed by its token count. The
    short one begins anew when it has doubled."""
    few, many = sizes
    entries = _entries(conversation.messages(many + appends))
    short, long = _counted(entries[:few]), _counted(entries[:many])
    took: dict[str, list[float]] = {"short": [], "long": []}
    clock.settle()
    for number in range(appends):
        if number % few == 0:
            short = _counted(entries[:few])
        short, seconds = _grown(short, entries[few + number % few])
        took["short"].append(seconds)
        long, seconds = _grown(long, entries[many + number])
        took["long"].append(seconds)
    assert long.tokens == View.fold(entries).tokens, "appending gave another view than folding"
    medians = {name: statistics.median(one) for name, one in took.items()}
    return medians | {"long_p99": statistics.quantiles(took["long"], n=100)[-1]}


def _counted(entries: list[Entry]) -> View:
    view = View.fold(entries)
    assert view.tokens, "nothing to count"
    return view


def _grown(view: View, entry: Entry) -> tuple[View, float]:
    began = time.perf_counter()
    grown = view.append(entry)
    tokens = grown.tokens
    seconds = time.perf_counter() - began
    assert tokens > view.tokens, "a message has no tokens"
    return grown, seconds


# --- what the rules save of a transcript ---------------------------------------------------------


async def saving(_: Path, path: str) -> dict[str, Any]:
    """Of all tokens on the path to the leaf, those that each rule leaves out: at the end, and when
    it is asked at each of the user's turns. Whatever it leaves out is brought back and compared."""
    file = Path(path)
    entries = _whole_transcript(file)
    whole = View.fold(entries)
    now = entries[-1].time
    proposed = plan_elisions(whole, now, ElisionRules(min_saving=1))
    at_end = whole.append(*_edits(proposed, whole, now))
    _recall(whole, at_end)
    by_turn, turns = View.fold(), 0
    edits: list[Entry] = []
    for entry in entries:
        by_turn = by_turn.append(entry)
        if isinstance(entry.body, Message) and is_spoken(entry.body):
            turns += 1
            more = _edits(plan_elisions(by_turn, entry.time), by_turn, entry.time)
            by_turn, edits = by_turn.append(*more), [*edits, *more]
    _recall(whole, by_turn)
    return {
        "tokens": whole.tokens,
        "entries": len(entries),
        "turns": turns,
        "end": _by_rule(proposed.edits) | {"all": whole.tokens - at_end.tokens},
        "by_turn": _by_rule(edit.body for edit in edits) | {"all": whole.tokens - by_turn.tokens},
        "left_out": len(proposed.savings),
        "plans": len({edit.time for edit in edits}),
    }


def _whole_transcript(file: Path) -> list[Entry]:
    """The path to the leaf as if nothing had ever been compacted."""
    foreign = read_file(SourceFile(file), file.name)
    return [entry for entry in foreign.path if not isinstance(entry.body, Compaction)]


def _by_rule(edits: Iterable[object]) -> Counter[str]:
    found: Counter[str] = Counter()
    for edit in edits:
        if isinstance(edit, Elide):
            found[edit.rule] += sum(item.tokens for item in edit.items)
    return found


def _recall(whole: View, view: View) -> None:
    """Bring back one thing after the other by the handle in its placeholder; raise if any message
    is not exactly what it was, or if anything stays away."""
    said = {item.entry.id: item.message for item in whole.items}
    for item in view.items:
        for cut in item.cuts:
            assert f"recall {handle_of(item.entry.id)}" in cut.what.placeholder, (
                "no handle to recall it by"
            )
        if item.cuts:
            assert view.log.position(item.entry.id, view.n) is not None, "it is not in the log"
            back = Entry(f"f{view.n:031x}", view.head, 0, Restore(entries=(item.entry.id,)))
            view = view.append(back)
            shown = next(i for i in view.items if i.entry.id == item.entry.id)
            assert shown.message == said[item.entry.id], f"{item.entry.id} came back changed"
    assert view.messages == whole.messages, "something stayed away"
    assert view.tokens == whole.tokens, "all is back, but is counted differently"
