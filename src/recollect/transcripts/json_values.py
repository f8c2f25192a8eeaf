"""Values out of foreign JSON, where any field may hold anything."""

from __future__ import annotations

import base64
import binascii


def string_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def decode_base64(value: object) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
