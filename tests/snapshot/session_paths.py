"""Paths through a log for these tests: entries from bodies, and the steps of a working agent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from recollect.entries import Body, Entry, Message, ToolCall
from recollect.snapshot.session_facts import SessionFacts, collect_facts
from recollect.snapshot.snapshot_builder import build_snapshot_text
from recollect.snapshot.snapshot_format import Snapshot, parse_snapshot
from recollect.testing import call, model, result


def path_of(*bodies: Body) -> tuple[Entry, ...]:
    ids = [f"{number:032x}" for number in range(1, len(bodies) + 1)]
    parents = (None, *ids)
    return tuple(
        Entry(id_, parent, 1_000 * number, body)
        for number, (id_, parent, body) in enumerate(zip(ids, parents, bodies, strict=False))
    )


def facts_of(*bodies: Body, root: str = "") -> SessionFacts:
    return collect_facts(path_of(*bodies), root=root)


def snapshot_of(*bodies: Body, budget: int = 6_000, written: Snapshot | None = None) -> str:
    text = build_snapshot_text(path_of(*bodies), budget, written=written)
    assert len(text) <= budget
    return text


def sections_of(*bodies: Body, budget: int = 6_000, written: Snapshot | None = None) -> Snapshot:
    found = parse_snapshot(snapshot_of(*bodies, budget=budget, written=written))
    assert found is not None
    return found


def did(called: ToolCall, output: str, *, is_error: bool = False) -> tuple[Message, Message]:
    """A call and its result."""
    return model("", called), result(called, output, is_error=is_error)


def read(path: str, output: str, number: int = 1) -> tuple[Message, Message]:
    return did(call("Read", id=f"r{number}", file_path=path), output)


def edit(path: str, old: str, new: str, number: int = 1) -> tuple[Message, Message]:
    called = call("Edit", id=f"e{number}", file_path=path, old_string=old, new_string=new)
    return did(called, "The file has been updated.")


def ran(
    command: str, output: str, number: int = 1, *, fails: bool = False
) -> tuple[Message, Message]:
    return did(call("Bash", id=f"b{number}", command=command), output, is_error=fails)


@contextmanager
def in_linear_time() -> Iterator[None]:
    """CPU time, so that a busy machine does not matter. The inputs take well under a second; more
    than linear work on millions of characters would take hours."""
    started = time.process_time()
    yield
    assert time.process_time() - started < 30
