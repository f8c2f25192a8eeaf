"""Anthropic's messages: `POST /v1/messages`, in both directions.

An `Anthropic` is the format set up for one model. It guarantees what `Wire` asks for: a message
is written the same whatever is around it, everything else in a request stands before the messages,
and what cannot be sent is told as a `Fix`. How parts become blocks is in `anthropic_blocks`, the
frame in `anthropic_frames`; replies are read in `anthropic_replies` and `anthropic_streams`, which
are loaded when they are used: a question is sent before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from recollect.codecs.anthropic.blocks import MEDIA, TextBlock, blocks_of, sound_message
from recollect.codecs.anthropic.frames import Options, ThinkingMode, frame
from recollect.codecs.pairing import Fix
from recollect.codecs.shapes import ANTHROPIC, Shape
from recollect.codecs.wire import Asked, Decoder, Frame, Prompt, Written
from recollect.entries import Message, Text

_ROLES = {"user": "user", "model": "assistant", "system": "system"}


class _Spoken(msgspec.Struct, gc=False):
    role: str
    content: Sequence[object]


_encode = msgspec.json.Encoder().encode


class Anthropic(msgspec.Struct, frozen=True, kw_only=True):
    model: str = ""
    max_output: int = 8_192  # the API wants a limit; this one when the prompt names none
    cache: bool = True  # whether marks for the prompt cache are sent
    media: tuple[str, ...] = MEDIA  # beginnings of the types of files that the model takes
    sampling: bool = True  # whether the model takes temperature and top_p
    thinking: ThinkingMode = "budget"  # how the model is told to think

    @property
    def name(self) -> str:
        return "anthropic"

    @property
    def shape(self) -> Shape:
        return msgspec.structs.replace(ANTHROPIC, model=self.model)

    def frame(self, prompt: Prompt, system: Sequence[Message]) -> Frame:
        options = Options(self.model, self.max_output, self.cache, self.sampling, self.thinking)
        return frame(prompt, system, options)

    def write(self, message: Message) -> Written:
        parts, role = message.parts, _ROLES[message.role]
        try:
            if len(parts) == 1 and type(parts[0]) is Text:
                return Written(_encode(_Spoken(role, (TextBlock(parts[0].text),))))
            return self._written(message, role, [])
        except UnicodeEncodeError:
            line = "text that UTF-8 cannot carry is sent with U+FFFD in its place"
            return self._written(sound_message(message), role, [Fix("uncarried", 0, line)])

    def _written(self, message: Message, role: str, fixes: list[Fix]) -> Written:
        of_model = message.role == "model"
        blocks = blocks_of(message.parts, of_model=of_model, media=self.media, fixes=fixes)
        return Written(_encode(_Spoken(role, blocks)), tuple(fixes))

    def read_request(self, body: bytes) -> Asked:
        from recollect.codecs.anthropic.requests import read_request

        return read_request(body)

    def decoder(self) -> Decoder:
        from recollect.codecs.anthropic.streams import StreamDecoder

        return StreamDecoder()

    def read_reply(self, body: bytes) -> Message:
        from recollect.codecs.anthropic.replies import read_reply

        return read_reply(body)

    def write_reply(self, reply: Message) -> bytes:
        from recollect.codecs.anthropic.replies import write_reply

        return write_reply(reply)

    def write_stream(self, reply: Message) -> Iterator[bytes]:
        from recollect.codecs.anthropic.replies import write_stream

        return write_stream(reply)
