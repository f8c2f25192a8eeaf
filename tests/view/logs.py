"""Random logs: messages, and edits that mostly make sense."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from hypothesis import strategies as st

from recollect.compaction.proposal import name_kept
from recollect.entries import (
    Compaction,
    Elide,
    Elided,
    Entry,
    InlineData,
    Message,
    Note,
    Part,
    Pin,
    Restore,
    Text,
    Thought,
    Title,
    ToolCall,
    ToolResult,
    Unknown,
    json_text,
)
from recollect.stale_rules import STALE_RULES
from recollect.toolkinds import TOOL_NAMES
from recollect.view.curation import is_valid
from recollect.view.view import View
from recollect.view.view_state import with_partners

_WORDS = st.sampled_from(["", " ", "ok", "def f(): pass", "请看", "x" * 200, "a\nb\nc"])
_PATHS = st.sampled_from(["a.py", "./a.py", "src/b.py", "src/../a.py"])
_CALLS = st.sampled_from(["c1", "c2", "c3", ""])
STALE_TOOLS = {
    rule.name: [name for kind in rule.tool_kinds for name in TOOL_NAMES[kind].split()]  # type: ignore[index]
    for rule in STALE_RULES
}
TOOLS = ["read_file", "replace", *(names[0] for names in STALE_TOOLS.values())]
_TOOLS = st.sampled_from([*TOOLS, "other"])


def name(number: int) -> str:
    return f"{number:032x}"


@st.composite
def _parts(draw: st.DrawFn, role: str) -> tuple[Part, ...]:
    found: list[Part] = []
    for kind in draw(st.lists(st.sampled_from("tttThcrdu"), max_size=3)):
        text = draw(_WORDS)
        if kind in "tT":
            found.append(Text(text=text))
        elif kind == "h":
            found.append(Thought(text=text, signature="s"))
        elif kind == "c" and role == "model":
            arguments = json_text({"path": draw(_PATHS)})
            found.append(ToolCall(id=draw(_CALLS), name=draw(_TOOLS), arguments=arguments))
        elif kind == "r" and role == "user":
            found.append(
                ToolResult(
                    call_id=draw(_CALLS),
                    name=draw(_TOOLS),
                    content=tuple(Text(text=t) for t in draw(st.lists(_WORDS, max_size=2))),
                    is_error=draw(st.booleans()),
                )
            )
        elif kind == "d":
            found.append(InlineData(mime="image/png", data=text.encode()))
        elif kind == "u":
            found.append(Unknown(data=json_text({"type": "new", "text": text})))
    return tuple(found)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role: Any = draw(st.sampled_from(["user", "model", "model", "user", "system"]))
    context: Any = draw(st.sampled_from(["", "", "", "initial"])) if role == "user" else ""
    return Message(role=role, parts=draw(_parts(role)), context=context)


@st.composite
def _edits(draw: st.DrawFn, before: int) -> Any:
    some = st.integers(0, before + 1).map(name)  # one beyond: what does not exist
    few = st.lists(some, min_size=1, max_size=3).map(tuple)
    spots = st.lists(st.integers(0, 3), max_size=2).map(tuple)
    what = st.builds(
        Elided,
        entry=some,
        placeholder=st.sampled_from(["[left out]", ""]),
        parts=spots,
        blocks=spots,
        head=st.integers(0, 5),
        tail=st.integers(0, 5),
    )
    return draw(
        st.one_of(
            st.builds(Elide, rule=st.just("r"), items=st.lists(what, max_size=3).map(tuple)),
            st.builds(Pin, entries=few, first=st.booleans()),
            st.builds(Restore, entries=few),
            st.builds(
                Compaction,
                status=st.sampled_from(["COMPRESSED", "COMPRESSED", "NOOP"]),
                snapshot=st.sampled_from(["<state_snapshot>…</state_snapshot>", "so far", ""]),
                first_kept=st.none() | some,
                kept=st.lists(some, max_size=2).map(tuple),
            ),
            st.builds(Note, text=st.just("for people")),
            st.builds(Title, title=st.just("t")),
        )
    )


def as_written(log: Iterable[Entry]) -> tuple[Entry, ...]:
    """The log with edits as this program writes them. Pins name earlier messages; compactions keep
    from an earlier message on, and name what stays of those before it. Replies are valid: a run of
    them is judged as a whole, which a compaction would divide."""
    view = View.fold()
    for entry in log:
        body = entry.body
        if isinstance(body, Message) and body.role == "model" and not is_valid(body):
            body = msgspec.structs.replace(body, parts=(Text(text="ok"),))
        if isinstance(body, Pin):
            known = tuple(e for e in body.entries if view.log.find_message(e, view.n) is not None)
            body = msgspec.structs.replace(body, entries=known)
        if isinstance(body, Compaction) and body.status == "COMPRESSED":
            first = view.log.position(body.first_kept, view.n) if body.first_kept else None
            gone = [i for i in view.items if first is None or view.log.at[i.entry.id] < first]
            stay = with_partners(view.log, {view.log.at[i.entry.id] for i in gone if i.stays})
            names = [i.entry.id for i in gone if view.log.at[i.entry.id] in stay and not i.cuts]
            body = msgspec.structs.replace(
                body,
                first_kept=None if first is None else body.first_kept,
                kept=name_kept(view, names),
            )
        view = view.append(msgspec.structs.replace(entry, body=body))
    return view.entries


@st.composite
def logs(draw: st.DrawFn, *, max_size: int = 25, edits: bool = True) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    time = 1_000_000
    for number in range(draw(st.integers(0, max_size))):
        edit = edits and draw(st.integers(0, 3)) == 0
        body = draw(_edits(number)) if edit else draw(messages())
        time += draw(st.sampled_from([1, 1_000, 700_000, -5_000]))  # clocks go backwards too
        entries.append(Entry(name(number), name(number - 1) if number else None, time, body))
    return tuple(entries)
