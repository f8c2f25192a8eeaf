"""The OpenAI chat format, as OpenAI speaks it and as DeepSeek, Qwen, GLM, Ollama, vLLM, LM Studio,
llama.cpp and OpenRouter do. The differences between servers are data in the wire's fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recollect.codecs.openai.decode_reply import OpenAIStreamDecoder, decode_reply
from recollect.codecs.openai.decode_request import decode_request
from recollect.codecs.openai.encode_message import encode_message
from recollect.codecs.openai.encode_options import encode_options
from recollect.codecs.openai.encode_reply import encode_reply, encode_stream
from recollect.codecs.openai.quirks import OpenAIQuirks
from recollect.codecs.wire_protocol import (
    DecodedRequest,
    Decoder,
    EncodedMessage,
    RequestFrame,
    RequestOptions,
)
from recollect.entries import Message
from recollect.profiles import Profile


class OpenAIWire(OpenAIQuirks, frozen=True, kw_only=True):
    """The format, set up for one server and model."""

    @classmethod
    def for_profile(cls, model: str, profile: Profile) -> OpenAIWire:
        switch = profile.think_switch
        if switch == "no_think_tag" or switch == "slash_no_think":
            switch = ""  # text in the messages: `ThinkTagsWire` adds it
        return cls(
            model=model,
            reasoning=profile.reasoning,
            system_role=profile.system_role,
            max_tokens_field=profile.max_tokens_field,
            sampling=profile.sampling,
            thinking_switch=switch,
            media=profile.media,
        )

    @property
    def name(self) -> str:
        return "openai"

    def encode_options(self, options: RequestOptions, system: Sequence[Message]) -> RequestFrame:
        return encode_options(options, system, self)

    def encode_message(self, message: Message) -> EncodedMessage:
        return encode_message(message, self)

    def decode_request(self, body: bytes) -> DecodedRequest:
        return decode_request(body)

    def stream_decoder(self) -> Decoder:
        return OpenAIStreamDecoder()

    def decode_reply(self, body: bytes) -> Message:
        return decode_reply(body)

    def encode_reply(self, reply: Message) -> bytes:
        return encode_reply(reply, self)

    def encode_stream(self, reply: Message) -> Iterator[bytes]:
        return encode_stream(reply, self)
