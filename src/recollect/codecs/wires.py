"""Every wire format, registered once: its class, where its requests go, how it takes the key.

The transport, model resolution and `recollect encode --to` follow from this table;
`tests/codecs/test_wires.py` names everything that a new row lacks. Each wire is imported by its
first use, because a program rarely needs more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from recollect.codecs.wire_protocol import Wire
from recollect.profiles import Profile, WireName


class WireFormat(NamedTuple):
    build: Callable[[str, Profile], Wire]  # for a model and its profile
    path: str  # of a streamed request, after the endpoint's URL
    key_header: str
    key_prefix: str = ""


def _build_gemini(model: str, profile: Profile) -> Wire:
    from recollect.codecs.gemini.wire import GeminiWire  # on first use

    return GeminiWire.for_profile(model, profile)


def _build_openai(model: str, profile: Profile) -> Wire:
    from recollect.codecs.openai.wire import OpenAIWire  # on first use

    return OpenAIWire.for_profile(model, profile)


def _build_anthropic(model: str, profile: Profile) -> Wire:
    from recollect.codecs.anthropic.wire import AnthropicWire  # on first use

    return AnthropicWire.for_profile(model, profile)


WIRES: Mapping[WireName, WireFormat] = {
    "gemini": WireFormat(
        _build_gemini,
        path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
        key_header="x-goog-api-key",
    ),
    "openai": WireFormat(
        _build_openai,
        path="/chat/completions",
        key_header="authorization",
        key_prefix="Bearer ",
    ),
    "anthropic": WireFormat(_build_anthropic, path="/v1/messages", key_header="x-api-key"),
}
