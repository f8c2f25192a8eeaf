"""Every wire format, registered once: its class, where its requests go, how it takes the key.

The transport, model resolution and `recollect encode --to` follow from this table;
`tests/codecs/test_wires.py` names everything that a new row lacks. Each wire is imported by its
first use, because a program rarely needs more than one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import NamedTuple

from recollect.codecs.wire_protocol import Wire
from recollect.profiles import Profile, WireName


class WireFormat(NamedTuple):
    wire: str  # the class and its module
    path: str  # of a streamed request, after the endpoint's URL
    key_header: str
    key_prefix: str = ""

    def build(self, model: str, profile: Profile) -> Wire:
        wire: Wire = resolve_name(self.wire).for_profile(model, profile)
        return wire


WIRES: Mapping[WireName, WireFormat] = {
    "gemini": WireFormat(
        "recollect.codecs.gemini:GeminiWire",
        path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
        key_header="x-goog-api-key",
    ),
    "openai": WireFormat(
        "recollect.codecs.openai:OpenAIWire",
        path="/chat/completions",
        key_header="authorization",
        key_prefix="Bearer ",
    ),
    "anthropic": WireFormat(
        "recollect.codecs.anthropic:AnthropicWire", path="/v1/messages", key_header="x-api-key"
    ),
}
