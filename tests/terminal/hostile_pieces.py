"""Random text that would take over a terminal which is sent it as it is."""

from __future__ import annotations

import random
import re
import unicodedata

MARK = "pwned"  # in what such a text wants to put somewhere
_CLIPBOARD = "cHduZWQ="  # the mark in base64
_ENDS = ("\x07", "\x1b\\", "\x9c", "", "\n")
_STRINGS = (
    *(f"{number};{MARK}" for number in (0, 1, 2, 9, 777)),
    *(f"52;{where};{_CLIPBOARD}" for where in ("c", "p", "", "cs0")),
    f"8;;http://{MARK}.example",
    *("10;?", "11;?", "4;1;?", "4;1;rgb:ff/00/00", "104", "112", "50;fixed", "133;A"),
)
_DEVICE = ("$qm", "+q544e", "1000p", f"tmux;\x1b\x1b]52;c;{_CLIPBOARD}\x07", f">|{MARK}")
_CSI = (
    *("2J", "3J", "H", "5;1H", "999;999H", "10A", "999B", "99C", "99D", "2K", "99L", "99M", "99@"),
    *("99P", "99X", "1;3r", "r", "5S", "5T", "4h", "20h", "?1049h", "?1049l", "?47h", "?25l"),
    *("?7l", "?6h", "?1h", "?5h", "?1000h", "?1003h", "?1006h", "?1004h", "?2004h", "?2004l"),
    *("?2026h", "200~", "201~", "0m", "7m", "8m", "38;5;1m", "3g", "0c", ">c", "6n", "?6n", "18t"),
    *("21t", "8;5;5t", "22;0t", "23;0t", "!p", "5 q", ">1u", "<u", "=1;1u", "?u", "4:3m", "b", "Z"),
)
_ESCAPES = (
    *"c78MDEHNO=>(0)0*+",
    "#8",
    "(0",
    ")0",
    "%@",
    "%G",
    "\x1b",
    "[",
    "]",
    "P",
    "_",
    "^",
    "X",
)
_ODD = (
    *("\u202e", "\u202d", "\u2066", "\u2067", "\u2069", "\u200e", "\u200f", "\u061c", "\u2028"),
    *("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\ufe0f", "\u3164", "\u115f"),
    *(
        "e\u0301",
        "z\u0335\u0489\u0489",
        "\u0e33",
        "\u1100\u1161\u11a8",
        "\U0001f468\u200d\U0001f469",
    ),
    *("\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "\U000e0041", "\ue000"),
    *("全角の文字", "ｗｉｄｅ", "\ufdfd", "\U00012031", "עברית", "مرحبا", "\x1b\u0301", "\ufffd"),
)
_OPENERS = ("\x90", "\x98", "\x9e", "\x9f", "\x1b_", "\x1b^", "\x1bX")  # of strings
_MARKUP = ("```\n", "# ", "- ", "> ", "| a | b |\n|---|---|\n", "**", "`", "[x](http://y)", "\n\n")
_WORDS = ("plain", "words", "between", "them", "\t", "\n", " ", "[bold]", "[/]", "{0}", "%s")


def hostile_piece(source: random.Random) -> str:
    string, end = source.choice(_STRINGS), source.choice(_ENDS)
    return source.choice(
        (
            f"\x1b[{source.choice(_CSI)}",
            f"\x9b{source.choice(_CSI)}",
            f"\x1b]{string}{end}",
            f"\x9d{string}{end}",
            f"\x1bP{source.choice(_DEVICE)}{end}",
            f"{source.choice(_OPENERS)}{MARK}{end}",
            f"\x1b{source.choice(_ESCAPES)}",
            chr(source.choice((*range(9), *range(11, 32), *range(127, 160)))),
            source.choice(_ODD),
            source.choice(_MARKUP),
            *(source.choice(_WORDS) for _ in range(4)),
        )
    )


def hostile_text(source: random.Random, pieces: int) -> str:
    return "".join(hostile_piece(source) + source.choice(("", " ", "x")) for _ in range(pieces))


def hostile_bytes(source: random.Random, pieces: int) -> bytes:
    """As a tool may write it: parts of it are no UTF-8."""
    written = bytearray()
    for _ in range(pieces):
        piece = hostile_piece(source).encode()
        cut = piece[: source.randrange(len(piece) + 1)] if source.random() < 0.2 else piece
        written += cut + source.choice((b"", b" ", b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\x9b2J"))
    return bytes(written)


def find_obeyed(written: str) -> list[str]:
    """What of a program's output a terminal would do that no program for a screen of text needs:
    setting anything but the window's title, the mark in a title, and characters that hide."""
    strings = re.findall(r"\x1b[\]PX^_][^\x07\x1b]*", written)
    own = re.compile(r"\x1b\](2;|22;|11;\?)(?!.*pwned)")
    found = [text for text in strings if not own.match(text)]
    hidden = "".join(sorted({char for char in written if _hides(char)}))
    return [*found, hidden] if hidden else found


def _hides(char: str) -> bool:
    if char in "\x1b\n\r\t\x07\x08\x0e\x0f":
        return False
    return (
        unicodedata.category(char) in ("Cc", "Cs") or char in "\u202e\u202d\u2066\u2067\u200e\u200f"
    )
