"""The parts of an OpenAI message's content: text, images, audio and files.

Every part that the documentation knows is decoded; any other becomes `Unknown` with its JSON.
Broken base64 stays what it was: a link.
"""

from __future__ import annotations

import binascii
import re
from typing import Any

from recollect.codecs.openai.encode_message import FILE_TYPES
from recollect.entries import Content, FileRef, InlineData, Text, Unknown, json_text
from recollect.errors import BadInput

_DATA_URL = re.compile(r"(?a:data:([\w.+-]{1,80}/[\w.+-]{1,80});base64,)")
_AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
# Types of our own parts: an unknown part of this type could not be stored.
_OURS = frozenset({"text", "thought", "call", "result", "data", "file", "$unknown"})


def decode_part(value: object) -> Content:
    """One part of a message's content."""
    if isinstance(value, str):
        return Text(text=value)
    if not isinstance(value, dict):
        raise BadInput(f"a part of a message's content is a {type(value).__name__}, not an object")
    match value:
        case {"type": "text" | "input_text" | "output_text", "text": str(text)} | {
            "type": "refusal",
            "refusal": str(text),
        }:
            return Text(text=text)
        case {"type": "image_url", "image_url": {"url": str(url)}} | {
            "type": "image_url",
            "image_url": str(url),
        }:
            return _decode_link(url, "image/*")
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(format_)}}:
            mime = _AUDIO_TYPES.get(format_, f"audio/{format_[:40]}")
            return _decode_base64(data, mime) or _unknown_content(value)
        case {"type": "file", "file": {"file_data": str(data), **more}}:
            if data.startswith("data:"):
                return _decode_link(data, "")
            mime = _guess_type(more.get("filename"))
            return _decode_base64(data, mime) or _unknown_content(value)
        case {"type": "file", "file": {"file_id": str(id_)}}:
            return FileRef(mime="application/octet-stream", uri=id_)
    return _unknown_content(value)


def _unknown_content(value: dict[str, Any]) -> Unknown:
    kind = value.get("type")
    if isinstance(kind, str) and kind in _OURS:
        value = {**value, "type": f"openai.{kind}"}
    return Unknown(data=json_text(value))


def _decode_link(url: str, mime: str) -> InlineData | FileRef:
    head = _DATA_URL.match(url)
    found = _decode_base64(url[head.end() :], head.group(1)) if head else None
    return found or FileRef(mime=_guess_type(url, mime), uri=url)


def _decode_base64(data: str, mime: str) -> InlineData | None:
    try:
        coded = "".join(data.split()).encode("ascii")
        return InlineData(mime=mime, data=binascii.a2b_base64(coded, strict_mode=True))
    except (ValueError, UnicodeError):
        return None


def _guess_type(name: object, default: str = "application/octet-stream") -> str:
    path = name.partition("?")[0][-20:] if isinstance(name, str) else ""
    return FILE_TYPES.get(path.rpartition(".")[2].lower(), default)
