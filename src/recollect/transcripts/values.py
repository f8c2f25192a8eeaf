"""Values out of foreign JSON, where any field may hold anything."""

from __future__ import annotations

import base64
import binascii


def string(value: object) -> str:
    return value if isinstance(value, str) else ""


def base64_bytes(value: object) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
