"""Requests and replies, whatever the wire format, and the protocol that every format implements.

A `Wire` is one provider's format, as a frozen value. It encodes the frame around the messages and
each message on its own, so that an encoded message stays the same bytes, and decodes both. A
`Decoder` reads a streamed reply; any chunking of the bytes gives the same message.
Content that a wire cannot carry is left out and reported as a `Fix`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from recollect.codecs.fixes import Fix
from recollect.codecs.provider_rules import ProviderRules
from recollect.entries import Message

Effort: TypeAlias = Literal["", "none", "low", "medium", "high"]
# How a reply ended, in one vocabulary; `codecs/endings.py` has the providers' words for it. Empty:
# the end never came. `other`: for a reason that is unknown here. Where the provider's own word says
# more, it stays in the message's `extra` under "finish_reason".
Finish: TypeAlias = Literal[
    "", "stop", "length", "calls", "safety", "malformed_call", "pause", "other"
]
NO_PARAMETERS = '{"type":"object","properties":{}}'


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """A tool, as it is declared to the model."""

    name: str
    description: str = ""
    parameters: str = NO_PARAMETERS  # a JSON Schema, as JSON text


class Generation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the model writes its reply. None and empty leave it to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    max_output: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    effort: Effort = ""  # how long to think
    schema: str = ""  # a JSON Schema, as JSON text, that the answer must follow
    parallel_calls: bool | None = None  # False: at most one call in a reply


class RequestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in a request except the messages."""

    model: str
    tools: tuple[Declaration, ...] = ()
    tool_choice: str = "auto"  # auto, none, required, or the name of the one tool to call
    generation: Generation = Generation()
    stream: bool = True


class RequestFrame(msgspec.Struct, frozen=True):
    """The bytes around the messages of a request."""

    before: bytes
    after: bytes
    opened: bool = False  # whether `before` ends with an element of the list of messages
    fixes: tuple[Fix, ...] = ()


class EncodedMessage(msgspec.Struct, frozen=True):
    """A message as elements of the wire's list, joined by commas."""

    data: bytes
    fixes: tuple[Fix, ...] = ()


class DecodedRequest(NamedTuple):
    """A request that was decoded. The system messages come first."""

    options: RequestOptions
    messages: tuple[Message, ...]


class Delta(NamedTuple):
    """A piece of a reply, shown while the reply arrives."""

    kind: Literal["text", "thought", "call"]
    text: str  # of a call: a piece of its arguments
    name: str = ""  # of a call, in its first piece: the tool


NO_DELTAS: tuple[Delta, ...] = ()


class Decoder(Protocol):
    """Reads one reply while it arrives; the message so far can be read at any time."""

    def feed(self, data: bytes) -> Sequence[Delta]:
        """Raises `BadReply` if this is not a reply, `ProviderFailed` if it reports an error."""

    def close(self) -> Sequence[Delta]:
        """The stream has ended; returns the deltas that were held back."""

    def message(self) -> Message:
        """The message so far, with `finish` once the end was announced."""


class Wire(Protocol):
    """One provider's format, set up for one model."""

    @property
    def name(self) -> str: ...

    @property
    def rules(self) -> ProviderRules: ...

    def encode_options(self, options: RequestOptions, system: Sequence[Message]) -> RequestFrame:
        """The bytes around the messages; `system` are the instructions before all of them."""

    def encode_message(self, message: Message) -> EncodedMessage:
        """One repaired message; always the same bytes, whatever is around it."""

    def decode_request(self, body: bytes) -> DecodedRequest: ...

    def stream_decoder(self) -> Decoder:
        """For the bytes of a streamed reply: server-sent events."""

    def decode_reply(self, body: bytes) -> Message:
        """A reply that came in one piece."""

    def encode_reply(self, reply: Message) -> bytes:
        """As the provider would answer in one piece."""

    def encode_stream(self, reply: Message) -> Iterator[bytes]:
        """As the provider would stream it, one event at a time."""
