"""Bytes become text and the same bytes again; what is binary is not called text."""

from __future__ import annotations

import codecs
import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.tools.line_endings import normalize, raw_offsets
from recollect.workspace.text_format import NotInEncoding, TextFormat, decode_bytes, decode_text

MARKED = ["utf-8-sig", "utf-16", "utf-32"]
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=200)


@given(
    st.binary(max_size=400)
    | st.text("aé你\r\n\ud83d\U0001f600", max_size=80).map(
        lambda text: text.encode("utf-16", "surrogatepass")
    )
)
def test_what_is_decoded_is_encoded_to_the_same_bytes(data: bytes) -> None:
    found = decode_bytes(data)
    if found is not None and not found.format.is_broken:
        assert found.format.encode(found.text) == data


@given(text=ANY_TEXT, encoding=st.sampled_from(MARKED))
def test_text_with_a_mark_is_read_whatever_it_says(text: str, encoding: str) -> None:
    found = decode_bytes(text.encode(encoding))
    assert found is not None
    assert found.text == text
    assert found.format.mark


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_text_in_several_encodings_is_read(encoding: str) -> None:
    assert decode_text("grüße 你好\n".encode(encoding)) == "grüße 你好\n"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", ["key=1\r\n", "grüße 你好\n", "你好，世界\n再见 a\n", "\u3000x\n"])
def test_wide_text_without_a_mark_is_recognized(text: str, encoding: str) -> None:
    found = decode_bytes(text.encode(encoding))
    assert found is not None
    assert (found.text, found.format) == (text, TextFormat(encoding))


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("naïve café, 5 €\n".encode("cp1252"), "cp1252"),
        ("Ärger über Öl\r\n".encode("latin-1"), "cp1252"),
        ("grüße 你好 ".encode() + b"\xe9", "utf-8"),  # one bad byte does not make it another
        ("// 你好世界\n".encode("gbk"), "ascii"),
        ("// привет\n".encode("cp1251"), "ascii"),
        (b"caf\xe9 \x81\n", "ascii"),  # Windows-1252 does not have 0x81
    ],
)
def test_bytes_that_are_not_utf_8_are_told_apart(data: bytes, encoding: str) -> None:
    found = decode_bytes(data)
    assert found is not None
    assert found.format.encoding == encoding


def test_compressed_and_random_bytes_are_binary() -> None:
    source = random.Random(1)
    for size in (60, 200, 5_000):
        noise = bytes(source.choice(range(1, 256)) for _ in range(size))
        assert decode_bytes(noise) is None
    assert decode_bytes(gzip.compress(b"some text", mtime=0)) is None
    assert decode_bytes(b"PK\x03\x04 and words") is None
    assert decode_bytes(b"\x01\x02\x03\x04 x") is None


def test_ordinary_text_is_text() -> None:
    for data in (b"", b"\x1b[31mred\x1b[0m\n", b"a\x0cb\n", b"one\x07bell and more text\n"):
        assert decode_bytes(data) is not None


def test_a_character_that_the_encoding_lacks_is_named_with_its_line() -> None:
    with pytest.raises(NotInEncoding, match=r"Windows-1252, which has no '你' \(U\+4F60\), line 2"):
        TextFormat("cp1252").encode_new("a\n你", "content", "f")
    with pytest.raises(NotInEncoding, match="encoding of f is not known"):
        TextFormat("ascii", errors="surrogateescape").encode_new("é", "content", "f")
    with pytest.raises(NotInEncoding, match="half a character"):
        TextFormat("utf-16-le").encode_new("\ud800", "content", "f")


@given(st.text("a\r\n", max_size=40))
def test_positions_lead_back_to_the_text_and_never_into_a_break(text: str) -> None:
    plain = normalize(text)
    offsets = list(raw_offsets(text, range(len(plain) + 1)))
    assert offsets[-1] == len(text)
    for at, offset in enumerate(offsets):
        assert normalize(text[:offset]) == plain[:at]
        assert text[offset - 1 : offset + 1] != "\r\n" or offset == 0


@pytest.mark.parametrize(
    ("data", "is_text"),
    [
        ("Hello, 世界! 🌍".encode("utf-8-sig"), True),
        (codecs.BOM_UTF16_LE + "Hello, 世界! 🌍".encode("utf-16-le"), True),
        (codecs.BOM_UTF16_BE + "Hello, 世界! 🌍".encode("utf-16-be"), True),
        (codecs.BOM_UTF32_LE + "Hello, 世界! 🌍".encode("utf-32-le"), True),
        (codecs.BOM_UTF32_BE + "Hello, 世界! 🌍".encode("utf-32-be"), True),
        (b"", True),
        (b"Hello\0world", False),
        (b"He\0llo" + bytes(5), False),
        (b"AB\x01\x02\x03\x04\x05CD\x06", False),
        (b"\x80" * 128, False),  # nothing of it could be read
        ("char REPLACEMENT = '\ufffd';\n".encode(), True),
        ("\ufffd\ufffd hello \u4e16\u754c \U0001f600\n".encode(), True),
        (b"\xef\xbb", True),  # the beginning of a byte order mark
        (bytes(range(1, 11)), False),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", False),
        (b'<?xml version="1.0"?>\n<AdapterType Name="A"/>\n', True),
    ],
)
def test_gemini_clis_cases_of_text_and_binary_files_hold(data: bytes, is_text: bool) -> None:
    found = decode_bytes(data)
    assert (found is not None) is is_text
    marked = data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if found is not None and marked:
        assert found.text == "Hello, 世界! 🌍"
