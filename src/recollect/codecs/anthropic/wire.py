"""Anthropic's messages, `POST /v1/messages`, in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recollect.codecs.anthropic.decode_reply import AnthropicStreamDecoder, decode_reply
from recollect.codecs.anthropic.decode_request import decode_request
from recollect.codecs.anthropic.encode_message import encode_message
from recollect.codecs.anthropic.encode_options import encode_options
from recollect.codecs.anthropic.encode_reply import encode_reply, encode_stream
from recollect.codecs.anthropic.quirks import AnthropicQuirks, AnthropicThinking
from recollect.codecs.wire_protocol import (
    DecodedRequest,
    Decoder,
    EncodedMessage,
    RequestFrame,
    RequestOptions,
)
from recollect.entries import Message
from recollect.profiles import Profile


class AnthropicWire(AnthropicQuirks, frozen=True, kw_only=True):
    """The format, set up for one model."""

    @classmethod
    def for_profile(cls, model: str, profile: Profile) -> AnthropicWire:
        thinking: AnthropicThinking = "adaptive" if profile.effort == "level" else "budget"
        return cls(model=model, media=profile.media, sampling=profile.sampling, thinking=thinking)

    @property
    def name(self) -> str:
        return "anthropic"

    def encode_options(self, options: RequestOptions, system: Sequence[Message]) -> RequestFrame:
        return encode_options(options, system, self)

    def encode_message(self, message: Message) -> EncodedMessage:
        return encode_message(message, self)

    def decode_request(self, body: bytes) -> DecodedRequest:
        return decode_request(body)

    def stream_decoder(self) -> Decoder:
        return AnthropicStreamDecoder()

    def decode_reply(self, body: bytes) -> Message:
        return decode_reply(body)

    def encode_reply(self, reply: Message) -> bytes:
        return encode_reply(reply)

    def encode_stream(self, reply: Message) -> Iterator[bytes]:
        return encode_stream(reply)
