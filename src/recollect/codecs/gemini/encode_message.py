"""A message as a Gemini content.

Guarantees: every part is encoded on its own and always as the same bytes. A call's arguments are
embedded as the very text they are if that is a JSON object (`call_arguments.py`). A result of one
text is `{"output": text}`, a failed one `{"error": text}`;
any other result is a list under the same key, of texts and of `{"part": n}` for the media in the
response's own parts. A signature goes only to the model that made it. Content that Gemini cannot
take is reported as a `Fix`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence

import msgspec

from recollect.codecs.call_arguments import wrap_arguments
from recollect.codecs.fixes import Fix, FixKind, quote_text
from recollect.codecs.foreign_json import (
    SURROGATES,
    encode,
    parse_object,
    replace_surrogates,
)
from recollect.codecs.provider_errors import make_printable
from recollect.codecs.provider_rules import GeminiQuirks
from recollect.codecs.tool_names import name_fix, sent_tool_name
from recollect.codecs.wire_protocol import EncodedMessage
from recollect.entries import (
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

NOTHING_LEFT = "[what stood here has no form that Gemini takes]"
# The kinds of part that a server-side tool of Gemini makes. No part of ours stands for them.
SERVER_PARTS = frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"})
_BESIDE_SERVER_PARTS = SERVER_PARTS | {"thought", "thoughtSignature", "partMetadata"}
_MIME = re.compile(r"[A-Za-z0-9.+-]{1,60}/[A-Za-z0-9.+-]{1,100}")
_FETCHABLE = ("https://", "http://", "gs://")
_STANDARD_BASE64 = str.maketrans("-_", "+/")


class _PartMetadata(msgspec.Struct):
    """Fields beside the content of a part; stored in our part's `extra`."""

    thoughtSignature: str = ""  # noqa: N815 - the wire's spelling
    videoMetadata: dict[str, msgspec.Raw] | None = None  # noqa: N815


_decode_metadata = msgspec.json.Decoder(_PartMetadata).decode


def encode_message(quirks: GeminiQuirks, message: Message) -> EncodedMessage:
    parts = message.parts
    try:
        # nearly every message: one text and nothing beside it
        if len(parts) == 1 and isinstance(part := parts[0], Text) and not part.extra:
            return _as_content(b'{"text":' + encode(part.text) + b"}", message, [])
        return _encode_parts(message, quirks, [])
    except UnicodeEncodeError:
        fixes = [Fix("uncarried", 0, SURROGATES)]
        return _encode_parts(replace_surrogates(message), quirks, fixes)


def _encode_parts(message: Message, quirks: GeminiQuirks, fixes: list[Fix]) -> EncodedMessage:
    encoder = PartEncoder(quirks, quirks.rules.is_own(message), fixes)
    # a content without parts is refused
    parts = encoder.encode_parts(message) or [b'{"text":' + encode(NOTHING_LEFT) + b"}"]
    return _as_content(b",".join(parts), message, fixes)


def _as_content(parts: bytes, message: Message, fixes: list[Fix]) -> EncodedMessage:
    if message.role == "model":
        return EncodedMessage(b'{"role":"model","parts":[' + parts + b"]}", tuple(fixes))
    if message.role == "system":
        line = "an instruction among the messages is sent as a user's: Gemini has no such role"
        fixes = [*fixes, Fix("system", 0, line)]
    return EncodedMessage(b'{"role":"user","parts":[' + parts + b"]}", tuple(fixes))


def encode_object(text: str) -> bytes | None:
    """The text in UTF-8 if it is a JSON object of bounded depth, else None."""
    data = text.strip(" \t\r\n").encode()
    return None if parse_object(data) is None else data


def decode_base64(text: str) -> bytes | None:
    """The bytes, in either alphabet and with or without padding; None for anything else."""
    plain = text.rstrip("=").translate(_STANDARD_BASE64)
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _is_signature(text: str) -> bool:
    """Whether it may be Gemini's: the field holds bytes, and other text gets a 400."""
    plain, data = text.rstrip("="), decode_base64(text)
    mixed = ("+" in plain or "/" in plain) and ("-" in plain or "_" in plain)
    if not data or mixed:
        return False
    return base64.b64encode(data).decode().rstrip("=") == plain.translate(_STANDARD_BASE64)


class PartEncoder(msgspec.Struct):
    """Encodes the parts of one message, and collects a fix for each thing it could not encode."""

    quirks: GeminiQuirks
    own: bool  # whether the receiving model made the message: only then signatures are sent
    fixes: list[Fix] = []
    as_declared: bool = False  # whether tools keep the names that the receiver gave them
    _called: bool = False
    _after_results: list[bytes] = []

    def encode_parts(self, message: Message) -> list[bytes]:
        parts = [data for data in map(self.encode_part, message.parts) if data]
        return [*parts, *self._after_results]

    def encode_part(self, part: Part) -> bytes:
        """Empty for a part that cannot be sent."""
        if isinstance(part, Text):
            return b'{"text":' + encode(part.text) + self._metadata(part.extra) + b"}"
        if isinstance(part, ToolCall):
            return self._call(part)
        if isinstance(part, ToolResult):
            return self._result(part)
        if isinstance(part, Thought):
            return self._thought(part)
        if isinstance(part, Unknown):
            return self._unknown(part)
        return self._media(part)

    def _leave_out(self, line: str, kind: FixKind = "uncarried", call: str = "") -> None:
        self.fixes.append(Fix(kind, 0, line, call))

    def _signature(self, signature: str, call: str = "") -> bytes:
        if not signature:
            return b""
        if not self.own:
            self._leave_out("a signature of another model is left out", "signature", call)
        elif not _is_signature(signature):
            self._leave_out("a signature that is not base64 is left out: not Gemini's", call=call)
        else:
            return b',"thoughtSignature":' + encode(signature)
        return b""

    def _metadata(self, extra: str) -> bytes:
        if not extra:
            return b""
        try:
            metadata = _decode_metadata(extra.encode())
        except (msgspec.MsgspecError, RecursionError):
            return b""
        data = self._signature(metadata.thoughtSignature)
        if metadata.videoMetadata is not None:
            data += b',"videoMetadata":' + encode(metadata.videoMetadata)
        return data

    def _thought(self, part: Thought) -> bytes:
        if part.subject:
            self._leave_out(f"the subject {quote_text(part.subject)} of a thought is left out")
        signature = self._signature(part.signature)
        if part.text:
            return b'{"text":' + encode(part.text) + b',"thought":true' + signature + b"}"
        # Gemini signs a reply with an empty text at its end, and expects it back like that.
        return b'{"text":""' + signature + b"}" if signature else b""

    def _call(self, part: ToolCall) -> bytes:
        signature = self._signature(part.signature, part.id)
        stand_in = self.quirks.stand_in_signature
        if stand_in and not signature and not self._called:
            signature = b',"thoughtSignature":' + encode(stand_in)
        self._called = True
        head = self._id_and_name(part.id, part.name)
        arguments = wrap_arguments(part, self.fixes).strip().encode()
        return b'{"functionCall":{%b,"args":%b}%b}' % (head, arguments, signature)

    def _id_and_name(self, id_: str, name: str) -> bytes:
        accepted = name if self.as_declared else sent_tool_name(name, "gemini")
        if accepted != name:
            self.fixes.append(name_fix(name, accepted, call=id_))
        known = b'"id":' + encode(id_) + b"," if id_ else b""
        return known + b'"name":' + encode(accepted)

    def _result(self, part: ToolResult) -> bytes:
        key = b'"error":' if part.is_error else b'"output":'
        media: list[bytes] = []
        found = [self._content(block, media, part.call_id) for block in part.content]
        blocks = [block for block in found if block]
        is_text = len(blocks) == 1 and blocks[0].startswith(b'"')
        content = blocks[0] if is_text else b"[" + b",".join(blocks) + b"]"
        head = self._id_and_name(part.call_id, part.name)
        more = b',"parts":[' + b",".join(media) + b"]" if media else b""
        return b'{"functionResponse":{%b,"response":{%b}%b}}' % (head, key + content, more)

    def _content(self, block: Content, media: list[bytes], call: str) -> bytes:
        if isinstance(block, Text):
            return encode(block.text)
        if isinstance(block, Unknown):
            line = f"{quote_text(block.data)} in a result is left out: unknown kind"
            self._leave_out(line, call=call)
            return b""
        # the Gemini API has no files by address in a response's parts; another platform does
        if isinstance(block, InlineData) and _accepts(block.mime, self.quirks.result_media):
            media.append(b'{"inlineData":' + _blob(block) + b"}")
            return b'{"part":%d}' % (len(media) - 1)
        if isinstance(block, InlineData) and _accepts(block.mime, self.quirks.media):
            # the model takes it, only not inside of a result: Gemini CLI sends it beside them
            self._after_results.append(b'{"inlineData":' + _blob(block) + b"}")
            text = f"[{block.mime}, {len(block.data):,} bytes: sent after the results]"
            self._leave_out(f"in a tool's result {text[1:-1]}", "moved", call)
            return encode(text)
        return encode(self._placeholder(block, "in a tool's result "))

    def _media(self, part: InlineData | FileRef) -> bytes:
        if isinstance(part, InlineData):
            if _accepts(part.mime, self.quirks.media):
                return b'{"inlineData":' + _blob(part) + self._metadata(part.extra) + b"}"
        elif part.uri.startswith(_FETCHABLE) and (
            not part.mime or _accepts(part.mime, self.quirks.media)
        ):
            named = {"mimeType": part.mime} if part.mime else {}
            data = encode({**named, "fileUri": part.uri})
            return b'{"fileData":' + data + self._metadata(part.extra) + b"}"
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
        self._leave_out(f"{where}{text[1:-1]}; a placeholder is sent")
        return text

    def _unknown(self, part: Unknown) -> bytes:
        data = encode_object(part.data) or b""
        value = parse_object(data) or {}
        kinds = SERVER_PARTS.intersection(value)
        fits = len(kinds) == 1 and _BESIDE_SERVER_PARTS.issuperset(value)
        signature = value.get("thoughtSignature", "")
        signed = signature == "" or (self.own and _is_signature(str(signature)))
        if fits and signed and all(isinstance(value[kind], dict) for kind in kinds):
            return data
        self._leave_out(f"{quote_text(part.data)} is left out: Gemini has no such part")
        return b""


def _accepts(mime: str, prefixes: Sequence[str]) -> bool:
    return mime.startswith(tuple(prefixes)) and _MIME.fullmatch(mime) is not None


def _blob(part: InlineData) -> bytes:
    return encode({"mimeType": part.mime, "data": part.data})
