"""What a terminal shows of a session: blocks, folded from stored entries and from the events of a
run, in the same form, so that a resumed session looks as it did while it ran.

A block is a value; a `BlockList` holds the current ones in order and tells from which on they
changed. All texts are as they were stored: whoever shows them sanitizes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

import msgspec

from recollect.display.entry_summary import describe_attachment, describe_edit
from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Entry,
    FileRef,
    InlineData,
    Message,
    Note,
    Pin,
    Restore,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)
from recollect.store.output_notes import output_part

BlockKind: TypeAlias = Literal["user", "reply", "thought", "tool", "notice"]
BlockState: TypeAlias = Literal["done", "running", "failed", "interrupted"]
Level: TypeAlias = Literal["info", "warning", "error"]


class Block(msgspec.Struct, frozen=True):
    """A piece of the conversation as it is shown."""

    key: str  # tells it from all others; the same for as long as it is shown
    kind: BlockKind
    text: str  # of a call: its arguments, as JSON
    entry: str = ""  # the entry that it is of; empty while that is not stored
    name: str = ""  # of a call: the tool
    output: str = ""  # of a call: its result
    state: BlockState = "done"
    level: Level = "info"  # of a notice
    seconds: float | None = None  # of a call: how long it took
    call_id: str = ""


class BlockList:
    """The blocks in order. `on_change` hears the position from which on they changed."""

    def __init__(self, on_change: Callable[[int], None] = lambda _: None) -> None:
        self.blocks: list[Block] = []
        self.on_change = on_change
        self._at: dict[str, int] = {}  # positions by key
        self._calls: dict[str, int] = {}  # positions of calls without a result, by call id
        self._results: dict[str, ToolResult] = {}  # whose calls are on an older page
        self._count = 0

    def clear(self) -> None:
        self.blocks.clear()
        self._at.clear()
        self._calls.clear()
        self.on_change(0)

    def add_entries(self, entries: Iterable[Entry]) -> None:
        """Entries of the path, after those that are shown."""
        start = min([len(self.blocks), *self._calls.values()])
        for entry in entries:
            self._add_body(entry.body, entry.id)
        self.on_change(start)

    def prepend_entries(self, entries: Iterable[Entry]) -> int:
        """Older entries, before those that are shown; the number of blocks they became."""
        older = BlockList()
        older.add_entries(entries)
        self._settle_results(older)
        self.blocks[:0] = older.blocks
        self._reindex()
        self.on_change(0)
        return len(older.blocks)

    def add_notice(self, text: str, level: Level = "info") -> None:
        self._push(Block(self._new_key("notice"), "notice", text, level=level))
        self.on_change(len(self.blocks) - 1)

    # --- while a reply arrives -------------------------------------------------------------------

    def add_said(self, text: str, attachments: Iterable[str] = ()) -> None:
        """What the user has just sent."""
        said = "\n".join([text, *(f"[{path}]" for path in attachments)])
        self._push(Block(self._new_key("said"), "user", said))
        self.on_change(len(self.blocks) - 1)

    def add_piece(self, kind: BlockKind, text: str, name: str = "") -> None:
        """A piece of the reply in progress: it continues the last block, or begins another."""
        last = self.blocks[-1] if self.blocks else None
        fresh = last is None or not last.key.startswith("live-") or last.kind != kind or bool(name)
        if fresh or last is None:
            self._push(Block(self._new_key("live"), kind, text, name=name, state="running"))
        else:
            self.blocks[-1] = msgspec.structs.replace(last, text=last.text + text)
        self.on_change(len(self.blocks) - 1)

    def drop_pieces(self) -> None:
        """Take away what was shown of a reply that is void now, or is stored."""
        start = len(self.blocks)
        while start and self.blocks[start - 1].key.startswith("live-"):
            start -= 1
        del self.blocks[start:]
        self._reindex()
        self.on_change(start)

    def end_pieces(self, state: BlockState) -> None:
        """The reply in progress will not be continued."""
        for position, block in enumerate(self.blocks):
            if block.state == "running":
                self.blocks[position] = msgspec.structs.replace(block, state=state)
        self._calls.clear()
        self.on_change(0)

    def add_message(self, message: Message, entry: str = "") -> None:
        """A message as it was stored; it takes the place of its pieces."""
        self.drop_pieces()
        start = len(self.blocks)
        self._add_body(message, entry)
        self.on_change(start)

    def finish_call(self, result: ToolResult) -> None:
        position = self._calls.pop(result.call_id, None)
        if position is not None:
            self._put_result(position, result)
            self.on_change(position)

    # --- entries ---------------------------------------------------------------------------------

    def _add_body(self, body: Body, entry: str) -> None:
        if isinstance(body, Message):
            if body.role == "model":
                self._add_reply(body, entry)
            elif not body.context:
                self._add_user(body, entry)
        elif (notice := _notice_of(body)) is not None:
            self._push(Block(f"{entry}:0", "notice", notice[0], entry, level=notice[1]))

    def _add_user(self, body: Message, entry: str) -> None:
        said = []
        for part in body.parts:
            if isinstance(part, ToolResult):
                position = self._calls.pop(part.call_id, None)
                if position is not None:
                    self._put_result(position, part)
                else:
                    self._results[part.call_id] = part
            elif isinstance(part, Text):
                said.append(part.text)
            elif isinstance(part, InlineData | FileRef | Unknown):
                said.append(describe_attachment(part))
        if said:
            self._push(Block(f"{entry or self._new_key('said')}:u", "user", "\n".join(said), entry))

    def _add_reply(self, body: Message, entry: str) -> None:
        state: BlockState = "interrupted" if body.finish in ("interrupted", "error") else "done"
        for number, part in enumerate(body.parts):
            key = f"{entry or self._new_key('reply')}:{number}"
            if isinstance(part, Text) and part.text.strip():
                self._push(Block(key, "reply", part.text, entry, state=state))
            elif isinstance(part, Thought) and (part.text or part.subject):
                text = f"**{part.subject}** {part.text}" if part.subject else part.text
                self._push(Block(key, "thought", text, entry))
            elif isinstance(part, ToolCall):
                self._calls[part.id] = len(self.blocks)
                self._push(
                    Block(
                        key, "tool", part.arguments, entry, part.name,
                        state="running", call_id=part.id,
                    )
                )  # fmt: skip

    def _put_result(self, position: int, result: ToolResult) -> None:
        text = "\n".join(
            part.text if isinstance(part, Text) else describe_attachment(part)
            for part in result.content
        )
        self.blocks[position] = msgspec.structs.replace(
            self.blocks[position],
            output=text,
            state="failed" if result.is_error else "done",
            seconds=result.duration,
        )

    def _settle_results(self, older: BlockList) -> None:
        """The last calls of an older page have their results on the page after it."""
        self._results |= older._results
        for call, position in older._calls.items():
            if (result := self._results.pop(call, None)) is not None:
                older._put_result(position, result)

    # --- positions -------------------------------------------------------------------------------

    def _push(self, block: Block) -> None:
        self._at[block.key] = len(self.blocks)
        self.blocks.append(block)

    def _reindex(self) -> None:
        self._at = {block.key: position for position, block in enumerate(self.blocks)}
        self._calls = {
            block.call_id: position
            for position, block in enumerate(self.blocks)
            if block.call_id and block.state == "running"
        }

    def _new_key(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}"


def _notice_of(body: Body) -> tuple[str, Level] | None:
    """What a person is told of an entry that is no message; None: nothing."""
    if isinstance(body, Note):
        return None if output_part(body) is not None else (body.text, body.level)
    if isinstance(body, Compaction):
        return describe_edit(body).split("\n", 1)[0], "info"
    if isinstance(body, Elide | Pin | Restore):
        return describe_edit(body), "info"
    return None
