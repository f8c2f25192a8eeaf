"""Google's `generateContent` and `streamGenerateContent?alt=sse`, for one model.

The address (`models/NAME:generateContent`) is the transport's business.
"""

from __future__ import annotations

from typing import ClassVar

from recollect.codecs.gemini.decode_reply import GeminiStreamDecoder, decode_reply
from recollect.codecs.gemini.decode_request import decode_request
from recollect.codecs.gemini.encode_message import encode_message
from recollect.codecs.gemini.encode_options import encode_options
from recollect.codecs.gemini.encode_reply import encode_reply, encode_stream
from recollect.codecs.provider_rules import GeminiQuirks
from recollect.codecs.wire_protocol import Decoder
from recollect.profiles import Profile


class GeminiWire(GeminiQuirks, frozen=True, kw_only=True):
    """The format, set up for one model."""

    name: ClassVar[str] = "gemini"
    encode_options = encode_options
    encode_message = encode_message
    decode_request = decode_request
    decode_reply = decode_reply
    encode_reply = staticmethod(encode_reply)
    encode_stream = staticmethod(encode_stream)

    @classmethod
    def for_profile(cls, model: str, profile: Profile) -> GeminiWire:
        if not profile.signed_calls:
            return cls(model=model, media=profile.media, result_media=())
        return cls(
            model=model,
            media=profile.media,
            thinking=profile.effort,
            stand_in_signature="skip_thought_signature_validator",
        )

    def stream_decoder(self) -> Decoder:
        return GeminiStreamDecoder(self)
