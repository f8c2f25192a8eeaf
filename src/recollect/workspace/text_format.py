"""A file's bytes as text, and back without changing a byte that was not meant.

`decode_bytes` finds the encoding: byte order marks first, then UTF-8, UTF-16 and UTF-32 without a
mark, then Windows-1252. Bytes that are text in none of these are carried along as lone surrogates,
so encoding what was decoded gives the same bytes again. `None` means that the data is binary. Text
that is added must exist in the file's encoding; `NotInEncoding` names the character that does not.
`decode_text` gives the text alone, as it is shown.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import NamedTuple

from recollect.workspace.media_types import has_binary_signature

UNKNOWN_BYTE = "�"  # how a byte is shown that is not text
_SAMPLE = 65_536  # bytes by which binary data is judged
_NUL_SAMPLE = 8_192
_MAX_CONTROLS = 0.3  # share of control characters in UTF-8 text
_MAX_STRAY_CONTROLS = 0.02  # and in bytes that are not UTF-8, where compressed data has a tenth
_STRAYS_PER_CHARACTER = 4  # sequences that are UTF-8 by chance are rarer than this
_MAX_WESTERN_RUN = 3  # Windows-1252 has its letters beyond ASCII one by one, other encodings do not
_MIN_READABLE = 0.01  # share of visible ASCII where the rest is shown as �
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\r\f\b\x1b"))
_UNREADABLE = bytes({*range(33), *range(127, 256)})
_HIGH_RUN = re.compile(rb"[\x80-\xff]{%d}" % (_MAX_WESTERN_RUN + 1))
_SURROGATE = re.compile("[\ud800-\udfff]")
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
_MARKS = (  # longest first: UTF-32 begins like UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_NAMES = {
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32-le": "UTF-32",
    "utf-32-be": "UTF-32",
    "cp1252": "Windows-1252",
    "ascii": "an unknown encoding",
}


class NotInEncoding(ValueError):
    """A text has a character that a file's encoding has no place for."""


class TextFormat(NamedTuple):
    """How a file's text is stored."""

    encoding: str = "utf-8"
    mark: bytes = b""  # the byte order mark it begins with
    errors: str = "strict"  # surrogateescape: some bytes are not text; replace: it cannot be stored

    @property
    def name(self) -> str:
        return _NAMES[self.encoding] + (" with a byte order mark" if self.mark else "")

    @property
    def is_usual(self) -> bool:
        return self == TextFormat()

    @property
    def is_broken(self) -> bool:
        """Whether what was decoded cannot be encoded again."""
        return self.errors == "replace"

    def encode(self, text: str) -> bytes:
        """The file's bytes for a text that was decoded, or checked with `encode_new`."""
        return self.mark + text.encode(self.encoding, self.errors)

    def encode_new(self, text: str, what: str, path: str) -> bytes:
        """The bytes of a text that is to be added; fails when the encoding has no place for it."""
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = text[error.start]
            line = text.count("\n", 0, error.start) + 1
        if "\ud800" <= character <= "\udfff":
            raise NotInEncoding(
                f"line {line} of {what} has half a character (a lone surrogate); write it again"
            )
        known = f"{path} is in {self.name}, which has no {character!r} (U+{ord(character):04X})"
        if self.encoding == "ascii":
            known = f"the encoding of {path} is not known, so {character!r} cannot be written"
        raise NotInEncoding(
            f"{known}, line {line} of {what}; write it without that character, or convert the "
            "file to UTF-8 with a command first"
        )


class DecodedText(NamedTuple):
    """A file's text without its byte order mark, line breaks as they are in the file."""

    text: str
    format: TextFormat

    @property
    def shown(self) -> str:
        """The text as a model reads it: lone surrogates become `�`, and CR line breaks LF."""
        text = self.text
        if self.format.errors != "strict" or self.format.encoding in _WIDE:
            text = replace_surrogates(text)
        return text.replace("\r", "\n") if "\r" in text and "\n" not in text else text


def replace_surrogates(text: str) -> str:
    """The text with a sign for each byte that is not text."""
    return _SURROGATE.sub(UNKNOWN_BYTE, text)


def decode_text(data: bytes) -> str | None:
    """A file's text as it is shown, or None when it is binary. Bytes that are text in no known
    encoding are shown as �."""
    found = decode_bytes(data)
    return None if found is None else found.shown


def decode_bytes(data: bytes) -> DecodedText | None:
    """The text of a file, or None when it is binary."""
    for mark, encoding in _MARKS:
        if data.startswith(mark) and (found := _decode_marked(data, mark, encoding)) is not None:
            return found
    if b"\0" in data[:_NUL_SAMPLE]:
        return _decode_wide(data)
    if has_binary_signature(data):
        return None
    sample = data[:_SAMPLE]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        is_text = controls <= _MAX_STRAY_CONTROLS * len(sample)
        return _decode_other(data) if is_text else None
    return DecodedText(text, TextFormat()) if controls <= _MAX_CONTROLS * len(sample) else None


def _decode_marked(data: bytes, mark: bytes, encoding: str) -> DecodedText | None:
    body = data[len(mark) :]
    try:
        return DecodedText(body.decode(encoding), TextFormat(encoding, mark))
    except UnicodeDecodeError:
        if encoding == "utf-8":
            escaped = TextFormat(encoding, mark, "surrogateescape")
            return DecodedText(body.decode(encoding, escaped.errors), escaped)
    text = body.decode(encoding, "replace")
    if text.count(UNKNOWN_BYTE) > _MAX_STRAY_CONTROLS * len(text) + 1 or not _is_plain(text):
        return None
    return DecodedText(text, TextFormat(encoding, mark, "replace"))


def _decode_wide(data: bytes) -> DecodedText | None:
    """Text in UTF-16 or UTF-32 without a mark: all of it must be characters that text has."""
    for encoding in _WIDE:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if any(" " <= letter <= "~" or letter == "\n" for letter in text[:_SAMPLE]) and (
            _is_plain(text)
        ):
            return DecodedText(text, TextFormat(encoding))
    return None


def _is_plain(text: str) -> bool:
    """Whether a text has neither control characters nor code points that mean nothing."""
    others = set(text) - set("\t\n\r\f")
    return all(unicodedata.category(letter) not in ("Cc", "Cn", "Co", "Cs") for letter in others)


def _decode_other(data: bytes) -> DecodedText | None:
    """Bytes that are not UTF-8: nearly UTF-8, Windows-1252, or of an encoding that is not known;
    None if nothing of it could be read."""
    text = data.decode("utf-8", "surrogateescape")
    plain = len(text.encode("ascii", "ignore"))
    strays = sum(len(run) for run in re.findall("[\udc80-\udcff]+", text))
    if (len(text) - plain - strays) * _STRAYS_PER_CHARACTER > strays:
        return DecodedText(text, TextFormat(errors="surrogateescape"))
    if not _HIGH_RUN.search(data):
        try:
            return DecodedText(data.decode("cp1252"), TextFormat("cp1252"))
        except UnicodeDecodeError:
            pass  # it has bytes that Windows-1252 leaves undefined
    sample = data[:_SAMPLE]
    if len(sample.translate(None, _UNREADABLE)) < _MIN_READABLE * len(sample):
        return None
    escaped = TextFormat("ascii", errors="surrogateescape")
    return DecodedText(data.decode("ascii", escaped.errors), escaped)
