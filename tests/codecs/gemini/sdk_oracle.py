"""Whether a request is one that Google's own SDK has types for."""

from __future__ import annotations

import json
import warnings
from typing import Any

with warnings.catch_warnings():  # the SDK has an escape in a docstring that Python warns of
    warnings.simplefilter("ignore", DeprecationWarning)
    from google.genai import types

SdkReply = types.GenerateContentResponse
SdkContent = types.Content


def check_request(body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(body)
    known: dict[str, Any] = {
        "systemInstruction": types.Content,
        "toolConfig": types.ToolConfig,
        "generationConfig": types.GenerationConfig,
    }
    assert found.keys() <= {*known, "tools", "contents"}
    for key in known.keys() & found.keys():
        known[key].model_validate_json(json.dumps(found[key]))
    for tool in found.get("tools", ()):
        types.Tool.model_validate_json(json.dumps(tool))
    for content in found["contents"]:
        read = types.Content.model_validate_json(json.dumps(content))
        assert read.role in ("user", "model")
        assert read.parts
    return found
