"""Random sessions that are hard to fit: huge messages, many calls, images, pins, late initial
context, failed compactions."""

from __future__ import annotations

from hypothesis import strategies as st

from recollect.entries import (
    Body,
    Compaction,
    Content,
    Entry,
    InlineData,
    Message,
    Part,
    Pin,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    json_text,
)
from recollect.testing import model, user
from recollect.view.curation import is_initial
from recollect.view.view import View
from tests.compaction.sessions import entries
from tests.view.logs import name


class HardLog(tuple[Entry, ...]):
    """Shown in a failure by the sizes of its messages alone."""

    __slots__ = ()

    def __repr__(self) -> str:
        view = View.fold(self)
        return "; ".join(
            f"{body.role}{body.context and ':'}{body.context} {view.log.part_tokens(at)}"
            if isinstance(body := entry.body, Message)
            else str(body)
            for at, entry in enumerate(self)
        )


_SIZES = st.sampled_from([1, 3, 30, 300, 3_000, 40_000])  # words
_INITIAL_SIZES = st.sampled_from([5, 5, 50, 500, 20_000])
_IMAGE = InlineData(mime="image/png", data=b"x" * 100)


def _words(size: int, mark: str) -> str:
    lines = [f"{mark} line {number} of many words here" for number in range(size // 7)]
    return "\n".join(lines) or mark


@st.composite
def _initial(draw: st.DrawFn) -> list[Body]:
    system = Text(text=_words(draw(_INITIAL_SIZES), "instructions"))
    block = Text(text=_words(draw(_INITIAL_SIZES), "environment"))
    return [
        Message(role="system", parts=(system,), context="initial"),
        Message(role="user", parts=(block,), context="initial"),
    ]


@st.composite
def exchange(draw: st.DrawFn, number: int) -> list[Body]:
    """A reply with calls, and their results, in one message or several."""
    count = draw(st.integers(0, 5))
    calls = [
        ToolCall(
            id=f"{number}-{n}",
            name=draw(st.sampled_from(["read_file", "run_shell_command", "other"])),
            arguments=json_text({"path": f"f{n}.py", "more": _words(draw(_SIZES) // 10, "a")}),
        )
        for n in range(count)
    ]
    parts: list[Part] = [Text(text=_words(draw(_SIZES) // 10, f"reply-{number}")), *calls]
    if draw(st.booleans()):
        parts.insert(0, Thought(text=_words(draw(_SIZES) // 10, "thought"), signature="s"))
    results = [_result(draw, call) for call in calls]
    together = draw(st.booleans())
    if results and together:
        return [Message(role="model", parts=tuple(parts)), Message("user", tuple(results))]
    answers = [Message(role="user", parts=(result,)) for result in results]
    return [Message(role="model", parts=tuple(parts)), *answers]


def _result(draw: st.DrawFn, call: ToolCall) -> ToolResult:
    texts = [Text(text=_words(draw(_SIZES), f"out-{call.id}"))] * draw(st.integers(1, 2))
    content: tuple[Content, ...] = (*texts, _IMAGE) if draw(st.booleans()) else (*texts,)
    failed = draw(st.sampled_from([False, False, True]))
    return ToolResult(call_id=call.id, name=call.name, content=content, is_error=failed)


@st.composite
def prompt(draw: st.DrawFn, number: int) -> list[Body]:
    images = (_IMAGE,) * draw(st.sampled_from([0, 0, 1, 30]))
    said = Text(text=_words(draw(_SIZES), f"prompt-{number}"))
    found: list[Body] = [Message(role="user", parts=(said, *images))]
    if draw(st.booleans()):
        memory = Text(text=_words(draw(_INITIAL_SIZES), "memory"))
        found.append(Message(role="user", parts=(memory,), context="memory"))
    if draw(st.booleans()):
        found.append(
            Message(role="user", parts=(Text(text="The day is Monday."),), context="aside")
        )
    return found


class HardExchanges(tuple[list[Body], ...]):
    """Shown in a failure as a log of them would be."""

    __slots__ = ()

    def __repr__(self) -> str:
        return " | ".join(repr(HardLog(entries(*bodies))) for bodies in self)


@st.composite
def hard_exchanges(draw: st.DrawFn) -> HardExchanges:
    """What comes of one prompt."""
    return HardExchanges(draw(exchange(60 + n)) for n in range(draw(st.integers(1, 5))))


@st.composite
def hard_logs(draw: st.DrawFn) -> HardLog:
    """Ends with a prompt or with results: somebody waits for the model's reply."""
    late = draw(st.booleans())
    bodies: list[Body] = [] if late else draw(_initial())
    for turn in range(draw(st.integers(1, 5))):
        bodies += draw(prompt(turn))
        for number in range(draw(st.integers(0, 4))):
            bodies += draw(exchange(turn * 10 + number))
        if late and turn == 0:
            at = len(bodies)
            bodies += [*draw(_initial()), Pin(entries=(name(at), name(at + 1)), first=True)]
        if draw(st.integers(0, 3)) == 0:
            bodies.append(Compaction(status="COMPRESSION_FAILED_EMPTY_SUMMARY", trigger="auto"))
        if draw(st.integers(0, 3)) == 0:
            at = draw(st.integers(0, len(bodies) - 1))
            if isinstance(bodies[at], Message):
                bodies.append(Pin(entries=(name(at),)))
    if not is_waiting(bodies):
        bodies += [model("Done."), user("And now?")]
    return HardLog(entries(*bodies))


def is_waiting(bodies: list[Body]) -> bool:
    last = [body for body in bodies if isinstance(body, Message)][-1]
    return last.role == "user"


def initial_ids(view: View) -> set[str]:
    return {item.entry.id for item in view.items if is_initial(item.message)}


def unpaired(view: View) -> tuple[set[str], set[str]]:
    """Calls without a result after them, and results without a call before them."""
    waiting: set[str] = set()
    orphans: set[str] = set()
    for message in view.messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                waiting.add(part.id)
            elif isinstance(part, ToolResult):
                orphans |= {part.call_id} - waiting
                waiting.discard(part.call_id)
    return waiting, orphans
