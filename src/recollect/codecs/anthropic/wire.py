"""Anthropic's messages, `POST /v1/messages`, in both directions."""

from __future__ import annotations

from typing import ClassVar

from recollect.codecs.anthropic.decode_reply import AnthropicStreamDecoder, decode_reply
from recollect.codecs.anthropic.decode_request import decode_request
from recollect.codecs.anthropic.encode_message import encode_message
from recollect.codecs.anthropic.encode_options import encode_options
from recollect.codecs.anthropic.encode_reply import encode_reply, encode_stream
from recollect.codecs.provider_rules import AnthropicQuirks, AnthropicThinking
from recollect.profiles import Profile


class AnthropicWire(AnthropicQuirks, frozen=True, kw_only=True):
    """The format, set up for one model."""

    name: ClassVar[str] = "anthropic"
    encode_options = encode_options
    encode_message = encode_message
    decode_request = staticmethod(decode_request)
    decode_reply = staticmethod(decode_reply)
    encode_reply = staticmethod(encode_reply)
    encode_stream = staticmethod(encode_stream)
    stream_decoder = AnthropicStreamDecoder

    @classmethod
    def for_profile(cls, model: str, profile: Profile) -> AnthropicWire:
        thinking: AnthropicThinking = "adaptive" if profile.effort == "level" else "budget"
        return cls(model=model, media=profile.media, sampling=profile.sampling, thinking=thinking)
