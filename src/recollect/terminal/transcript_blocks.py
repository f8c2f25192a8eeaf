"""The blocks of a conversation in order, folded from stored entries and, until these are there,
from the events of a run.

A stored entry takes the place of what was shown of it while it arrived. So a session that is opened
again shows what was there when it ran, except for notices that are in no log. Whoever shows the
blocks is told what changed; blocks never change by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from recollect.entries import Entry, Message, ToolResult
from recollect.terminal.block import Block, BlockKind, BlockState, Level, bound_text
from recollect.terminal.command_words import say_here
from recollect.terminal.entry_blocks import (
    CUT_OFF,
    elision_block,
    notice_block,
    reply_blocks,
    user_block,
    with_result,
)
from recollect.workspace.sent_files import Attachable, SentFile

__all__ = ["Block", "BlockKind", "BlockList", "BlockState", "GrowingText", "Level"]


class BlockListener(Protocol):
    """Who shows the blocks. Positions are those after the change."""

    def blocks_replaced(self, start: int) -> None:
        """Blocks from here on are new."""

    def blocks_prepended(self, count: int) -> None: ...

    def block_changed(self, position: int) -> None: ...

    def text_grew(self) -> None:
        """`growing` has more."""


class _NoListener:
    def blocks_replaced(self, start: int) -> None: ...

    def blocks_prepended(self, count: int) -> None: ...

    def block_changed(self, position: int) -> None: ...

    def text_grew(self) -> None: ...


class GrowingText:
    """The text of the last block while it arrives: pieces, put together only once."""

    def __init__(self, key: str) -> None:
        self.key, self.pieces, self.size = key, list[str](), 0

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.size += len(text)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class BlockList:
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.listener: BlockListener = _NoListener()
        self.growing: GrowingText | None = None  # of the last block
        self.first = 0  # number of the first block; older ones have lower numbers
        self._reply = ""  # the entry that the reply in progress will be
        self._live: list[str] = []  # keys of blocks that entries will take the place of
        self._said: list[str] = []  # keys of prompts that are not stored yet
        self._calls: dict[str, int] = {}  # numbers of calls, by call id, until the result is stored
        self._results: dict[str, tuple[ToolResult, str]] = {}  # whose calls are on an older page
        self._count = 0

    def clear(self) -> None:
        self._reset()
        self.listener.blocks_replaced(0)

    def _reset(self) -> None:
        self.blocks.clear()
        self._live.clear()
        self._said.clear()
        self._calls.clear()
        self._results.clear()
        self.growing = None

    def position(self, key: str) -> int | None:
        """Where the block with this key is; near the end it is found soonest."""
        for position in range(len(self.blocks) - 1, -1, -1):
            if self.blocks[position].key == key:
                return position
        return None

    def find(self, entry: str, calls: tuple[str, ...] = ()) -> int | None:
        """The number of the block that shows an entry, or its result; of several the one of one of
        these calls, else the first."""
        numbers = [
            number
            for number, block in enumerate(self.blocks, self.first)
            if entry in (block.entry, block.result)
        ]
        of_calls = (n for n in numbers if self.blocks[n - self.first].call_id in calls)
        return next(of_calls, numbers[0] if numbers else None)

    # --- entries ---------------------------------------------------------------------------------

    def add_entries(self, entries: Iterable[Entry]) -> None:
        """Entries of the path, after those that are shown."""
        for entry in entries:
            self._add_entry(entry)

    def prepend_entries(self, entries: Iterable[Entry]) -> int:
        """Older entries, before those that are shown; the number of blocks they became."""
        older = BlockList()
        older.add_entries(entries)
        self._settle_results(older)
        older.end_pieces("interrupted")  # a call whose result is on no newer page will have none
        self.blocks[:0] = older.blocks
        self.first -= len(older.blocks)
        self.listener.blocks_prepended(len(older.blocks))
        return len(older.blocks)

    def reload(self, entries: Iterable[Entry], newer: int) -> bool:
        """Show the newest entries of a path that changed; what stays the same is left alone, and
        so are the blocks from number `newer` on, which came since.

        Whether older blocks are still those of the path; if not, only these entries are shown.
        """
        fresh = BlockList()
        fresh.add_entries(entries)
        fresh.end_pieces("interrupted")
        # a group of elisions may have begun on the page before: where the page begins is told by
        # the first block of another kind
        lead = next((n for n, block in enumerate(fresh.blocks) if not block.elided), 0)
        start = self.position(fresh.blocks[lead].key) if fresh.blocks else None
        end = max(0, newer - self.first)
        if start is None:
            self._take_over(fresh, 0, 0, end)
            return False
        del fresh.blocks[:lead]
        fresh.first += lead
        both = zip(self.blocks[start:end], fresh.blocks, strict=False)
        same = next((n for n, (old, new) in enumerate(both) if old != new), None)
        if same is None:
            same = min(end - start, len(fresh.blocks))
        self._take_over(fresh, start, same, end)
        return True

    def _take_over(self, fresh: BlockList, start: int, same: int, end: int) -> None:
        """Put the blocks of `fresh` between those before `start` and those from `end` on."""
        if not start:
            self._results = dict(fresh._results)
        if start + same == end and same == len(fresh.blocks):
            return
        shift = self.first + start - fresh.first
        moved = start + len(fresh.blocks) - end
        limit = self.first + end
        later = {call: n + moved for call, n in self._calls.items() if n >= limit}
        self._calls = {call: n + shift for call, n in fresh._calls.items()} | later
        self.blocks[start + same : end] = fresh.blocks[same:]
        self.listener.blocks_replaced(start + same)

    def _add_entry(self, entry: Entry) -> None:
        body = entry.body
        if isinstance(body, Message):
            if body.role == "model":
                self._put_reply([*reply_blocks(body, entry.id)])
            elif not body.context:
                self._add_user(body, entry.id)
        elif (notice := notice_block(body, entry.id)) is not None:
            last = self.blocks[-1] if self.blocks else None
            if notice.elided and last is not None and last.elided:
                together = (*last.elided, *notice.elided)
                self._change(len(self.blocks) - 1, elision_block(last.key, last.entry, together))
            elif notice.level != "info" and _is_about(last, CUT_OFF):
                self._change(len(self.blocks) - 1, notice)  # says the same, with a remedy
            else:
                self._push(notice)

    def _add_user(self, body: Message, entry: str) -> None:
        for part in body.parts:
            if isinstance(part, ToolResult) and not self._put_result(part, entry):
                self._results[part.call_id] = part, entry
        block = user_block(body, entry)
        if block is None:
            return
        position = self.position(self._said.pop(0)) if self._said else None
        if position is None:
            self._push(block)
        else:
            self._change(position, block)

    def _put_reply(self, blocks: list[Block]) -> None:
        """The reply as it was stored, in the place of what was shown of it."""
        start = self._take_live()
        after = self.blocks[start:]  # notices that came while the reply did
        del self.blocks[start:]
        for block in blocks:
            if block.call_id:
                self._calls[block.call_id] = self.first + len(self.blocks)
            self.blocks.append(block)
        self.blocks += after
        self.listener.blocks_replaced(start)

    def _put_result(self, result: ToolResult, entry: str = "") -> bool:
        number = self._calls.get(result.call_id)
        if number is None:
            return False
        if entry:
            del self._calls[result.call_id]
        position = number - self.first
        self._change(position, with_result(self.blocks[position], result, entry))
        return True

    def _settle_results(self, older: BlockList) -> None:
        """The last calls of an older page have their results on the page after it."""
        for call, (result, entry) in [*self._results.items()]:
            if older._put_result(result, entry):
                del self._results[call]
        self._results |= older._results

    # --- while it runs ---------------------------------------------------------------------------

    def add_notice(self, text: str, level: Level = "info", about: str = "") -> None:
        """A line that is in no log. It takes the place of the last block if that is a notice about
        the same."""
        kept, omitted = bound_text(say_here(text))
        key = self._new_key("notice")
        block = Block(key, "notice", kept, name=about, level=level, omitted=omitted)
        if about and _is_about(self.blocks[-1] if self.blocks else None, about):
            self._change(len(self.blocks) - 1, block)
        else:
            self._push(block)

    def add_said(self, text: str, attachments: Iterable[Attachable] = ()) -> None:
        """What the user has just sent."""
        files = (one.label if isinstance(one, SentFile) else str(one) for one in attachments)
        kept, omitted = bound_text("\n".join([text, *(f"[{file}]" for file in files)]))
        block = Block(self._new_key("said"), "user", kept, omitted=omitted)
        self._said.append(block.key)
        self._push(block)

    def drop_said(self) -> None:
        """What was sent last is not stored, and goes back to the user."""
        position = self.position(self._said.pop()) if self._said else None
        if position is not None:
            del self.blocks[position]
            self.listener.blocks_replaced(position)

    def begin_reply(self, entry: str) -> None:
        """The next pieces belong to this entry, which will be stored."""
        self._reply = entry

    def add_piece(self, kind: BlockKind, text: str, name: str = "") -> None:
        """A piece of the reply in progress: it continues the last block, or begins another."""
        last = self.blocks[-1] if self.blocks else None
        growing = self.growing
        if growing is None or last is None or last.key != growing.key or last.kind != kind or name:
            self._settle_growing()
            key = f"{self._reply or 'live'}:{len(self._live)}"
            self._live.append(key)
            self.growing = GrowingText(key)
            self.growing.add(text)
            self._push(Block(key, kind, "", name=name, state="running"))
        else:
            growing.add(text)
            self.listener.text_grew()

    def show_output(self, text: str) -> None:
        """What a command of the user's own has written so far; it goes with the pieces."""
        kept, omitted = bound_text(text)
        position = self.position(self._live[-1]) if self._live else None
        if position is None:
            self._live.append(self._new_key("output"))
            self._push(Block(self._live[-1], "notice", kept, omitted=omitted))
        else:
            block = msgspec.structs.replace(self.blocks[position], text=kept, omitted=omitted)
            self._change(position, block)

    def drop_pieces(self) -> None:
        """Take away what was shown of a reply that is void now."""
        if self._live:
            start = self._take_live()
            self.listener.blocks_replaced(start)

    def finish_call(self, result: ToolResult) -> None:
        """Show a result, which will be stored with its message."""
        self._put_result(result)

    def end_pieces(self, state: BlockState) -> None:
        """The reply in progress will not be continued, and no call is running."""
        self._settle_growing()
        live, self._live = self._live, []
        ended = [number - self.first for number in self._calls.values()]
        ended += [at for key in live if (at := self.position(key)) is not None]
        for position in ended:
            block = self.blocks[position]
            if block.state == "running" or block.kind == "reply":
                self._change(position, msgspec.structs.replace(block, state=state))

    def _settle_growing(self) -> None:
        """Keep what has grown as the block's text."""
        growing, self.growing = self.growing, None
        position = None if growing is None else self.position(growing.key)
        if growing is not None and position is not None:
            block = self.blocks[position]
            text, omitted = bound_text(growing.text)
            changed = msgspec.structs.replace(block, text=text, omitted=omitted)
            if block.kind != "tool":
                changed = msgspec.structs.replace(changed, state="done")
            self._change(position, changed)

    def _take_live(self) -> int:
        """Take out the blocks of the reply in progress; the position where they began."""
        self.growing = None
        if not self._live:
            return len(self.blocks)
        live, start = set(self._live), len(self.blocks)
        self._live.clear()
        position = len(self.blocks) - 1
        while live and position >= 0:
            if self.blocks[position].key in live:
                live.discard(self.blocks[position].key)
                del self.blocks[position]
                start = position
            position -= 1
        return start

    # --- positions -------------------------------------------------------------------------------

    def _push(self, block: Block) -> None:
        self.blocks.append(block)
        self.listener.blocks_replaced(len(self.blocks) - 1)

    def _change(self, position: int, block: Block) -> None:
        self.blocks[position] = block
        self.listener.block_changed(position)

    def _new_key(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}"


def _is_about(block: Block | None, what: str) -> bool:
    return block is not None and (block.kind, block.name) == ("notice", what)
