"""Puts the pieces of a streamed reply together, in the order in which they came.

Neighbouring pieces of text are one part, and so are pieces of a thought. A call is a part of its
own from the moment it is first heard of, and its later pieces find it by the provider's own key.
What was assembled can be read at any time; pieces are joined when somebody asks: linear.
"""

from __future__ import annotations

from recollect.entries import Message, Part, Text, Thought, ToolCall, Usage, json_text


class _PartialText:
    """A part of text or thought in the making."""

    __slots__ = ("is_thought", "pieces", "signatures")

    def __init__(self, *, is_thought: bool) -> None:
        self.is_thought, self.pieces, self.signatures = is_thought, list[str](), list[str]()

    def part(self) -> Part | None:
        text, signature = "".join(self.pieces), "".join(self.signatures)
        if self.is_thought:
            return Thought(text=text, signature=signature) if text or signature else None
        return Text(text=text) if text else None


class PartialCall:
    """A call in the making."""

    __slots__ = ("id", "name", "pieces", "signature")

    def __init__(self, id_: str = "", name: str = "") -> None:
        self.id, self.name, self.pieces, self.signature = id_, name, list[str](), ""

    def part(self) -> Part:
        arguments = "".join(self.pieces) or "{}"
        return ToolCall(id=self.id, name=self.name, arguments=arguments, signature=self.signature)


class ReplyAssembly:
    """What there is of one reply."""

    def __init__(self) -> None:
        self.model = ""
        self.finish = ""
        self.unknown_finish = ""  # the provider's own word for an end that nobody here knows
        self.usage: Usage | None = None
        self._open: _PartialText | None = None  # may still grow
        self._parts: list[_PartialText | PartialCall | Part] = []
        self._calls: dict[object, PartialCall] = {}

    def text(self, text: str) -> None:
        words = self._open
        if words is None or words.is_thought:
            words = self._begin(is_thought=False)
        words.pieces.append(text)

    def thought(self, text: str) -> None:
        words = self._open
        if words is None or not words.is_thought:
            words = self._begin(is_thought=True)
        words.pieces.append(text)

    def sign(self, signature: str) -> None:
        """Of the thought that is open; one is begun where there is none."""
        words = self._open
        if words is None or not words.is_thought:
            words = self._begin(is_thought=True)
        words.signatures.append(signature)

    def end_part(self) -> None:
        """What comes next is a part of its own."""
        self._open = None

    def call(self, key: object) -> PartialCall:
        """The call of this key; a new one is put behind everything that has arrived."""
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

    @property
    def is_empty(self) -> bool:
        return not self.parts()

    def parts(self) -> tuple[Part, ...]:
        made = (p.part() if isinstance(p, _PartialText | PartialCall) else p for p in self._parts)
        return tuple(part for part in made if part is not None)

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

    def _begin(self, *, is_thought: bool) -> _PartialText:
        words = _PartialText(is_thought=is_thought)
        self._parts.append(words)
        self._open = words
        return words
