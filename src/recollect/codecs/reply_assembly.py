"""Joins the pieces of a streamed reply, in the order in which they came.

Neighbouring pieces of text are one part, and so are pieces of a thought. A call is a part of its
own from its first piece on; its later pieces find it by the provider's own key. The message can be
read at any time; pieces are joined only then, so the cost is linear. A `StreamAssembly` also
collects the deltas to return.
"""

from __future__ import annotations

from recollect.codecs.wire_protocol import Delta
from recollect.entries import Message, Part, Text, Thought, ToolCall, Usage, json_text


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

    def __init__(self) -> None:
        self.id, self.name, self.pieces = "", "", list[str]()

    def part(self) -> Part:
        return ToolCall(id=self.id, name=self.name, arguments="".join(self.pieces) or "{}")


class ReplyAssembly:
    """One reply, as far as it has arrived."""

    def __init__(self) -> None:
        self.model = ""
        self.finish = ""
        self.unknown_finish = ""  # the provider's own word for an end that is unknown here
        self.usage: Usage | None = None
        self._open: _PartialText | None = None  # may still grow
        self._parts: list[_PartialText | PartialCall | Part] = []
        self._calls: dict[object, PartialCall] = {}

    def text(self, text: str) -> None:
        growing = self._open
        if growing is None or growing.is_thought:
            growing = self._begin(is_thought=False)
        growing.pieces.append(text)

    def thought(self, text: str) -> None:
        self._open_thought().pieces.append(text)

    def sign(self, signature: str) -> None:
        """Sign the open thought; begin one if there is none."""
        self._open_thought().signatures.append(signature)

    def end_part(self) -> None:
        """The next text or thought is a part of its own."""
        self._open = None

    def call(self, key: object) -> PartialCall:
        """The call of this key; a new one comes after everything that has arrived."""
        found = self._calls.get(key)
        if found is None:
            found = self._calls[key] = PartialCall()
            self._parts.append(found)
            self._open = None
        return found

    def add(self, part: Part) -> None:
        """A part that came whole."""
        self._parts.append(part)
        self._open = None

    @property
    def has_calls(self) -> bool:
        return bool(self._calls) or any(isinstance(part, ToolCall) for part in self._parts)

    def parts(self) -> tuple[Part, ...]:
        parts = (p.part() if isinstance(p, _PartialText | PartialCall) else p for p in self._parts)
        return tuple(part for part in parts if part is not None)

    def message(self) -> Message:
        extra = json_text({"finish_reason": self.unknown_finish}) if self.unknown_finish else ""
        return Message(
            role="model",
            parts=self.parts(),
            model=self.model,
            finish=self.finish,
            usage=self.usage,
            extra=extra,
        )

    def _open_thought(self) -> _PartialText:
        growing = self._open
        return growing if growing and growing.is_thought else self._begin(is_thought=True)

    def _begin(self, *, is_thought: bool) -> _PartialText:
        growing = _PartialText(is_thought=is_thought)
        self._parts.append(growing)
        self._open = growing
        return growing


class StreamAssembly(ReplyAssembly):
    """A reply, and its deltas that were not taken yet."""

    def __init__(self) -> None:
        super().__init__()
        self.deltas: list[Delta] = []

    def text(self, text: str) -> None:
        super().text(text)
        self.deltas.append(Delta("text", text))

    def thought(self, text: str) -> None:
        super().thought(text)
        self.deltas.append(Delta("thought", text))

    def extend_call(self, call: PartialCall, text: str, name: str = "") -> None:
        """Add to the arguments; `name` is for the call's first delta."""
        if text:
            call.pieces.append(text)
        self.deltas.append(Delta("call", text, name))

    def take_deltas(self) -> list[Delta]:
        deltas, self.deltas = self.deltas, []
        return deltas
