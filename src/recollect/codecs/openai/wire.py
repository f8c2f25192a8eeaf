"""The OpenAI chat format, as OpenAI speaks it and as DeepSeek, Qwen, GLM, Ollama, vLLM, LM Studio,
llama.cpp and OpenRouter do.

`OpenAI` is a `Wire`. It writes and reads requests and replies, whole or streamed, without a clock
or chance: the same value gives the same bytes. What differs between servers is data in its fields.
What reads, or plays the server, is loaded when it is used: a question is sent before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from recollect.codecs.openai.requests import Dialect, opening, written
from recollect.codecs.shapes import OPENAI, Shape
from recollect.codecs.wire import Asked, Frame, Prompt, Written
from recollect.entries import Message

if TYPE_CHECKING:
    from recollect.codecs.openai.replies import ReplyDecoder


class OpenAI(Dialect, frozen=True, kw_only=True):
    @property
    def name(self) -> str:
        return "openai"

    @property
    def shape(self) -> Shape:
        thoughts = "own" if self.reasoning else "none"
        return msgspec.structs.replace(OPENAI, model=self.model, thoughts=thoughts)

    def frame(self, prompt: Prompt, system: Sequence[Message]) -> Frame:
        return opening(self, prompt, system)

    def write(self, message: Message) -> Written:
        return written(self, message)

    def read_request(self, body: bytes) -> Asked:
        from recollect.codecs.openai.asked import read_request

        return read_request(body)

    def decoder(self) -> ReplyDecoder:
        from recollect.codecs.openai.replies import ReplyDecoder

        return ReplyDecoder()

    def read_reply(self, body: bytes) -> Message:
        from recollect.codecs.openai.replies import read_reply

        return read_reply(body)

    def write_reply(self, reply: Message) -> bytes:
        from recollect.codecs.openai.answers import write_reply

        return write_reply(reply, self)

    def write_stream(self, reply: Message) -> Iterator[bytes]:
        from recollect.codecs.openai.answers import write_stream

        return write_stream(reply, self)
