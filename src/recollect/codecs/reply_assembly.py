"""Joins the pieces of a reply, in the order in which they came.

Neighbouring pieces of text are one part, and so are pieces of a thought. A call is a part of its
own from its first piece on. The message can be read at any time. The cost is linear, and memory is
bounded: very many pieces are joined on the way, and a reply beyond `reply_limits` is refused. The
deltas of what was added wait in `deltas` until a decoder takes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from recollect.codecs.endings import FINISH_MESSAGE, FINISH_WORD, read_finish
from recollect.codecs.provider_errors import make_printable
from recollect.codecs.reply_limits import (
    MAX_ARGUMENTS,
    MAX_CALLS,
    MAX_CONTENT,
    MAX_PARTS,
    MAX_TEXT,
    refuse,
)
from recollect.codecs.wire_protocol import Delta
from recollect.entries import (
    InlineData,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    Unknown,
    Usage,
    json_text,
)
from recollect.errors import BadReply

AUTOMATIC_CALLS = "automatic_calls"  # a key of a reply's `extra`, until they are messages
_CALL_NAMES = (b"partial_json", b"arguments", b"functionCall", b"tool_calls", b"content_block")
_PIECE = 50  # bytes that a piece takes beside its text
_MANY = 8_192  # pieces that wait to be joined


def _join_many(pieces: list[str]) -> None:
    if len(pieces) > _MANY:
        pieces[:] = ["".join(pieces)]


def _content_of(part: Part) -> tuple[str | bytes, ...]:
    match part:
        case Text():
            return (part.text,)
        case Thought():
            return (part.text, part.signature)
        case ToolCall():
            return (part.arguments, part.signature)
        case InlineData() | Unknown():
            return (part.data,)
        case _:
            return ()


def _is_ascii(content: str | bytes) -> bool:
    return isinstance(content, bytes) or content.isascii()


class _PartialText:
    """A text or a thought that may still grow."""

    __slots__ = ("is_thought", "pieces", "signatures")

    def __init__(self, *, is_thought: bool) -> None:
        self.is_thought, self.pieces, self.signatures = is_thought, list[str](), list[str]()

    def part(self) -> Part | None:
        text, signature = "".join(self.pieces), "".join(self.signatures)
        if self.is_thought:
            return Thought(text=text, signature=signature) if text or signature else None
        return Text(text=text) if text else None


class PartialCall:
    """A call that may still grow."""

    __slots__ = ("id", "name", "pieces", "size")

    def __init__(self, id_: str = "", name: str = "") -> None:
        self.id, self.name, self.pieces = id_, name, list[str]()
        self.size = 0  # characters of its arguments

    def part(self) -> Part:
        return ToolCall(id=self.id, name=self.name, arguments="".join(self.pieces) or "{}")


class ReplyAssembly:
    """One reply, as far as it has arrived."""

    def __init__(self) -> None:
        self.model = ""
        self.finish = ""
        self.finish_word = ""  # the provider's own word for the end, where ours says less
        self.finish_message = ""  # what the provider said about the end
        self.usage: Usage | None = None
        self.automatic_calls = ""  # that the server ran, with their results: JSON
        self.deltas: list[Delta] = []
        self._open: _PartialText | None = None  # may still grow
        self._pieces = 0  # of calls, in the event that is being read
        self._parts: list[_PartialText | PartialCall | Part] = []
        self._calls = 0
        self._text_size = self._size = 0  # characters of texts and thoughts, and of everything
        self._is_ascii = True

    def text(self, text: str) -> None:
        self._count_text(text)
        growing = self._open
        if growing is None or growing.is_thought:
            growing = self._begin(is_thought=False)
        growing.pieces.append(text)
        _join_many(growing.pieces)
        self.deltas.append(Delta("text", text))

    def thought(self, text: str) -> None:
        self._count_text(text)
        growing = self._open_thought()
        growing.pieces.append(text)
        _join_many(growing.pieces)
        self.deltas.append(Delta("thought", text))

    def sign(self, signature: str) -> None:
        """Sign the open thought; begin one if there is none."""
        self.count(signature)
        growing = self._open_thought()
        growing.signatures.append(signature)
        _join_many(growing.signatures)

    def count(self, *content: str | bytes, pieces: int = 0) -> None:
        """What else the reply holds; raises `BadReply` if it is too much."""
        self._size += sum(map(len, content)) + pieces * _PIECE
        self._is_ascii = self._is_ascii and all(map(_is_ascii, content))
        for size, limit in ((self._size, MAX_CONTENT), (self._text_size, MAX_TEXT)):
            if size > (limit if self._is_ascii else limit // 2):
                raise refuse(limit if self._is_ascii else limit // 2, "characters")

    def _count_text(self, text: str) -> None:
        self._text_size += len(text)
        self.count(text)

    def end_part(self) -> None:
        """The next text or thought is a part of its own."""
        self._open = None

    def extend_call(self, call: PartialCall, text: str, name: str = "") -> None:
        """Add to the arguments; `name` is for the call's first delta."""
        call.size += len(text)
        if call.size > MAX_ARGUMENTS:
            raise refuse(MAX_ARGUMENTS, "characters of arguments in one call")
        self.count(text)
        if text:
            self._pieces += 1
            call.pieces.append(text)
            _join_many(call.pieces)
        self.deltas.append(Delta("call", text, name))

    def skip_pieces(self, number: int = 1) -> None:
        """Pieces were read that belong to no call of ours."""
        self._pieces += number

    def add(self, part: Part | PartialCall) -> None:
        """A part that came whole, or a call that begins."""
        if isinstance(part, PartialCall | ToolCall):
            self._calls += 1
            if self._calls > MAX_CALLS:
                raise refuse(MAX_CALLS, "calls")
        if isinstance(part, Text | Thought):
            self._text_size += len(part.text)
        if isinstance(part, ToolCall) and len(part.arguments) > MAX_ARGUMENTS:
            raise refuse(MAX_ARGUMENTS, "characters of arguments in one call")
        if not isinstance(part, PartialCall):
            self.count(*_content_of(part))
        self._append(part)
        self._open = None

    def restart(self, parts: Iterable[Part]) -> None:
        """Go on with these parts of what came; the limits still count the others."""
        self._parts, self._open, self._calls = [], None, 0
        for part in parts:
            self.add(part)

    def _append(self, part: _PartialText | PartialCall | Part) -> None:
        if len(self._parts) >= MAX_PARTS:
            raise refuse(MAX_PARTS, "parts")
        self._parts.append(part)

    def add_shown(self, part: Part) -> None:
        """A part that came whole, with its delta."""
        self.add(part)
        if isinstance(part, Text):
            self.deltas.append(Delta("text", part.text))
        elif isinstance(part, Thought) and part.text:
            self.deltas.append(Delta("thought", part.text))
        elif isinstance(part, ToolCall):
            self.deltas.append(Delta("call", part.arguments, part.name))

    def take_deltas(self) -> list[Delta]:
        deltas, self.deltas = self.deltas, []
        return deltas

    @property
    def has_calls(self) -> bool:
        return self._calls > 0

    def check_pieces(self, data: bytes, field: str) -> None:
        """Raise if an event beside a call has a piece, in a field of this name, that was not read:
        a damaged name around it hides it, and arguments without their middle may still be JSON."""
        pieces, self._pieces = self._pieces, 0
        if self.has_calls and field.encode() in data:
            written = re.findall(rf'"{field}"\s*+:\s*+(?!null|"")'.encode(), data)
            if len(written) > pieces or not _is_utf8(data):
                raise BadReply("a damaged piece of a call", is_damage=True)

    def refuse_stray(self, lines: bytes) -> None:
        """Raise if a damaged event with a piece of a call is among lines outside the protocol:
        arguments without their middle may still be JSON."""
        if self.has_calls and any(name in lines for name in _CALL_NAMES):
            raise BadReply("lines that are no events beside a call", is_damage=True)

    def end(self, provider: str, reason: str) -> None:
        """How the reply ended, in the provider's own word; empty if the end has not come."""
        self.finish, word = read_finish(provider, reason, has_calls=self.has_calls)
        self.finish_word = make_printable(word, 100)

    def message(self) -> Message:
        ending = {FINISH_WORD: self.finish_word, FINISH_MESSAGE: self.finish_message}
        said = {key: text for key, text in ending.items() if text}
        if self.automatic_calls:
            said[AUTOMATIC_CALLS] = self.automatic_calls
        parts = (p.part() if isinstance(p, _PartialText | PartialCall) else p for p in self._parts)
        return Message(
            role="model",
            parts=tuple(part for part in parts if part is not None),
            model=self.model,
            finish=self.finish,
            usage=self.usage,
            extra=json_text(said) if said else "",
        )

    def _open_thought(self) -> _PartialText:
        growing = self._open
        return growing if growing and growing.is_thought else self._begin(is_thought=True)

    def _begin(self, *, is_thought: bool) -> _PartialText:
        growing = _PartialText(is_thought=is_thought)
        self._append(growing)
        self._open = growing
        return growing


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class CallIds:
    """Gives every call of a reply an id of its own: one without gets one by its position."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}  # of each stem, the last one: none is tried twice
        self._calls = 0

    def assign(self, wanted: str) -> str:
        self._calls += 1
        stem, id_ = wanted or "call", wanted or f"call-{self._calls}"
        number = self._numbers.get(stem, 1 if wanted else self._calls)
        while id_ in self._taken:
            number += 1
            id_ = f"{stem}-{number}"
            self._numbers[stem] = number
        self._taken.add(id_)
        return id_
