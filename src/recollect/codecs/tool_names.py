"""Tool names as a provider accepts them, and back.

A name that a provider's pattern refuses is sent as what it accepts of it and a hash of the whole
name. That depends on the name alone: a message is the same bytes whatever is declared beside it, in
every process, and also when no tool has the name any more. A name that was made is accepted, and
stays. Replies are mapped back through the tools that the request declared (`ToolNamesWire`),
because a hash cannot be undone; a tool whose own name is the made name of another is not declared,
so that nobody can take its calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from recollect.codecs.fixes import Fix, quote_text
from recollect.codecs.provider_rules import ProviderRules
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
from recollect.entries import Message, Part, ToolCall, ToolResult
from recollect.profiles import WireName

_MARK = "-x"  # before the hash
_MADE = re.compile(_MARK + r"[0-9a-f]{12}\Z")
_GAP = "___"  # for the middle of a long name, as in Gemini CLI


class NameRule(NamedTuple):
    """Which names of tools a provider accepts."""

    accepted: re.Pattern[str]
    refused: re.Pattern[str]  # one character that no name may have
    limit: int


NAME_RULES: Mapping[WireName, NameRule] = {
    # longer ones are refused with 400 (platform.openai.com, function calling)
    "openai": NameRule(re.compile(r"[A-Za-z0-9_-]{1,64}"), re.compile(r"[^A-Za-z0-9_-]"), limit=64),
    "anthropic": NameRule(
        re.compile(r"[A-Za-z0-9_-]{1,128}"), re.compile(r"[^A-Za-z0-9_-]"), limit=128
    ),
    # documented as 64, later as 128; servers were seen to refuse more than 63 (Gemini CLI)
    "gemini": NameRule(
        re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,62}"), re.compile(r"[^A-Za-z0-9_.:-]"), limit=63
    ),
}


def sent_tool_name(name: str, wire: WireName) -> str:
    """The name under which a tool is declared, called and answered: the same if it is accepted."""
    rule = NAME_RULES[wire]
    if rule.accepted.fullmatch(name):
        return name
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    room = rule.limit - len(_MARK) - len(digest)
    stem = name
    if len(name) > room:
        half = (room - len(_GAP)) // 2
        stem = name[:half] + _GAP + name[-half:]
    stem = rule.refused.sub("_", stem) or "unnamed"
    if not (stem[0].isalpha() or stem[0] == "_"):  # some servers want a letter first
        stem = "_" + stem[:-1] if len(stem) == room else "_" + stem
    return stem + _MARK + digest


def has_made_name(messages: Iterable[Message]) -> bool:
    """Whether a call or result has a name that `sent_tool_name` may have made."""
    parts = (part for message in messages for part in message.parts)
    return any(isinstance(p, ToolCall | ToolResult) and _MADE.search(p.name) for p in parts)


def name_fix(name: str, sent: str, message: int = 0, call: str = "") -> Fix:
    line = f"the tool {quote_text(name)} is sent as {sent!r}: the provider refuses its name"
    return Fix("name", message, line, call)


def name_tools(
    tools: Sequence[Declaration], wire: WireName, fixes: list[Fix]
) -> list[tuple[str, Declaration]]:
    """The tools that can be declared, each with the name under which it is sent."""
    taken = original_names((tool.name for tool in tools), wire)
    named: list[tuple[str, Declaration]] = []
    for tool in tools:
        sent = sent_tool_name(tool.name, wire)
        if taken.get(sent, tool.name) != tool.name:
            line = f"the tool {quote_text(tool.name)} is left out: {quote_text(taken[sent])} "
            fixes.append(Fix("name", -1, line + f"is sent as {sent!r}"))
            continue
        if sent != tool.name:
            fixes.append(name_fix(tool.name, sent, -1))
        named.append((sent, tool))
    return named


def original_names(names: Iterable[str], wire: WireName) -> dict[str, str]:
    """By the name under which it is sent, each of these names that is sent differently."""
    sent = ((sent_tool_name(name, wire), name) for name in dict.fromkeys(names))
    return {made: name for made, name in sent if made != name}


def rename_tools(message: Message, names: Mapping[str, str]) -> Message:
    """The message with these names of tools replaced in its calls and results."""
    if not any(isinstance(p, ToolCall | ToolResult) and p.name in names for p in message.parts):
        return message
    return replace(message, parts=tuple(_rename_part(part, names) for part in message.parts))


def _rename_part(part: Part, names: Mapping[str, str]) -> Part:
    if isinstance(part, ToolCall | ToolResult) and part.name in names:
        return replace(part, name=names[part.name])
    return part


def with_tool_names(wire: Wire, form: WireName, tools: Sequence[Declaration]) -> Wire:
    """The wire, with replies decoded to the declared names if it sends any of them differently."""
    names = original_names((tool.name for tool in tools), form)
    return ToolNamesWire(wire=wire, names=tuple(sorted(names.items()))) if names else wire


class ToolNamesWire(msgspec.Struct, frozen=True, kw_only=True):
    """A wire for tools that it sends under other names; it encodes as the wire below it."""

    wire: Wire
    names: tuple[tuple[str, str], ...]  # as sent, as declared

    @property
    def name(self) -> str:
        return self.wire.name

    @property
    def rules(self) -> ProviderRules:
        return self.wire.rules

    def encode_options(self, options: RequestOptions, system: Sequence[Message]) -> RequestFrame:
        return self.wire.encode_options(options, system)

    def encode_message(self, message: Message) -> EncodedMessage:
        return self.wire.encode_message(message)

    def decode_request(self, body: bytes) -> DecodedRequest:
        options, messages = self.wire.decode_request(body)
        names = dict(self.names)
        tools = tuple(replace(tool, name=names.get(tool.name, tool.name)) for tool in options.tools)
        choice = names.get(options.tool_choice, options.tool_choice)
        options = replace(options, tools=tools, tool_choice=choice)
        return DecodedRequest(options, tuple(rename_tools(m, names) for m in messages))

    def stream_decoder(self) -> Decoder:
        return _ToolNamesDecoder(self.wire.stream_decoder(), dict(self.names))

    def decode_reply(self, body: bytes) -> Message:
        return rename_tools(self.wire.decode_reply(body), dict(self.names))

    def encode_reply(self, reply: Message) -> bytes:
        return self.wire.encode_reply(rename_tools(reply, self._sent))

    def encode_stream(self, reply: Message) -> Iterator[bytes]:
        return self.wire.encode_stream(rename_tools(reply, self._sent))

    @property
    def _sent(self) -> dict[str, str]:
        return {name: sent for sent, name in self.names}


class _ToolNamesDecoder:
    """Maps the names in what another decoder returns."""

    def __init__(self, inner: Decoder, names: Mapping[str, str]) -> None:
        self._inner, self._names = inner, names

    def feed(self, data: bytes) -> Sequence[Delta]:
        return self._rename(self._inner.feed(data))

    def close(self) -> Sequence[Delta]:
        return self._rename(self._inner.close())

    def message(self) -> Message:
        return rename_tools(self._inner.message(), self._names)

    def _rename(self, deltas: Sequence[Delta]) -> Sequence[Delta]:
        if not any(delta.name in self._names for delta in deltas):
            return deltas
        return [delta._replace(name=self._names.get(delta.name, delta.name)) for delta in deltas]
