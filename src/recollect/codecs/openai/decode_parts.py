"""Text, pictures, sound and files as parts of an OpenAI message, both ways.

`encode_content` writes one part; what the model or the wire does not take is a line of text that
names it, and a `Fix`. `read_part` is the inverse and takes every part the documentation knows; a
part of another kind becomes `Unknown` with its JSON. Base64 that is none stays what it was: a link.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Sequence
from typing import Any

from recollect.codecs.fixes import Fix
from recollect.codecs.provider_errors import make_printable
from recollect.entries import Content, FileRef, InlineData, Text, Unknown, json_text
from recollect.errors import BadInput

_MIME = r"(?a:[\w.+-]{1,80}/[\w.+-]{1,80})"
_DATA_URL = r"(?a:data:([\w.+-]{1,80}/[\w.+-]{1,80});base64,)"
# The documentation knows these two; mp3 is registered as audio/mpeg.
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_SOUND_MIMES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_ENDINGS = {
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "webp": "image/webp",
}
_KINDS = {"image": "images", "audio": "sound", "video": "video"}
# Types that our own records use: an unknown part of this name could not be stored.
_OURS = frozenset({"text", "thought", "call", "result", "data", "file", "$unknown"})


def encode_content(
    part: Content, media: Sequence[str], fixes: list[Fix], *, place: str = ""
) -> dict[str, Any] | None:
    """The part as the wire has it; None for what has no place at all. `place` names a role that
    takes nothing but text."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Unknown):
        line = f"a part of an unknown kind is left out ({len(part.data):,} characters)"
        fixes.append(Fix("uncarried", 0, line))
        return None
    made = None if place else _media_part(part, media)
    if made is not None:
        return made
    text = describe_unsent_media(part, media, place)
    fixes.append(Fix("uncarried", 0, f"sent as a line of text: {text}"))
    return {"type": "text", "text": text}


def describe_unsent_media(part: InlineData | FileRef, media: Sequence[str], place: str = "") -> str:
    mime = make_printable(part.mime, 60) or "a file"
    size = (
        f"{len(part.data):,} bytes"
        if isinstance(part, InlineData)
        else make_printable(part.uri, 200)
    )
    kind = _KINDS.get(part.mime.partition("/")[0].lower(), "such files")
    if place:
        why = f"{place} carries text only"
    elif _takes(part.mime, media):
        why = "this format has no place for it"
    else:
        why = f"this model takes no {kind}"
    return f"[{mime}, {size}: {why}]"


def _takes(mime: str, media: Sequence[str]) -> bool:
    return mime.lower().startswith(tuple(media))


def _media_part(part: InlineData | FileRef, media: Sequence[str]) -> dict[str, Any] | None:
    if not _takes(part.mime, media) or not re.fullmatch(_MIME, part.mime):
        return None
    kind = part.mime.partition("/")[0].lower()
    if isinstance(part, FileRef):
        if kind == "image" and part.uri.startswith(("https://", "http://")):
            return {"type": "image_url", "image_url": {"url": part.uri}}
        # an uploaded file is named by an id, which is no address
        if kind != "image" and part.uri and ":" not in part.uri:
            return {"type": "file", "file": {"file_id": part.uri}}
        return None
    data = binascii.b2a_base64(part.data, newline=False).decode()
    if kind == "audio":
        sound = _SOUNDS.get(part.mime)
        body = {"data": data, "format": sound}
        return {"type": "input_audio", "input_audio": body} if sound else None
    url = f"data:{part.mime};base64,{data}"
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    ending = next((e for e, mime in _ENDINGS.items() if mime == part.mime), "bin")
    return {"type": "file", "file": {"filename": f"file.{ending}", "file_data": url}}


# --- reading -----------------------------------------------------------------------------------


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
            return _linked(url, "image/*")
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(format_)}}:
            mime = _SOUND_MIMES.get(format_, f"audio/{format_[:40]}")
            return _decoded(data, mime) or unknown_content(value)
        case {"type": "file", "file": {"file_data": str(data), **more}}:
            found = _linked(data, "") if data.startswith("data:") else None
            return found or _decoded(data, _mime_of(more.get("filename"))) or unknown_content(value)
        case {"type": "file", "file": {"file_id": str(id_)}}:
            return FileRef(mime="application/octet-stream", uri=id_)
    return unknown_content(value)


def unknown_content(value: dict[str, Any]) -> Unknown:
    kind = value.get("type")
    if isinstance(kind, str) and kind in _OURS:
        value = {**value, "type": f"openai.{kind}"}
    return Unknown(data=json_text(value))


def _linked(url: str, mime: str) -> InlineData | FileRef:
    head = re.match(_DATA_URL, url)
    found = _decoded(url[head.end() :], head.group(1)) if head else None
    return found or FileRef(mime=_mime_of(url, mime), uri=url)


def _decoded(data: str, mime: str) -> InlineData | None:
    try:
        return InlineData(mime=mime, data=binascii.a2b_base64(data.encode("ascii")))
    except (ValueError, UnicodeError):
        return None


def _mime_of(name: object, default: str = "application/octet-stream") -> str:
    path = name.partition("?")[0][-20:] if isinstance(name, str) else ""
    return _ENDINGS.get(path.rpartition(".")[2].lower(), default)
