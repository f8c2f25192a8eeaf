"""What is asked of a model and what it answers, whatever its wire format.

A `Wire` is one provider's format, as a frozen value: it writes the frame around the messages and
each message on its own, so that what was written once stays the same bytes, and reads both back. A
`Decoder` reads a streamed reply; however the bytes are cut, the outcome is the same.
What a wire cannot carry is left out and told as a `Fix`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from recollect.codecs.call_pairing import Fix
from recollect.codecs.provider_rules import ProviderRules
from recollect.entries import Message

Effort: TypeAlias = Literal["", "none", "low", "medium", "high"]
# How a reply ended, in one vocabulary. Empty: the end never came. `other`: for a reason nobody here
# knows, which stays in the message's `extra` under "finish_reason".
Finish: TypeAlias = Literal["", "stop", "length", "calls", "safety", "other"]
NO_PARAMETERS = '{"type":"object","properties":{}}'


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """Something the model may call, as it is told of it."""

    name: str
    description: str = ""
    parameters: str = NO_PARAMETERS  # a JSON Schema, as JSON text


class Generation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How to write. None and empty leave it to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    max_output: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    effort: Effort = ""  # how long to think
    schema: str = ""  # a JSON Schema, as JSON text, that the answer must follow


class RequestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in a request but the messages."""

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
    """A request, read back. The system's messages come first."""

    options: RequestOptions
    messages: tuple[Message, ...]


class Delta(NamedTuple):
    """A piece of a reply, to be shown while it arrives."""

    kind: Literal["text", "thought", "call"]
    text: str  # of a call: a piece of its arguments
    name: str = ""  # of a call, in its first piece: the tool


class Decoder(Protocol):
    """Reads one reply as it arrives, and can be asked at any time what there is of it."""

    def feed(self, data: bytes) -> Sequence[Delta]:
        """Raises `BadReply` when this is no reply, `ProviderFailed` when it tells of an error."""

    def close(self) -> Sequence[Delta]:
        """The stream has ended: what was held back."""

    def message(self) -> Message:
        """What has arrived, with `finish` once the end was announced."""


class Wire(Protocol):
    """One provider's format, set up for one model."""

    @property
    def name(self) -> str: ...

    @property
    def rules(self) -> ProviderRules: ...

    def encode_options(self, options: RequestOptions, system: Sequence[Message]) -> RequestFrame:
        """What stands around the messages; `system` are the instructions before all of them."""

    def encode_message(self, message: Message) -> EncodedMessage:
        """One repaired message; the same message gives the same bytes, whatever is around it."""

    def decode_request(self, body: bytes) -> DecodedRequest: ...

    def stream_decoder(self) -> Decoder:
        """For the bytes of a streamed reply: server-sent events."""

    def decode_reply(self, body: bytes) -> Message:
        """A reply that came in one piece."""

    def encode_reply(self, reply: Message) -> bytes:
        """As the provider would answer in one piece."""

    def encode_stream(self, reply: Message) -> Iterator[bytes]:
        """As the provider would stream it, one event at a time."""
