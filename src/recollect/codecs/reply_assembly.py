"""Joins the pieces of a reply, in the order in which they came.

Neighbouring pieces of text are one part, and so are pieces of a thought. A call is a part of its
own from its first piece on. The message can be read at any time; pieces are joined only then, so
the cost is linear. The deltas of what was added wait in `deltas` until a decoder takes them.
"""

from __future__ import annotations

from collections.abc import Iterable

from recollect.codecs.endings import FINISH_MESSAGE, FINISH_WORD, read_finish
from recollect.codecs.provider_errors import make_printable
from recollect.codecs.wire_protocol import Delta
from recollect.entries import Message, Part, Text, Thought, ToolCall, Usage, json_text
from recollect.errors import BadReply


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

    __slots__ = ("id", "name", "pieces")

    def __init__(self, id_: str = "", name: str = "") -> None:
        self.id, self.name, self.pieces = id_, name, list[str]()

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
        self.deltas: list[Delta] = []
        self._open: _PartialText | None = None  # may still grow
        self._parts: list[_PartialText | PartialCall | Part] = []

    def text(self, text: str) -> None:
        growing = self._open
        if growing is None or growing.is_thought:
            growing = self._begin(is_thought=False)
        growing.pieces.append(text)
        self.deltas.append(Delta("text", text))

    def thought(self, text: str) -> None:
        self._open_thought().pieces.append(text)
        self.deltas.append(Delta("thought", text))

    def sign(self, signature: str) -> None:
        """Sign the open thought; begin one if there is none."""
        self._open_thought().signatures.append(signature)

    def end_part(self) -> None:
        """The next text or thought is a part of its own."""
        self._open = None

    def extend_call(self, call: PartialCall, text: str, name: str = "") -> None:
        """Add to the arguments; `name` is for the call's first delta."""
        if text:
            call.pieces.append(text)
        self.deltas.append(Delta("call", text, name))

    def add(self, part: Part | PartialCall) -> None:
        """A part that came whole, or a call that begins."""
        self._parts.append(part)
        self._open = None

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
        return any(isinstance(part, PartialCall | ToolCall) for part in self._parts)

    def refuse_stray(self, lines: bytes) -> None:
        """Raise if lines outside the protocol came beside a call: a damaged event may be among
        them, and arguments without their middle may still be JSON."""
        if lines and self.has_calls:
            raise BadReply("a stream with lines that are no events beside a call")

    def end(self, provider: str, reason: str) -> None:
        """How the reply ended, in the provider's own word; empty if the end has not come."""
        self.finish, word = read_finish(provider, reason, has_calls=self.has_calls)
        self.finish_word = make_printable(word, 100)

    def message(self) -> Message:
        ending = {FINISH_WORD: self.finish_word, FINISH_MESSAGE: self.finish_message}
        said = {key: text for key, text in ending.items() if text}
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
        self._parts.append(growing)
        self._open = growing
        return growing


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
