"""Google's `generateContent` and `streamGenerateContent?alt=sse`, for one model.

Guarantees: a message is written the same way whatever stands around it; arguments and schemas are
embedded as the text they are; a signature goes only to the model that made it; everything that is
said and cannot be sent has a `Fix`. What differs between Gemini's models is in the fields, none of
it is guessed from a name. The address (`models/NAME:generateContent`) is the transport's business.
What reads, or plays the server, is loaded when it is used: a question is sent before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from recollect.codecs.fixes import Fix
from recollect.codecs.gemini.encode_message import (
    NOTHING_LEFT,
    PartEncoder,
    encode,
    replace_surrogates,
    surrogate_fix,
)
from recollect.codecs.gemini.encode_options import GeminiThinking, encode_options
from recollect.codecs.provider_rules import GEMINI_RULES, ProviderRules
from recollect.codecs.wire_protocol import (
    DecodedRequest,
    EncodedMessage,
    RequestFrame,
    RequestOptions,
)
from recollect.entries import Message, Text

if TYPE_CHECKING:
    from recollect.codecs.gemini.decode_reply import GeminiStreamDecoder

MEDIA = ("image/", "audio/", "video/", "application/pdf", "text/")
RESULT_MEDIA = ("image/", "application/pdf", "text/plain")


class GeminiWire(msgspec.Struct, frozen=True, kw_only=True):
    model: str = ""
    media: tuple[str, ...] = MEDIA  # how the types begin that the model takes from a user
    result_media: tuple[str, ...] = RESULT_MEDIA  # and in a tool's result; before Gemini 3: none
    thinking: GeminiThinking = "budget"
    # Gemini 3 answers 400 when the first call of a model's message bears no signature, as one that
    # another model made. What is given here is sent instead: "skip_thought_signature_validator"
    # (https://ai.google.dev/gemini-api/docs/thought-signatures).
    stand_in_signature: str = ""

    @property
    def name(self) -> str:
        return "gemini"

    @property
    def rules(self) -> ProviderRules:
        return _rules_for(self.model)

    def encode_options(self, options: RequestOptions, system: Sequence[Message]) -> RequestFrame:
        return encode_options(options, system, self.thinking)

    def encode_message(self, message: Message) -> EncodedMessage:
        parts = message.parts
        try:
            # nearly every message: one text and nothing beside it
            if len(parts) == 1 and isinstance(part := parts[0], Text) and not part.extra:
                data = b'{"text":' + encode(part.text) + b"}"
                return _content(data, message, ())
            return self._written(message, [])
        except UnicodeEncodeError:
            return self._written(replace_surrogates(message), [surrogate_fix(0)])

    def _written(self, message: Message, fixes: list[Fix]) -> EncodedMessage:
        pen = PartEncoder(
            own=self.rules.is_own(message),
            media=self.media,
            result_media=self.result_media,
            stand_in=self.stand_in_signature,
            fixes=fixes,
        )
        parts = pen.parts(message)
        if not parts:  # a content without parts is refused
            parts = [b'{"text":' + encode(NOTHING_LEFT) + b"}"]
        return _content(b",".join(parts), message, tuple(fixes))

    def decode_request(self, body: bytes) -> DecodedRequest:
        from recollect.codecs.gemini.decode_request import decode_request

        return decode_request(body, self.model)

    def stream_decoder(self) -> GeminiStreamDecoder:
        from recollect.codecs.gemini.decode_reply import GeminiStreamDecoder

        return GeminiStreamDecoder(self.model)

    def decode_reply(self, body: bytes) -> Message:
        from recollect.codecs.gemini.decode_reply import decode_reply

        return decode_reply(body, self.model)

    def encode_reply(self, reply: Message) -> bytes:
        from recollect.codecs.gemini.encode_reply import encode_reply

        return encode_reply(reply)

    def encode_stream(self, reply: Message) -> Iterator[bytes]:
        from recollect.codecs.gemini.encode_reply import encode_stream

        return encode_stream(reply)


@lru_cache(maxsize=64)
def _rules_for(model: str) -> ProviderRules:
    return msgspec.structs.replace(GEMINI_RULES, model=model)


def _content(parts: bytes, message: Message, fixes: tuple[Fix, ...]) -> EncodedMessage:
    if message.role == "model":
        return EncodedMessage(b'{"role":"model","parts":[' + parts + b"]}", fixes)
    if message.role == "system":
        line = "an instruction among the messages is sent as a user's: Gemini has no such role"
        fixes = (*fixes, Fix("system", 0, line))
    return EncodedMessage(b'{"role":"user","parts":[' + parts + b"]}", fixes)
