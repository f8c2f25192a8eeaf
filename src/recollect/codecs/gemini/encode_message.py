"""A message's parts as parts of a Gemini content.

Guarantees: every part is written on its own and always as the same bytes. A call's arguments stand
there as the very text they are, if that is a JSON object; other text travels as the only value of
an object, under `RAW_ARGUMENTS`. A result of one text is `{"output": text}`, a failed one
`{"error": text}`; any other result is a list under the same key, of texts and of `{"part": n}` for
the media that ride in the response's own parts. What Gemini has no place for is told as a `Fix`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec

from recollect.codecs.fixes import Fix, FixKind, quote_text
from recollect.codecs.provider_errors import make_printable
from recollect.entries import (
    MAX_DEPTH,
    Content,
    FileRef,
    InlineData,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)

RAW_ARGUMENTS = "_arguments_as_text"
NOTHING_LEFT = "[what stood here has no form that Gemini takes]"
UNNAMED = "unnamed"
EVERYTHING = ("",)  # as prefixes of media types
# The kinds of part that a server-side tool of Gemini makes. No part of ours stands for them.
SERVER_PARTS = frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"})
_BESIDE_SERVER_PARTS = SERVER_PARTS | {"thought", "thoughtSignature", "partMetadata"}
_NAME = r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}"
_NOT_IN_NAME = r"[^A-Za-z0-9_.:-]"
_MIME = r"[A-Za-z0-9.+-]{1,60}/[A-Za-z0-9.+-]{1,100}"
_HALF_PAIR = "[\ud800-\udfff]"
_compiled = cache(re.compile)
_OPENABLE = ("https://", "http://", "gs://")
_STANDARD = str.maketrans("-_", "+/")
_V = TypeVar("_V")

encode = msgspec.json.Encoder().encode


class _PartMetadata(msgspec.Struct):
    """What may stand beside the content of a part; kept in our part's `extra`."""

    thoughtSignature: str = ""  # noqa: N815 - the wire's spelling
    videoMetadata: dict[str, msgspec.Raw] | None = None  # noqa: N815


_beside = msgspec.json.Decoder(_PartMetadata).decode


def replace_surrogates(value: _V) -> _V:
    """The same value with U+FFFD for every half of a surrogate pair: UTF-8 has none."""
    changed: Any = value
    if isinstance(value, str):
        changed = _compiled(_HALF_PAIR).sub("\ufffd", value)
    elif isinstance(value, tuple):
        changed = tuple(replace_surrogates(item) for item in value)
    elif isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        changed = msgspec.structs.replace(
            value, **{n: replace_surrogates(getattr(value, n)) for n in names}
        )
    return changed  # type: ignore[no-any-return]


def surrogate_fix(message: int) -> Fix:
    line = "halves of surrogate pairs are sent as U+FFFD: UTF-8 cannot carry them"
    return Fix("uncarried", message, line)


def encode_object(text: str) -> bytes | None:
    """The text in UTF-8 if it is a JSON object of bearable depth, else None."""
    data = text.strip(" \t\r\n").encode()
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    openings = data.count(b"{") + data.count(b"[")
    return data if openings <= MAX_DEPTH or is_shallow(value) else None


def is_shallow(value: object) -> bool:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return False
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        level = below
    return True


def decode_base64(text: str) -> bytes | None:
    """What base64 stands for, in either alphabet and with or without padding, else None."""
    plain = text.rstrip("=").translate(_STANDARD)
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _is_signature(text: str) -> bool:
    """Whether this can be one of Gemini's: the field is of bytes, and others make it answer 400."""
    plain, data = text.rstrip("="), decode_base64(text)
    mixed = ("+" in plain or "/" in plain) and ("-" in plain or "_" in plain)
    if not data or mixed:
        return False
    return base64.b64encode(data).decode().rstrip("=") == plain.translate(_STANDARD)


class PartEncoder(msgspec.Struct):
    """Writes the parts of one message, and remembers what could not be written."""

    own: bool  # whether the model that reads this made it: only then signatures are written
    media: Sequence[str] = EVERYTHING
    result_media: Sequence[str] = EVERYTHING
    stand_in: str = ""  # the signature of a first call that has none
    fixes: list[Fix] = []
    _called: bool = False

    def parts(self, message: Message) -> list[bytes]:
        return [data for data in map(self.part, message.parts) if data]

    def part(self, part: Part) -> bytes:
        """Empty for what cannot be written."""
        if isinstance(part, Text):
            return b'{"text":' + encode(part.text) + self._beside(part.extra) + b"}"
        if isinstance(part, ToolCall):
            return self._call(part)
        if isinstance(part, ToolResult):
            return self._result(part)
        if isinstance(part, Thought):
            return self._thought(part)
        if isinstance(part, Unknown):
            return self._unknown(part)
        return self._media(part)

    def left_out(self, line: str, kind: FixKind = "uncarried", call: str = "") -> None:
        self.fixes.append(Fix(kind, 0, line, call))

    def _signature(self, signature: str, call: str = "") -> bytes:
        if not signature:
            return b""
        if not self.own:
            self.left_out("a signature of another model is left out", "signature", call)
        elif not _is_signature(signature):
            self.left_out("a signature that is not base64 is left out: not Gemini's", call=call)
        else:
            return b',"thoughtSignature":' + encode(signature)
        return b""

    def _beside(self, extra: str) -> bytes:
        if not extra:
            return b""
        try:
            beside = _beside(extra.encode())
        except (msgspec.MsgspecError, RecursionError):
            return b""
        data = self._signature(beside.thoughtSignature)
        if beside.videoMetadata is not None:
            data += b',"videoMetadata":' + encode(beside.videoMetadata)
        return data

    def _thought(self, part: Thought) -> bytes:
        if part.subject:
            self.left_out(f"the subject {quote_text(part.subject)} of a thought is left out")
        signature = self._signature(part.signature)
        if part.text:
            return b'{"text":' + encode(part.text) + b',"thought":true' + signature + b"}"
        # Gemini signs an answer in an empty text at its end, and wants it back like that.
        return b'{"text":""' + signature + b"}" if signature else b""

    def _call(self, part: ToolCall) -> bytes:
        signature = self._signature(part.signature, part.id)
        if self.stand_in and not signature and not self._called:
            signature = b',"thoughtSignature":' + encode(self.stand_in)
        self._called = True
        head = self._identified(part.id, part.name)
        return (
            b'{"functionCall":{'
            + head
            + b',"args":'
            + self._arguments(part)
            + b"}"
            + (signature + b"}")
        )

    def _identified(self, id_: str, name: str) -> bytes:
        accepted = name
        if not _compiled(_NAME).fullmatch(name):
            accepted = re.sub(_NOT_IN_NAME, "_", name[:127]) or UNNAMED
            if not _compiled(_NAME).fullmatch(accepted):
                accepted = "_" + accepted
            line = f"the tool's name {quote_text(name)} is sent as {accepted[:60]!r}: Gemini refuses it"
            self.left_out(line, call=id_)
        known = b'"id":' + encode(id_) + b"," if id_ else b""
        return known + b'"name":' + encode(accepted)

    def _arguments(self, part: ToolCall) -> bytes:
        text = part.arguments
        if not text:
            return b"{}"
        data = encode_object(text) if RAW_ARGUMENTS not in text else None
        if data is not None:
            return data
        line = f"the arguments of call {quote_text(part.id)} are no JSON object: sent as text"
        self.left_out(line, call=part.id)
        return encode({RAW_ARGUMENTS: text})

    def _result(self, part: ToolResult) -> bytes:
        key = b'"error":' if part.is_error else b'"output":'
        media: list[bytes] = []
        found = [self._block(block, media, part.call_id) for block in part.content]
        blocks = [block for block in found if block]
        is_text = len(blocks) == 1 and blocks[0].startswith(b'"')
        said = blocks[0] if is_text else b"[" + b",".join(blocks) + b"]"
        head = self._identified(part.call_id, part.name)
        more = b',"parts":[' + b",".join(media) + b"]" if media else b""
        return b'{"functionResponse":{%b,"response":{%b}%b}}' % (head, key + said, more)

    def _block(self, block: Content, media: list[bytes], call: str) -> bytes:
        if isinstance(block, Text):
            return encode(block.text)
        if isinstance(block, Unknown):
            self.left_out(
                f"{quote_text(block.data)} in a result is left out: no known kind", call=call
            )
            return b""
        # the Gemini API knows files by address in a response's parts only on another platform
        if isinstance(block, InlineData) and _takes(block.mime, self.result_media):
            media.append(b'{"inlineData":' + _blob(block) + b"}")
            return b'{"part":%d}' % (len(media) - 1)
        return encode(self._placeholder(block, "in a tool's result "))

    def _media(self, part: InlineData | FileRef) -> bytes:
        if isinstance(part, InlineData):
            if _takes(part.mime, self.media):
                return b'{"inlineData":' + _blob(part) + self._beside(part.extra) + b"}"
        elif part.uri.startswith(_OPENABLE) and (not part.mime or _takes(part.mime, self.media)):
            named = {"mimeType": part.mime} if part.mime else {}
            data = encode({**named, "fileUri": part.uri})
            return b'{"fileData":' + data + self._beside(part.extra) + b"}"
        return b'{"text":' + encode(self._placeholder(part)) + b"}"

    def _placeholder(self, part: InlineData | FileRef, where: str = "") -> str:
        mime = make_printable(part.mime, 60) or "a file"
        if isinstance(part, InlineData):
            major = part.mime.partition("/")[0]
            noun = {"image": "images", "audio": "audio", "video": "video"}.get(major, "such files")
            text = f"[{mime}, {len(part.data):,} bytes: this model takes no {noun}"
            text += f" {where.strip()}]" if where else "]"
        else:
            text = f"[{mime} at {make_printable(part.uri, 300)}: this model cannot open it]"
        self.left_out(f"{where}{text[1:-1]}; a placeholder is sent")
        return text

    def _unknown(self, part: Unknown) -> bytes:
        value: object = None
        data = encode_object(part.data)
        if data is not None:
            value = msgspec.json.decode(data)
        if isinstance(value, dict) and data is not None:
            kinds = SERVER_PARTS.intersection(value)
            fits = len(kinds) == 1 and _BESIDE_SERVER_PARTS.issuperset(value)
            signature = value.get("thoughtSignature", "")
            signed = signature == "" or (self.own and _is_signature(str(signature)))
            if fits and signed and all(isinstance(value[kind], dict) for kind in kinds):
                return data
        self.left_out(f"{quote_text(part.data)} is left out: Gemini has no such part")
        return b""


def _takes(mime: str, prefixes: Sequence[str]) -> bool:
    return mime.startswith(tuple(prefixes)) and re.fullmatch(_MIME, mime) is not None


def _blob(part: InlineData) -> bytes:
    return encode({"mimeType": part.mime, "data": part.data})
