"""Every request to Gemini parses as the types of Google's own SDK."""

from __future__ import annotations

from hypothesis import given

from recollect.codecs.gemini import GeminiWire
from recollect.codecs.wire_protocol import RequestOptions
from tests.codecs.conversations import Messages, conversations
from tests.codecs.gemini.sdk_oracle import check_request
from tests.codecs.gemini.test_encode_request import request, request_options, turns, wires


@given(conversations | turns, request_options, wires)
def test_every_request_parses_as_the_types_of_googles_sdk(
    messages: Messages, options: RequestOptions, wire: GeminiWire
) -> None:
    body, repaired, _ = request(wire, messages, options)
    assert bool(check_request(body)["contents"]) == any(m.role != "system" for m in repaired)
