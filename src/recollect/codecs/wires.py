"""Every wire format, registered once: its class, where its requests go, how it takes the key.

The transport, model resolution and `recollect encode --to` follow from this table;
`tests/codecs/test_wires.py` names everything that a new row lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from recollect.codecs.anthropic.wire import AnthropicWire
from recollect.codecs.gemini.wire import GeminiWire
from recollect.codecs.openai.wire import OpenAIWire
from recollect.codecs.wire_protocol import Wire
from recollect.profiles import Profile, WireName


class WireFormat(NamedTuple):
    build: Callable[[str, Profile], Wire]  # for a model and its profile
    path: str  # of a streamed request, after the endpoint's URL
    key_header: str
    key_prefix: str = ""


WIRES: Mapping[WireName, WireFormat] = {
    "gemini": WireFormat(
        GeminiWire.for_profile,
        path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
        key_header="x-goog-api-key",
    ),
    "openai": WireFormat(
        OpenAIWire.for_profile,
        path="/chat/completions",
        key_header="authorization",
        key_prefix="Bearer ",
    ),
    "anthropic": WireFormat(AnthropicWire.for_profile, path="/v1/messages", key_header="x-api-key"),
}
