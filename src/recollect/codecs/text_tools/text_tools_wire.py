"""Tools over any wire, for models without native tool calls.

`TextToolsWire` describes the tools in the instructions, writes calls and results as text and finds
the calls in the model's text. A message is encoded the same way whatever is around it. A call that
could not be parsed stays text and is noted in the reply's `extra`; `call_problem_feedback` makes it
a message for the model. Only the model's replies are searched for calls, never anybody else's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from recollect.codecs.call_problems import PROBLEMS
from recollect.codecs.foreign_json import parse_object
from recollect.codecs.provider_rules import TEXT_RULES, ProviderRules
from recollect.codecs.reply_assembly import CallIds
from recollect.codecs.reply_limits import MAX_TOOL_TEXT, refuse
from recollect.codecs.text_tools.argument_coercion import DeclaredTools
from recollect.codecs.text_tools.call_buffer import MAX_PROBLEMS
from recollect.codecs.text_tools.call_rendering import parse_messages, render_message
from recollect.codecs.text_tools.call_scanner import CallScanner
from recollect.codecs.text_tools.lenient_json import parse_strict
from recollect.codecs.text_tools.missed_calls import find_missed_call
from recollect.codecs.text_tools.tool_instructions import (
    build_call_schema,
    detect_choice,
    write_tool_instructions,
)
from recollect.codecs.wire_protocol import (
    Declaration,
    DecodedRequest,
    Decoder,
    Delta,
    EncodedMessage,
    RequestFrame,
    RequestOptions,
    Wire,
)
from recollect.entries import Message, Part, Text, ToolCall, json_text

# How models begin a result that they make up: our own first line, and what they saw elsewhere.
_MADE_UP_RESULT = re.compile(
    r"^[ \t]{0,40}(?:\[(?:result of|error from) |\[tool[ _](?:result|output|response)"
    r"|tool[ _](?:result|output|response)s?[^\n:]{0,60}:"
    r"|<tool_(?:response|result|output)|<function_(?:response|result)|```tool_(?:output|response)"
    r"|(?:\*\*)?(?:result|output|observation|response)s?:)",
    re.IGNORECASE | re.MULTILINE,
)


class TextToolsWire(msgspec.Struct, frozen=True, kw_only=True):
    wire: Wire
    tools: tuple[Declaration, ...]
    preserve_context: bool = True  # keep the model's text beside its calls
    root: str = ""  # makes relative paths absolute, where a tool expects absolute ones

    @property
    def name(self) -> str:
        return self.wire.name

    @property
    def rules(self) -> ProviderRules:
        inner = self.wire.rules
        return replace(
            TEXT_RULES, provider=inner.provider, model=inner.model, blank_text=inner.blank_text
        )

    def encode_options(self, options: RequestOptions, system: Sequence[Message]) -> RequestFrame:
        text = write_tool_instructions(self.tools, options.tool_choice) if self.tools else ""
        inner = self._inner_options(options)
        if not text:
            return self.wire.encode_options(inner, system)
        if self.rules.provider != "gemini":
            instructions = Message(role="system", parts=(Text(text=text),))
            return self.wire.encode_options(inner, (*system, instructions))
        frame = self.wire.encode_options(inner, system)
        first = self.wire.encode_message(Message(role="user", parts=(Text(text=text),)))
        before = frame.before + (b"," if frame.opened else b"") + first.data
        return RequestFrame(before, frame.after, opened=True, fixes=frame.fixes + first.fixes)

    def encode_message(self, message: Message) -> EncodedMessage:
        rendered, fixes = render_message(message)
        encoded = self.wire.encode_message(rendered)
        return EncodedMessage(encoded.data, fixes + encoded.fixes)

    def decode_request(self, body: bytes) -> DecodedRequest:
        options, messages = self.wire.decode_request(body)
        choice, messages = self._take_instructions(messages)
        if choice is not None:
            options = replace(options, tools=self.tools, tool_choice=choice)
            schema = options.generation.schema
            if choice not in ("auto", "none") and _is_same_json(
                schema, build_call_schema(self.tools, choice)
            ):
                options = replace(options, generation=replace(options.generation, schema=""))
        return DecodedRequest(options, parse_messages(messages))

    def stream_decoder(self) -> Decoder:
        return _TextToolsDecoder(self, self.wire.stream_decoder())

    def decode_reply(self, body: bytes) -> Message:
        return self.find_calls(self.wire.decode_reply(body))

    def encode_reply(self, reply: Message) -> bytes:
        return self.wire.encode_reply(_render_reply(reply))

    def encode_stream(self, reply: Message) -> Iterator[bytes]:
        return self.wire.encode_stream(_render_reply(reply))

    def find_calls(self, reply: Message) -> Message:
        """The model's reply with the calls in its text as parts of their own."""
        if not self.tools:
            return reply
        cut = _is_cut(reply)
        tools = DeclaredTools(self.tools, self.root)
        found: list[Part] = []
        problems: list[str] = []
        for number, part in enumerate(reply.parts, 1):
            if not isinstance(part, Text):
                found.append(part)
                continue
            _check_size(len(part.text), is_ascii=part.text.isascii())
            scanner = CallScanner(tools)
            # a call that something else interrupts, such as a thought, was not completed
            interrupted = number < len(reply.parts)
            pieces = [*scanner.feed(part.text), *scanner.close(cut=cut or interrupted)]
            problems += scanner.problems
            if len(pieces) == 1 and pieces[0].kind == "text":
                found.append(part)
            else:
                found += _parts(pieces)
        if not problems and not any(isinstance(part, ToolCall) for part in found):
            texts = (part.text for part in reply.parts if isinstance(part, Text))
            problems += filter(None, map(find_missed_call, texts))
        return self._finish(reply, found, problems)

    def _finish(self, reply: Message, parts: list[Part], problems: list[str]) -> Message:
        made = [n for n, part in enumerate(parts) if isinstance(part, ToolCall)]
        finish = reply.finish
        if made:
            finish = "calls" if finish in ("stop", "malformed_call", "other") else finish
            parts = [*parts[: made[-1] + 1], *_drop_made_up_results(parts[made[-1] + 1 :])]
            if not self.preserve_context:
                parts = [part for part in parts if not isinstance(part, Text)]
        extra = reply.extra
        if problems:
            listed = problems[:MAX_PROBLEMS]
            extra = json_text({**(parse_object(extra) or {}), PROBLEMS: listed})
        return replace(reply, parts=_assign_ids(parts), finish=finish, extra=extra)

    def _inner_options(self, options: RequestOptions) -> RequestOptions:
        """For the inner wire: no tools, and a schema where a call is demanded and can be forced."""
        generation = options.generation
        chosen = options.tool_choice == "required" or any(
            t.name == options.tool_choice for t in self.tools
        )
        if self.tools and chosen and self.rules.provider == "openai" and not generation.schema:
            # llama.cpp, vLLM and others enforce it token by token
            generation = replace(
                generation, schema=build_call_schema(self.tools, options.tool_choice)
            )
        return replace(options, tools=(), tool_choice="auto", generation=generation)

    def _take_instructions(
        self, messages: tuple[Message, ...]
    ) -> tuple[str | None, tuple[Message, ...]]:
        if not self.tools:
            return None, messages
        for number, message in enumerate(messages):
            for position, part in enumerate(message.parts):
                choice = detect_choice(part.text, self.tools) if isinstance(part, Text) else None
                if choice is not None:
                    rest = message.parts[:position] + message.parts[position + 1 :]
                    kept = (replace(message, parts=rest),) if rest else ()
                    return choice, (*messages[:number], *kept, *messages[number + 1 :])
            if message.role != "system":
                break
        return None, messages


class _TextToolsDecoder:
    """Finds the calls in the text that another decoder returns."""

    def __init__(self, wire: TextToolsWire, inner: Decoder) -> None:
        self._wire, self._inner = wire, inner
        self._tools = DeclaredTools(wire.tools, wire.root)
        self._scanner = CallScanner(self._tools)
        self._size, self._is_ascii = 0, True

    def feed(self, data: bytes) -> Sequence[Delta]:
        return self._scan(self._inner.feed(data))

    def close(self) -> Sequence[Delta]:
        deltas = self._scan(self._inner.close())
        return [*deltas, *self._scanner.close(cut=_is_cut(self._inner.message()))]

    def message(self) -> Message:
        return self._wire.find_calls(self._inner.message())

    def _scan(self, deltas: Sequence[Delta]) -> list[Delta]:
        found: list[Delta] = []
        for delta in deltas:
            if delta.kind == "text" and self._wire.tools:
                self._size += len(delta.text)
                self._is_ascii = self._is_ascii and delta.text.isascii()
                _check_size(self._size, is_ascii=self._is_ascii)
                found += self._scanner.feed(delta.text)
            elif delta.kind == "text":
                found.append(delta)
            else:
                found += self._scanner.close(cut=True)
                self._scanner = CallScanner(self._tools)
                found.append(delta)
        return found


def _check_size(size: int, *, is_ascii: bool) -> None:
    limit = MAX_TOOL_TEXT if is_ascii else MAX_TOOL_TEXT // 2
    if size > limit:
        raise refuse(limit, "characters")


def _is_cut(reply: Message) -> bool:
    """Whether the reply may have ended before the model was done."""
    return reply.finish not in ("stop", "calls")


def _parts(pieces: Sequence[Delta]) -> Iterator[Part]:
    """Texts without the blank lines around a call."""
    for number, piece in enumerate(pieces):
        if piece.kind == "call":
            yield ToolCall(id="", name=piece.name, arguments=piece.text)
            continue
        text = piece.text
        if number and pieces[number - 1].kind == "call":
            text = text.lstrip()
        if number + 1 < len(pieces) and pieces[number + 1].kind == "call":
            text = text.rstrip()
        if text:
            yield Text(text=text)


def _assign_ids(parts: Sequence[Part]) -> tuple[Part, ...]:
    ids = CallIds(part.id for part in parts if isinstance(part, ToolCall))
    return tuple(
        replace(part, id=ids.assign("")) if isinstance(part, ToolCall) and not part.id else part
        for part in parts
    )


def _drop_made_up_results(parts: Sequence[Part]) -> Iterator[Part]:
    """The parts up to where the model continues as if it had the result."""
    for part in parts:
        found = _MADE_UP_RESULT.search(part.text) if isinstance(part, Text) else None
        if found is None or not isinstance(part, Text):
            yield part
            continue
        text = part.text[: found.start()].rstrip()
        if text:
            yield Text(text=text)
        return


def _render_reply(reply: Message) -> Message:
    """As a model without native calls would have answered."""
    rendered, _ = render_message(reply)
    return replace(rendered, finish="stop") if rendered.finish == "calls" else rendered


def _is_same_json(one: str, other: str) -> bool:
    return bool(one) and parse_strict(one) == parse_strict(other)
