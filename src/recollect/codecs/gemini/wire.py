"""Google's `generateContent` and `streamGenerateContent?alt=sse`, for one model.

The address (`models/NAME:generateContent`) is the transport's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recollect.codecs.gemini.decode_reply import GeminiStreamDecoder, decode_reply
from recollect.codecs.gemini.decode_request import decode_request
from recollect.codecs.gemini.encode_message import encode_message
from recollect.codecs.gemini.encode_options import encode_options
from recollect.codecs.gemini.encode_reply import encode_reply, encode_stream
from recollect.codecs.gemini.quirks import RESULT_MEDIA, GeminiQuirks
from recollect.codecs.wire_protocol import (
    DecodedRequest,
    Decoder,
    EncodedMessage,
    RequestFrame,
    RequestOptions,
)
from recollect.entries import Message
from recollect.profiles import Profile


class GeminiWire(GeminiQuirks, frozen=True, kw_only=True):
    """The format, set up for one model."""

    @classmethod
    def for_profile(cls, model: str, profile: Profile) -> GeminiWire:
        if not profile.signed_calls:
            return cls(model=model, media=profile.media, result_media=())
        return cls(
            model=model,
            media=profile.media,
            result_media=RESULT_MEDIA,
            thinking=profile.effort,
            stand_in_signature="skip_thought_signature_validator",
        )

    @property
    def name(self) -> str:
        return "gemini"

    def encode_options(self, options: RequestOptions, system: Sequence[Message]) -> RequestFrame:
        return encode_options(options, system, self)

    def encode_message(self, message: Message) -> EncodedMessage:
        return encode_message(message, self)

    def decode_request(self, body: bytes) -> DecodedRequest:
        return decode_request(body, self.model)

    def stream_decoder(self) -> Decoder:
        return GeminiStreamDecoder(self.model)

    def decode_reply(self, body: bytes) -> Message:
        return decode_reply(body, self.model)

    def encode_reply(self, reply: Message) -> bytes:
        return encode_reply(reply)

    def encode_stream(self, reply: Message) -> Iterator[bytes]:
        return encode_stream(reply)
