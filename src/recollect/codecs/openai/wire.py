"""The OpenAI chat format, as OpenAI speaks it and as DeepSeek, Qwen, GLM, Ollama, vLLM, LM Studio,
llama.cpp and OpenRouter do.

`OpenAIWire` is a `Wire`. It writes and reads requests and replies, whole or streamed, without a clock
or chance: the same value gives the same bytes. What differs between servers is data in its fields.
What reads, or plays the server, is loaded when it is used: a question is sent before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from recollect.codecs.openai.encode_message import OpenAIQuirks, encode_message, encode_options
from recollect.codecs.provider_rules import OPENAI_RULES, ProviderRules
from recollect.codecs.wire_protocol import (
    DecodedRequest,
    EncodedMessage,
    RequestFrame,
    RequestOptions,
)
from recollect.entries import Message

if TYPE_CHECKING:
    from recollect.codecs.openai.decode_reply import OpenAIStreamDecoder


class OpenAIWire(OpenAIQuirks, frozen=True, kw_only=True):
    @property
    def name(self) -> str:
        return "openai"

    @property
    def rules(self) -> ProviderRules:
        thoughts = "own" if self.reasoning else "none"
        return msgspec.structs.replace(OPENAI_RULES, model=self.model, thoughts=thoughts)

    def encode_options(self, options: RequestOptions, system: Sequence[Message]) -> RequestFrame:
        return encode_options(self, options, system)

    def encode_message(self, message: Message) -> EncodedMessage:
        return encode_message(self, message)

    def decode_request(self, body: bytes) -> DecodedRequest:
        from recollect.codecs.openai.decode_request import decode_request

        return decode_request(body)

    def stream_decoder(self) -> OpenAIStreamDecoder:
        from recollect.codecs.openai.decode_reply import OpenAIStreamDecoder

        return OpenAIStreamDecoder()

    def decode_reply(self, body: bytes) -> Message:
        from recollect.codecs.openai.decode_reply import decode_reply

        return decode_reply(body)

    def encode_reply(self, reply: Message) -> bytes:
        from recollect.codecs.openai.encode_reply import encode_reply

        return encode_reply(reply, self)

    def encode_stream(self, reply: Message) -> Iterator[bytes]:
        from recollect.codecs.openai.encode_reply import encode_stream

        return encode_stream(reply, self)
