"""Takes thoughts out of the text of models that think in it, and switches such thinking off.

Guarantees of `ThinkTagSplitter`: `<think>…</think>` and `<thinking>…</thinking>`, in any case, are
thoughts; a missing closing tag makes the rest a thought, a lone closing tag before any other makes
everything before it a thought. Tags in inline code (closed on its line), in fenced code and in the
arguments of a call are text; a fence that a thought never closes hides no closing tag. Any chunking
gives the same pieces, in linear time. Text that was already shown may turn out to be a thought:
`pieces` is final.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from recollect.codecs.argument_text import ArgumentText
from recollect.codecs.provider_rules import ProviderRules
from recollect.codecs.wire_protocol import (
    DecodedRequest,
    Decoder,
    Delta,
    EncodedMessage,
    RequestFrame,
    RequestOptions,
    Wire,
)
from recollect.entries import Message, Part, Text, Thought

ThinkingOffText: TypeAlias = Literal["", "no_think_tag", "slash_no_think"]
NO_THINK_TAG = "<no_think>\n\n"  # before a user message, as in Gemini CLI's Qwen mode
SLASH_NO_THINK = " /no_think"  # after it: Qwen3's own soft switch

_TAGS = ("<think>", "</think>", "<thinking>", "</thinking>")
_TAG = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_RUN = 64  # backticks; a longer run counts as several
_TOKEN = re.compile(r"\n|`{1,64}|</?think(?:ing)?>", re.IGNORECASE)
_LEAD = 120  # characters that decide whether a line is a fence
_OPENING = re.compile(r"[ \t]*(?:(`{3,})[^`\n]*|(~{3,})[^\n]*)\n?")
_CLOSING = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t\r]*\n?")


class ThinkTagSplitter:
    """Splits text that arrives in chunks into pieces of text and of thought."""

    def __init__(self, *, starts_inside: bool = False) -> None:
        self._inside = starts_inside
        self._tagged = starts_inside  # if so, a lone closing tag is text
        self._carry = ""  # may be the beginning of a tag, or of a longer run of backticks
        self._lead = ""  # the beginning of the line
        self._span = 0  # backticks that opened inline code, if something closes it on this line
        self._held: list[str] | None = None  # from a tag in inline code to the end of the line
        self._fence = ""
        self._fences_count = True
        self._hidden = -1  # the piece with the first closing tag in this fence of a thought
        self._pieces: list[Delta] = []
        self._returned = 0
        self._arguments = ArgumentText()  # of the text outside thoughts and fences

    def feed(self, text: str) -> Sequence[Delta]:
        data = self._carry + text
        end = len(data) - _undecided_length(data)
        self._carry = data[end:]
        self._scan(data[:end])
        return self._take_new()

    def close(self) -> Sequence[Delta]:
        data, self._carry = self._carry, ""
        self._scan(data)
        self._end_line()
        found = self._take_new()
        if self._fence and self._hidden >= 0:
            self._reveal()
        return found

    def pieces(self) -> tuple[Delta, ...]:
        """Everything so far, neighbours of one kind joined."""
        runs: list[tuple[Literal["text", "thought"], list[str]]] = []
        for kind, text, _ in self._pieces:
            if runs and runs[-1][0] == kind:
                runs[-1][1].append(text)
            elif kind != "call":
                runs.append((kind, [text]))
        return tuple(Delta(kind, "".join(texts)) for kind, texts in runs)

    def _take_new(self) -> Sequence[Delta]:
        found, self._returned = self._pieces[self._returned :], len(self._pieces)
        return found

    def _scan(self, data: str) -> None:
        at = 0
        for match in _TOKEN.finditer(data):
            start, end = match.span()
            first = data[start]
            if first == "<" and not self._fence:
                self._emit(data[at:start])
                self._see_tag(data[start:end])
            elif first == "<":
                self._emit(data[at:start])
                if self._inside and self._hidden < 0 and data[start + 1] == "/":
                    self._hidden = len(self._pieces)
                self._emit(data[start:end])
            else:
                self._emit(data[at:end])
                if first == "\n":
                    self._end_line()
                elif not self._fence:
                    self._see_backticks(end - start)
            at = end
        self._emit(data[at:])

    def _emit(self, text: str) -> None:
        if not text:
            return
        if len(self._lead) < _LEAD:
            self._lead += text[:_LEAD]
        if self._held is not None:
            self._held.append(text)
        else:
            self._keep(text)

    def _keep(self, text: str) -> None:
        self._pieces.append(Delta("thought" if self._inside else "text", text))
        if not self._inside and not self._fence:
            self._arguments.add(text)

    def _see_backticks(self, count: int) -> None:
        if not self._span:
            self._span = count
        elif self._span == count:
            self._span = 0
            self._release()

    def _release(self) -> None:
        held, self._held = self._held, None
        if held:
            self._keep("".join(held))

    def _see_tag(self, tag: str) -> None:
        if self._span:  # code, or a stray backtick: the rest of the line decides
            if self._held is None:
                self._held = []
            self._emit(tag)
        else:
            self._apply_tag(tag)

    def _apply_tag(self, tag: str) -> None:
        closing = tag[1] == "/"
        if not self._inside and self._arguments.is_inside():
            self._emit(tag)
            return
        self._arguments.reset()
        if self._inside and closing:
            self._inside = False
        elif not self._inside and not closing:
            self._inside = self._tagged = True
        elif closing and not self._tagged:
            self._pieces = [Delta("thought", text) for _, text, _ in self._pieces]
            self._tagged = True
        elif closing or any(not text.isspace() for _, text, _ in self._pieces):
            self._emit(tag)

    def _end_line(self) -> None:
        lead, self._lead, self._span = self._lead, "", 0
        whole = len(lead) < _LEAD
        if self._fence:
            closing = _CLOSING.fullmatch(lead) if whole else None
            if closing and closing[1].startswith(self._fence):
                self._fence, self._hidden = "", -1
                self._arguments.reset()
            return
        opening = _OPENING.fullmatch(lead) if whole and self._fences_count else None
        if opening:
            self._fence = opening[1] or opening[2]
            self._release()
        elif self._held is not None:
            text, self._held = "".join(self._held), None
            at = 0
            for match in _TAG.finditer(text):
                self._emit(text[at : match.start()])
                self._apply_tag(match[0])
                at = match.end()
            self._emit(text[at:])
            self._lead = ""

    def _reveal(self) -> None:
        """The thought left its fence open: the tag hidden in the fence ended the thought."""
        text = "".join(piece.text for piece in self._pieces[self._hidden :])
        tag = _TAG.match(text)
        rest = ThinkTagSplitter()
        rest._tagged, rest._fences_count = True, False
        rest.feed(text[tag.end() if tag else 0 :])
        rest.close()
        self._pieces[self._hidden :] = rest._pieces


def _undecided_length(data: str) -> int:
    """How many characters at the end may be the beginning of a tag or of more backticks."""
    if data.endswith("`"):
        # runs are counted from their first backtick, in steps of `_RUN`
        return (len(data) - len(data.rstrip("`"))) % _RUN
    at = data.rfind("<", max(0, len(data) - len("</thinking>")))
    if at < 0:
        return 0
    tail = data[at:].lower()
    return len(tail) if any(tag != tail and tag.startswith(tail) for tag in _TAGS) else 0


def split_thoughts(message: Message, *, starts_inside: bool = False) -> Message:
    """The message with the thoughts in its text as parts of their own."""
    parts: list[Part] = []
    inside = starts_inside
    for part in message.parts:
        if not isinstance(part, Text):
            inside = inside and not isinstance(part, Thought)
            parts.append(part)
            continue
        splitter = ThinkTagSplitter(starts_inside=inside)
        splitter.feed(part.text)
        splitter.close()
        pieces = splitter.pieces()
        inside = False
        if len(pieces) == 1 and pieces[0].kind == "text" and pieces[0].text == part.text:
            parts.append(part)
        else:
            parts += _parts(pieces)
    return msgspec.structs.replace(message, parts=tuple(parts))


def _parts(pieces: Sequence[Delta]) -> Iterator[Part]:
    """Without the blank lines around the tags."""
    for number, piece in enumerate(pieces):
        if piece.kind == "thought":
            if text := piece.text.strip():
                yield Thought(text=text)
            continue
        text = piece.text.lstrip() if number else piece.text
        text = text.rstrip() if number + 1 < len(pieces) else text
        if text:
            yield Text(text=text)


class _ThinkTagsDecoder:
    """Splits the text that another decoder returns."""

    def __init__(self, inner: Decoder, *, starts_inside: bool) -> None:
        self._inner, self._starts_inside = inner, starts_inside
        self._splitter = ThinkTagSplitter(starts_inside=starts_inside)

    def feed(self, data: bytes) -> Sequence[Delta]:
        return self._split(self._inner.feed(data))

    def close(self) -> Sequence[Delta]:
        return [*self._split(self._inner.close()), *self._splitter.close()]

    def message(self) -> Message:
        return split_thoughts(self._inner.message(), starts_inside=self._starts_inside)

    def _split(self, deltas: Sequence[Delta]) -> list[Delta]:
        found: list[Delta] = []
        for delta in deltas:
            if delta.kind == "text":
                found += self._splitter.feed(delta.text)
            elif delta.text or delta.name:
                found += self._splitter.close()
                self._splitter = ThinkTagSplitter()
                found.append(delta)
        return found


class ThinkTagsWire(msgspec.Struct, frozen=True, kw_only=True):
    """A wire for a model that thinks in its text. `off` applies the model's own switch; it is a
    field and not an option, so that a message is always encoded the same way."""

    wire: Wire
    switch: ThinkingOffText = ""
    off: bool = False
    starts_inside: bool = False  # the model's chat template opens the thought

    @property
    def name(self) -> str:
        return self.wire.name

    @property
    def rules(self) -> ProviderRules:
        return self.wire.rules

    def encode_options(self, options: RequestOptions, system: Sequence[Message]) -> RequestFrame:
        return self.wire.encode_options(options, system)

    def encode_message(self, message: Message) -> EncodedMessage:
        return self.wire.encode_message(self._change_text(message, self._add_switch))

    def decode_request(self, body: bytes) -> DecodedRequest:
        request = self.wire.decode_request(body)
        messages = (self._change_text(m, self._remove_switch) for m in request.messages)
        return request._replace(messages=tuple(messages))

    def stream_decoder(self) -> Decoder:
        return _ThinkTagsDecoder(self.wire.stream_decoder(), starts_inside=self._begins_inside)

    def decode_reply(self, body: bytes) -> Message:
        return split_thoughts(self.wire.decode_reply(body), starts_inside=self._begins_inside)

    def encode_reply(self, reply: Message) -> bytes:
        return self.wire.encode_reply(_render_thoughts(reply))

    def encode_stream(self, reply: Message) -> Iterator[bytes]:
        return self.wire.encode_stream(_render_thoughts(reply))

    @property
    def _begins_inside(self) -> bool:
        return self.starts_inside and not self.off

    def _add_switch(self, text: str) -> str:
        return NO_THINK_TAG + text if self.switch == "no_think_tag" else text + SLASH_NO_THINK

    def _remove_switch(self, text: str) -> str:
        if self.switch == "no_think_tag":
            return text.removeprefix(NO_THINK_TAG)
        return text.removesuffix(SLASH_NO_THINK)

    def _change_text(self, message: Message, change: Callable[[str], str]) -> Message:
        """Change the text of a user message that carries the switch, if the switch is on."""
        parts, which = list(message.parts), 0 if self.switch == "no_think_tag" else -1
        texts = [n for n, part in enumerate(parts) if isinstance(part, Text)]
        if not self.off or not self.switch or message.role != "user" or not texts:
            return message
        part = parts[texts[which]]
        assert isinstance(part, Text)
        parts[texts[which]] = msgspec.structs.replace(part, text=change(part.text))
        return msgspec.structs.replace(message, parts=tuple(parts))


def _render_thoughts(reply: Message) -> Message:
    """As the model itself would write it: thoughts between tags, in one text."""
    parts: list[Part] = []
    for original in reply.parts:
        part = original
        if isinstance(original, Thought):
            part = Text(text=f"<think>\n{original.text}\n</think>\n\n")
        last = parts[-1] if parts else None
        if isinstance(part, Text) and isinstance(last, Text):
            parts[-1] = Text(text=last.text + part.text)
        else:
            parts.append(part)
    return msgspec.structs.replace(reply, parts=tuple(parts))
