"""Random message lists for repair: from sane conversations that were damaged to plain noise."""

from __future__ import annotations

from itertools import count
from typing import TypeAlias

from hypothesis import strategies as st
from msgspec.structs import replace

from recollect.codecs.provider_rules import (
    ANTHROPIC_RULES,
    GEMINI_RULES,
    OPENAI_RULES,
    STRICT_OPENAI_RULES,
    TEXT_RULES,
)
from recollect.codecs.repair import Repaired
from recollect.entries import (
    FileRef,
    InlineData,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)

Messages: TypeAlias = tuple[Message, ...]
MODELS = ("", "this", "other")
# "a-2" is what a second "a" would be called; the last two no provider takes as they are
IDS = ("", "a", "a", "b", "c", "a-2", "call-1", "read", "two words\u202e", "x" * 70)
NAMES = ("read", "grep", "")

provider_rules = st.sampled_from(
    [
        rules
        for base in (GEMINI_RULES, OPENAI_RULES, STRICT_OPENAI_RULES, ANTHROPIC_RULES, TEXT_RULES)
        for rules in (
            base,
            replace(base, model="this"),
            replace(base, model="this", alternate=not base.alternate),
            replace(base, system="anywhere", thoughts="own", model="this", id_limit=12),
        )
    ]
)

_words = st.sampled_from(["", " ", "\n", "word", "word", "word"])
_calls = st.builds(
    ToolCall,
    id=st.sampled_from(IDS),
    name=st.sampled_from(NAMES),
    arguments=st.just("{}"),
    signature=st.sampled_from(["", "", "sig"]),
)
_results = st.builds(
    ToolResult,
    call_id=st.sampled_from(IDS),
    name=st.sampled_from(NAMES),
    content=st.just((Text(text="output"),)),
    is_error=st.booleans(),
)
_others = st.one_of(
    st.builds(Text, text=_words),
    st.builds(Thought, text=_words, signature=st.sampled_from(["", "sig"])),
    st.sampled_from(
        [
            InlineData(mime="image/png", data=b"png"),
            FileRef(mime="text/plain", uri="file:///notes"),
            Unknown(data='{"type":"hologram"}'),
        ]
    ),
)
_noise = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["user", "model", "model", "system"]),
        parts=st.lists(_calls | _calls | _results | _results | _others, max_size=5).map(tuple),
        model=st.sampled_from(MODELS),
    ),
    max_size=10,
)


_lead = st.lists(
    st.builds(Thought, text=st.sampled_from(["word", ""]), signature=st.sampled_from(["sig", ""])),
    max_size=1,
)


@st.composite
def _exchange(draw: st.DrawFn) -> list[Message]:
    """One turn as an agent records it: text, calls, results in any order, an answer."""
    made = draw(st.sampled_from(MODELS))
    calls = draw(st.lists(_calls, max_size=3))
    if draw(st.booleans()):  # most providers give good ids
        calls = [replace(c, id=f"id{draw(st.integers(0, 9999))}") for c in calls]
    answers = [ToolResult(call_id=c.id, name=c.name, content=(Text(text="output"),)) for c in calls]
    turn = [Message(role="user", parts=(Text(text="word"),))]
    if calls:
        turn.append(Message(role="model", parts=(*draw(_lead), *calls), model=made))
        ordered = draw(st.permutations(answers)) if draw(st.booleans()) else answers
        cut = draw(st.integers(0, len(ordered)))
        halves = (ordered[:cut], ordered[cut:])
        turn += [Message(role="user", parts=tuple(half)) for half in halves if half]
        if draw(st.booleans()):  # the user spoke while the tools ran
            turn[-1] = replace(turn[-1], parts=(*turn[-1].parts, Text(text="word")))
    turn.append(Message(role="model", parts=(Text(text="word"),), model=made))
    return turn


@st.composite
def _damaged(draw: st.DrawFn) -> list[Message]:
    found = [message for turn in draw(st.lists(_exchange(), max_size=4)) for message in turn]
    if draw(st.booleans()):
        found.insert(0, Message(role="system", parts=(Text(text="word"),)))
    for _ in range(draw(st.integers(0, 3))):
        if not found:
            break
        at, to = (draw(st.integers(0, len(found) - 1)) for _ in range(2))
        match draw(st.sampled_from(["drop", "repeat", "move", "cut", "instruct"])):
            case "drop":
                del found[at]
            case "repeat":
                found.insert(to, found[at])
            case "move":
                found.insert(to, found.pop(at))
            case "cut":
                del found[at + 1 :]
            case _:
                found.insert(at, Message(role="system", parts=(Text(text="word"),)))
    return found


def numbered(found: list[Message]) -> Messages:
    """The same messages with words that are all different, so that each can be followed."""
    numbers = count()

    def part_with_number(part: Part) -> Part:
        if isinstance(part, Text | Thought) and part.text.strip():
            return replace(part, text=f"{part.text} {next(numbers)}")
        if isinstance(part, ToolCall):
            return replace(part, arguments=f'{{"n":{next(numbers)}}}')
        if isinstance(part, ToolResult):
            return replace(part, content=(Text(text=f"output {next(numbers)}"),))
        return part

    return tuple(replace(m, parts=tuple(part_with_number(p) for p in m.parts)) for m in found)


conversations: st.SearchStrategy[Messages] = (_damaged() | _noise).map(numbered)


def with_unique_ids(messages: Messages) -> Messages:
    """Each call under an id of its own; results keep what they claim to answer, where they can."""
    numbers = count()
    newest: dict[str, str] = {}

    def part_with_id(part: Part) -> Part:
        if isinstance(part, ToolCall):
            newest[part.id] = f"{part.id[:3]}.{next(numbers)}".replace(" ", "")
            return replace(part, id=newest[part.id])
        if isinstance(part, ToolResult):
            return replace(part, call_id=newest.get(part.call_id, "nobody"))
        return part

    return tuple(replace(m, parts=tuple(part_with_id(p) for p in m.parts)) for m in messages)


def flat(messages: Messages) -> list[Part]:
    return [part for message in messages for part in message.parts]


def outputs(messages: Messages) -> list[tuple[str, str]]:
    """Each result's call id and text, in order."""
    return [
        (part.call_id, "".join(c.text for c in part.content if isinstance(c, Text)))
        for part in flat(messages)
        if isinstance(part, ToolResult)
    ]


def kinds(repaired: Repaired) -> list[str]:
    return [fix.kind for fix in repaired.trace]


def calls_of(messages: Messages) -> list[ToolCall]:
    return [part for part in flat(messages) if isinstance(part, ToolCall)]


def results_of(messages: Messages) -> list[ToolResult]:
    return [part for part in flat(messages) if isinstance(part, ToolResult)]
