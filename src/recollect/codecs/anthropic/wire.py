"""Anthropic's messages: `POST /v1/messages`, in both directions.

An `AnthropicWire` is the format set up for one model. It guarantees what `Wire` asks for: a message
is written the same whatever is around it, everything else in a request stands before the messages,
and what cannot be sent is told as a `Fix`. How parts become blocks is in `anthropic_blocks`, the
frame in `anthropic_frames`; replies are read in `anthropic_replies` and `anthropic_streams`, which
are loaded when they are used: a question is sent before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from recollect.codecs.anthropic.encode_message import (
    MEDIA,
    TextBlock,
    encode_blocks,
    replace_surrogates_in,
)
from recollect.codecs.anthropic.encode_options import (
    AnthropicQuirks,
    AnthropicThinking,
    encode_options,
)
from recollect.codecs.fixes import Fix
from recollect.codecs.provider_rules import ANTHROPIC_RULES, ProviderRules
from recollect.codecs.wire_protocol import (
    DecodedRequest,
    Decoder,
    EncodedMessage,
    RequestFrame,
    RequestOptions,
)
from recollect.entries import Message, Text

_ROLES = {"user": "user", "model": "assistant", "system": "system"}


class _AnthropicMessage(msgspec.Struct, gc=False):
    role: str
    content: Sequence[object]


_encode = msgspec.json.Encoder().encode


class AnthropicWire(msgspec.Struct, frozen=True, kw_only=True):
    model: str = ""
    max_output: int = 8_192  # the API wants a limit; this one when the options name none
    cache: bool = True  # whether marks for the prompt cache are sent
    media: tuple[str, ...] = MEDIA  # beginnings of the types of files that the model takes
    sampling: bool = True  # whether the model takes temperature and top_p
    thinking: AnthropicThinking = "budget"  # how the model is told to think

    @property
    def name(self) -> str:
        return "anthropic"

    @property
    def rules(self) -> ProviderRules:
        return msgspec.structs.replace(ANTHROPIC_RULES, model=self.model)

    def encode_options(self, options: RequestOptions, system: Sequence[Message]) -> RequestFrame:
        quirks = AnthropicQuirks(
            self.model, self.max_output, self.cache, self.sampling, self.thinking
        )
        return encode_options(options, system, quirks)

    def encode_message(self, message: Message) -> EncodedMessage:
        parts, role = message.parts, _ROLES[message.role]
        try:
            if len(parts) == 1 and type(parts[0]) is Text:
                return EncodedMessage(_encode(_AnthropicMessage(role, (TextBlock(parts[0].text),))))
            return self._written(message, role, [])
        except UnicodeEncodeError:
            line = "text that UTF-8 cannot carry is sent with U+FFFD in its place"
            return self._written(replace_surrogates_in(message), role, [Fix("uncarried", 0, line)])

    def _written(self, message: Message, role: str, fixes: list[Fix]) -> EncodedMessage:
        of_model = message.role == "model"
        blocks = encode_blocks(message.parts, of_model=of_model, media=self.media, fixes=fixes)
        return EncodedMessage(_encode(_AnthropicMessage(role, blocks)), tuple(fixes))

    def decode_request(self, body: bytes) -> DecodedRequest:
        from recollect.codecs.anthropic.decode_request import decode_request

        return decode_request(body)

    def stream_decoder(self) -> Decoder:
        from recollect.codecs.anthropic.decode_stream import AnthropicStreamDecoder

        return AnthropicStreamDecoder()

    def decode_reply(self, body: bytes) -> Message:
        from recollect.codecs.anthropic.decode_reply import decode_reply

        return decode_reply(body)

    def encode_reply(self, reply: Message) -> bytes:
        from recollect.codecs.anthropic.decode_reply import encode_reply

        return encode_reply(reply)

    def encode_stream(self, reply: Message) -> Iterator[bytes]:
        from recollect.codecs.anthropic.decode_reply import encode_stream

        return encode_stream(reply)
