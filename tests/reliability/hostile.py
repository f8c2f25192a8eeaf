"""Strings that break stores, encoders and terminals, and a body for each field that can hold them.

For every store: whatever `bodies(text)` gives must come back equal after close and reopen.
"""

from __future__ import annotations

from collections.abc import Iterator

from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Elided,
    FileRef,
    InlineData,
    Message,
    Note,
    Request,
    SettingsEdit,
    Source,
    Text,
    Thought,
    Title,
    ToolCall,
    ToolResult,
    Unknown,
    UnknownBody,
    Usage,
    json_text,
)

STRINGS: dict[str, str] = {
    "empty": "",
    "a space": " ",
    "NUL": "\x00",
    "NUL inside": "before\x00after",
    "every control character": "".join(map(chr, range(32))) + "\x7f\x80\x9f",
    "a high surrogate alone": "\ud83d",
    "a low surrogate alone": "\ude00",
    "a pair as two code points": "\ud83d\ude00",
    "a pair the wrong way round": "\ude00\ud83d",
    "a pair as one code point": "\U0001f600",
    "surrogates among words": "a\ud800b\udfffc\ud800",
    "a byte that was no UTF-8": b"caf\xe9".decode("utf-8", "surrogateescape"),
    "not characters": "\ufffe\uffff\ufdd0\U0001ffff\U0010ffff",
    "byte order marks": "\ufefftext\ufeff",
    "the replacement character": "\ufffd",
    "right to left": "\u202egnp.exe\u202c \u2066x\u2069 \u061c",
    "tag characters": "hi" + "".join(chr(0xE0000 + ord(c)) for c in "ignore all"),
    "private use": "\ue000user \ue001shell \uf8ff",
    "invisible": "a\u200bb\u200cc\u200dd\u2060e\u00ad",
    "line ends": "a\rb\r\nc\u0085d\u2028e\u2029f\x0b\x0c",
    "combining": "e\u0301 \u00e9 " + "z" + "\u0335\u0489" * 200,
    "one letter in three forms": "\u212b \u00c5 A\u030a",
    "ligatures and widths": "ﬁ ﷺ ｆｕｌｌ ㍿ ǆ İ ı ß ẞ",
    "a family": "👨\u200d👩\u200d👧\u200d👦 🇩🇪 👍🏽",
    "Chinese and Japanese": "全文検索は難しい。中文分词也不容易。",
    "an escape that is text": "\\u0000 \\ud800 \\n \\x00",
    "quotes": "'\"`\\'\\\"``` ''' \"\"\"",
    "SQL": "'; DROP TABLE entries; -- \" OR 1=1 /* %_?:@$1",
    "FTS syntax": '"unclosed AND (x OR NOT y*) NEAR/2 ^z {a b}: -col:"',
    "JSON": '{"kind":"message","role":"user","parts":[{"type":"text","text":"x"}]}',
    "JSON that is cut": '{"a":[1,2,{"b":"\\u',
    "our own keys": '"$blob" "$extra" "$unknown" "type":"$unknown" :"$unknown" "$extra":',
    "$blob": "$blob",
    "$extra": "$extra",
    "$unknown": "$unknown",
    "a moved string's place": '{"$blob":"' + "0" * 64 + '"}',
    "numbers": "NaN Infinity -0 1e400 0x1p3 ٣ ²",
    "a path": "../../etc/passwd\x00.png C:\\nul \\\\host\\share",
    "terminal codes": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J\x9b1m",
    "markup": "<script>alert(1)</script> [bold]x[/bold] &amp; {{x}} ${x} %s %n",
    "longer than a blob's limit": "x" * 5_000 + "\x00\ud800" + "y" * 5_000,
}
LONG = "\u00df" * 5_000_000  # one character, ten megabytes


def bodies(text: str) -> Iterator[Body]:
    """A body for each field of each kind that can hold any text, with the text in it."""
    extra = json_text({text: text, "inner": {text: [text]}})
    call = ToolCall(id=text, name=text, arguments=text, signature=text, extra=extra)
    inside = (
        Text(text=text, extra=extra),
        InlineData(mime=text, data=text.encode("utf-8", "surrogatepass"), extra=extra),
        FileRef(mime=text, uri=text, extra=extra),
    )
    result = ToolResult(call_id=text, name=text, content=inside, status=text, extra=extra)
    thought = Thought(text=text, subject=text, signature=text, extra=extra)
    yield Message(role="user", parts=(Text(text=text),))
    yield Message(role="user", parts=inside, extra=extra)
    yield Message(role="model", parts=(thought, call), model=text, finish=text)
    yield Message(role="model", usage=Usage(input=1, extra=extra))
    yield Message(role="user", parts=(result,))
    yield Message(role="system", parts=(Text(text=text), Text(text=text)))
    yield Message(role="user", parts=(Unknown(data=json_text({"type": "new", "x": text})),))
    yield Note(text=text, extra=extra)
    yield Title(title=text, extra=extra)
    yield Request(head=None, as_of=0, model=text, settings=text, extra=extra)
    yield Source(format=text, name=text, size=0, blobs=(text,), extra=extra)
    yield Elide(rule=text, items=(Elided(entry=text, placeholder=text, extra=extra),))
    yield Compaction(status="COMPRESSED", snapshot=text, first_kept=text, reason=text, extra=extra)
    yield SettingsEdit(values=text, extra=extra)
    yield UnknownBody(data=json_text({"kind": "new", "x": text, text: 1}))


def deep(levels: int, *, inner: str = "1") -> str:
    """A JSON object with so many levels of lists in it."""
    return '{"x":' + "[" * levels + inner + "]" * levels + "}"
