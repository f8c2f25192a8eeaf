"""The OpenAI chat format, as OpenAI speaks it and as DeepSeek, Qwen, GLM, Ollama, vLLM, LM Studio,
llama.cpp and OpenRouter do. The differences between servers are data in the wire's fields.
"""

from __future__ import annotations

from typing import ClassVar

from recollect.codecs.openai.decode_reply import OpenAIStreamDecoder, decode_reply
from recollect.codecs.openai.decode_request import decode_request
from recollect.codecs.openai.encode_message import encode_message
from recollect.codecs.openai.encode_options import encode_options
from recollect.codecs.openai.encode_reply import encode_reply, encode_stream
from recollect.codecs.provider_rules import OpenAIQuirks
from recollect.profiles import Profile


class OpenAIWire(OpenAIQuirks, frozen=True, kw_only=True):
    """The format, set up for one server and model."""

    name: ClassVar[str] = "openai"
    encode_options = encode_options
    encode_message = encode_message
    decode_request = staticmethod(decode_request)
    decode_reply = staticmethod(decode_reply)
    encode_reply = encode_reply
    encode_stream = encode_stream
    stream_decoder = OpenAIStreamDecoder

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
            alternating_roles=profile.alternating_roles,
        )
