"""What a file is, by its first bytes and never by its name: media that models take, or binary.

Everything here looks at the beginning of the data only.
"""

from __future__ import annotations

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3\x02", "audio/mpeg"),
    (b"ID3\x03", "audio/mpeg"),
    (b"ID3\x04", "audio/mpeg"),
    (b"fLaC\x00", "audio/flac"),
    (b"OggS\x00", "audio/ogg"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"FLV\x01", "video/x-flv"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video/x-ms-wmv"),
)
_CONTAINERS = {  # the first four bytes, and what stands at 8
    (b"RIFF", b"WEBP"): "image/webp",
    (b"RIFF", b"WAVE"): "audio/wav",
    (b"RIFF", b"AVI "): "video/x-msvideo",
    (b"FORM", b"AIFF"): "audio/aiff",
    (b"FORM", b"AIFC"): "audio/aiff",
}
_BRANDS = {  # of the ISO family, after `ftyp`; any other brand is a video
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
    b"avif": "image/avif",
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"qt  ": "video/quicktime",
    b"3gp4": "video/3gpp",
    b"3gp5": "video/3gpp",
    b"3gp6": "video/3gpp",
}
_BINARY_SIGNATURES = (
    b"\x1f\x8b\x08",  # gzip
    b"PK\x03\x04",  # zip, and everything made of it
    b"PK\x05\x06",
    b"BZh91AY&SY",
    b"\xfd7zXZ\x00",
    b"7z\xbc\xaf\x27\x1c",
    b"\x28\xb5\x2f\xfd",  # zstandard
    b"\x04\x22\x4d\x18",  # lz4
    b"Rar!\x1a\x07",
    b"\x7fELF",
    b"\xca\xfe\xba\xbe",  # a Java class, or a program of macOS
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\x00asm",
    b"SQLite format 3\x00",
    b"wOFF\x00",
    b"wOF2\x00",
    b"OTTO\x00",
    b"\x00\x01\x00\x00\x00",  # a TrueType font
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",  # documents of old Office programs
    b"!<arch>\n",
)


def media_type(data: bytes) -> str:
    """The type of an image, a PDF, a sound or a video; empty for anything else."""
    for start, mime in _SIGNATURES:
        if data.startswith(start):
            return mime
    if contained := _CONTAINERS.get((data[:4], data[8:12])):
        return contained
    if data[4:8] == b"ftyp" and data[:2] == b"\0\0":
        return _BRANDS.get(data[8:12], "video/mp4")
    if data.startswith(b"\x1a\x45\xdf\xa3"):  # Matroska; its header names the kind of document
        return "video/webm" if b"webm" in data[:64] else "video/x-matroska"
    return _raw_audio_type(data)


def _raw_audio_type(data: bytes) -> str:
    """The type of sound that has no header of its own, by the header of its first frame."""
    if len(data) < 4 or data[0] != 0xFF:
        return ""
    if data[1] in (0xF1, 0xF9):
        return "audio/aac"
    sound_bits, rate = data[2] >> 4, data[2] >> 2 & 3
    is_frame = data[1] in (0xFB, 0xFA, 0xF3, 0xF2, 0xE3) and 0 < sound_bits < 15 and rate < 3
    return "audio/mpeg" if is_frame else ""


def has_binary_signature(data: bytes) -> bool:
    """Whether the data begins as an archive, a program or another binary format does."""
    return data.startswith(_BINARY_SIGNATURES)
