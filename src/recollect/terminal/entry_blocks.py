"""The blocks of a stored entry. What a person is not shown, such as requests, has none."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from recollect.display.display_text import one_line, pluralize
from recollect.display.entry_summary import describe_attachment, describe_edit
from recollect.entries import (
    Body,
    Compaction,
    Elide,
    FileRef,
    InlineData,
    Message,
    Note,
    Part,
    Pin,
    Restore,
    Source,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    UnknownBody,
)
from recollect.runtime.project_prompts import RAN
from recollect.store.output_notes import output_part
from recollect.terminal.block import (
    OWN_COMMAND,
    Block,
    BlockState,
    Level,
    bound_arguments,
    bound_output,
    bound_text,
)
from recollect.terminal.command_words import say_here
from recollect.transcripts.subagent_links import OURS, SUBAGENT, read_link
from recollect.view.edit_reasons import with_handles
from recollect.workspace.sent_files import prompt_files

CUT_OFF = "cut off"
_CUT_OFF_TEXT = "the reply was cut off: it reached the limit of its length"
_NOT_COMPACTED = {
    "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT": "it would not have become smaller",
    "COMPRESSION_FAILED_EMPTY_SUMMARY": "the snapshot was empty",
}
_CUT = frozenset({"length", "max_tokens", "MAX_TOKENS"})
_TRIGGERS = {"auto": ", automatically", "overflow": ", to fit the window"}


def reply_blocks(body: Message, entry: str) -> Iterator[Block]:
    """Numbered in the order in which they are shown, as while the reply arrived."""
    state: BlockState = "interrupted" if body.finish in ("interrupted", "error") else "done"
    number = 0
    for part in body.parts:
        block = _part_block(part, f"{entry}:{number}", entry, state)
        if block is not None:
            yield block
            number += 1
    if body.finish in _CUT:
        yield Block(f"{entry}:cut", "notice", _CUT_OFF_TEXT, entry, CUT_OFF, level="warning")


def _part_block(part: object, key: str, entry: str, state: BlockState) -> Block | None:
    if isinstance(part, Text) and part.text.strip():
        text, omitted = bound_text(part.text)
        return Block(key, "reply", text, entry, state=state, omitted=omitted)
    if isinstance(part, Thought) and (part.text or part.subject):
        whole = f"**{part.subject}** {part.text}" if part.subject else part.text
        text, omitted = bound_text(whole)
        return Block(key, "thought", text, entry, omitted=omitted)
    if isinstance(part, ToolCall):
        text, omitted = bound_arguments(part.arguments)
        return Block(
            key, "tool", text, entry, part.name,
            state="running", call_id=part.id, omitted=omitted,
        )  # fmt: skip
    if isinstance(part, InlineData | FileRef | Unknown):
        return Block(key, "reply", describe_attachment(part), entry, state=state)
    return None


def user_block(body: Message, entry: str) -> Block | None:
    """What the user said; None if the message holds only results. Files are named, and shown when
    it is unfolded, as is what a command of the user's own wrote."""
    files = prompt_files(body)
    in_files = {id(part) for file in files for part in file.parts}
    said = [_said(part) for part in body.parts if id(part) not in in_files]
    said = [*filter(None, said), *(f"[{one_line(file.label)}]" for file in files)]
    if not said:
        return None
    text, omitted = bound_text("\n".join(said))
    output = "\n".join(_said(part) for file in files for part in file.parts)
    name = ""
    if text.startswith(RAN):
        name = OWN_COMMAND
        line, _, output = text.removeprefix(RAN).partition("\n")
        text = f"!{line}"
    output, cut = bound_output(output)
    return Block(f"{entry}:0", "user", text, entry, name, output, omitted=omitted + cut)


def _said(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, InlineData | FileRef | Unknown):
        return describe_attachment(part)
    return ""


def with_result(block: Block, result: ToolResult, entry: str = "") -> Block:
    """A call with what came of it."""
    text = "\n".join(
        part.text if isinstance(part, Text) else describe_attachment(part)
        for part in result.content
    )
    output, omitted = bound_output(text)
    return msgspec.structs.replace(
        block,
        output=output,
        state="failed" if result.is_error else "done",
        seconds=result.duration,
        omitted=omitted or block.omitted,
        result=entry or block.result,
    )


def notice_block(body: Body, entry: str) -> Block | None:
    """What a person is told of an entry that is no message; None: nothing."""
    if isinstance(body, Elide):
        return elision_block(f"{entry}:0", entry, ((body.rule, len(body.items)),))
    told = _notice_of(body)
    if told is None:
        return None
    text, omitted = bound_text(told[0])
    return Block(f"{entry}:0", "notice", text, entry, level=told[1], omitted=omitted)


def elision_block(key: str, entry: str, elided: tuple[tuple[str, int], ...]) -> Block:
    """Several elisions in a row are one line."""
    count = sum(number for _, number in elided)
    rules = dict.fromkeys(rule for rule, _ in elided)
    named = f"rule {next(iter(rules))}" if len(rules) == 1 else f"rules {', '.join(rules)}"
    text = f"{pluralize(count, 'entry')} left out by {named}"
    return Block(key, "notice", text, entry, elided=elided)


def _is_bookkeeping(note: Note) -> bool:
    """Whether the call that a note belongs to shows what it says."""
    if not note.extra:
        return False
    if output_part(note) is not None or note.extra.startswith('{"file_change":'):
        return not note.text.startswith("restored ")
    link = read_link(note)
    return link is not None and link.to == SUBAGENT and note.extra.startswith(f'{{"{OURS}":')


def _notice_of(body: Body) -> tuple[str, Level] | None:
    match body:
        case Note(text=text, level=level):
            return None if _is_bookkeeping(body) else (say_here(text), level)
        case Compaction(status="COMPRESSED"):
            tokens = f"{body.tokens_before:,} → {body.tokens_after:,} tokens"
            return f"compacted{_TRIGGERS.get(body.trigger, '')}: {tokens}", "info"
        case Compaction(status="NOOP"):
            return "nothing to compact", "info"
        case Compaction(status=status, reason=reason):
            why = with_handles(reason) or _NOT_COMPACTED.get(status, "its tokens are not known")
            return f"not compacted: {why}", "warning"
        case Pin(first=True):
            return None  # the program's own: instructions stand before the conversation
        case Pin() | Restore() | Source() | UnknownBody():
            return describe_edit(body)[:500], "info"
        case _:
            return None
