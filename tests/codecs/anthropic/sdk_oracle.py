"""Whether a request is one that Anthropic's official SDK has types for."""

from __future__ import annotations

import json
from typing import Any

from anthropic.types import ContentBlockParam
from anthropic.types.message_create_params import (
    MessageCreateParamsNonStreaming,
    MessageCreateParamsStreaming,
)
from pydantic import ConfigDict, TypeAdapter

STRICT = ConfigDict(extra="forbid")
PARAMS: TypeAdapter[Any] = TypeAdapter(
    MessageCreateParamsStreaming | MessageCreateParamsNonStreaming, config=STRICT
)
# The SDK accepts its own replies as content, with any fields; a block is checked more strictly.
BLOCK: TypeAdapter[Any] = TypeAdapter(ContentBlockParam, config=STRICT)


def check_request(body: bytes) -> dict[str, Any]:
    """The request, which the SDK's types accept, down to the last block."""
    request: dict[str, Any] = json.loads(body)
    _exhaust(PARAMS.validate_python(request))
    for message in request["messages"]:
        for block in message["content"]:
            _exhaust(BLOCK.validate_python(block))
    return request


def _exhaust(value: Any) -> None:
    """The SDK declares lists as iterables, which pydantic checks while somebody reads them."""
    if isinstance(value, dict):
        value = value.values()
    if not isinstance(value, str | int | float | None):
        for item in value:
            _exhaust(item)
