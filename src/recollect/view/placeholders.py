"""The text that replaces what was left out: how to bring it back, what it was, and its size.

English by default; `zh` has the wording of the programs we come from. The handle comes first, for
`recall` and wherever an entry is named. A placeholder of a read says which entries show the same
lines; its fallback, which is shown when they no longer do, says nothing of the kind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, TypeAlias

from recollect.entries import handle_of
from recollect.stale_rules import STALE_RULES

Language: TypeAlias = Literal["en", "zh"]

_TEXTS = {  # English and Chinese
    "superseded-read": ("earlier read of {what}, in the log", "[该文件的历史读取内容已压缩]"),
    "drop": ("left out on request", "[已按要求省略]"),
    **{rule.name: (rule.english, rule.chinese) for rule in STALE_RULES},
}
BUILTIN_RULES = ("oversized", *_TEXTS)
_MAX_SUBJECT = 200  # characters
_MAX_NAMED = 5  # entries that a placeholder names
_BEGIN = re.compile(r"\[recall \w+(?:: |\] )")
_END = re.compile(r"(?:, [\d,]+ tokens\]| \([\d,]+ token\))$")


def write_placeholder(
    rule: str, what: str, tokens: int, entry: str, language: Language = "en"
) -> str:
    """A rule that is not built in has no wording of its own: its name and what it left out are
    shown."""
    subject = _shorten(what)
    if rule == "oversized":
        marker = "... [CONTENT TRUNCATED] ..."
        return f"\n{_frame(entry, marker, f'{tokens:,} token', language)}\n"
    english, chinese = _TEXTS.get(rule, (None, None))
    if english is None or chinese is None:
        english = chinese = f"{rule}: {subject or 'left out'}"
    else:
        english = english.format(what=subject)
    text = chinese if language == "zh" else english
    return _frame(entry, text, f"{tokens:,} token", language)


class ReadPlaceholder(NamedTuple):
    text: str
    fallback: str = ""  # see `Elided.fallback`


def write_read_placeholder(
    what: str,
    tokens: int,
    entry: str,
    shown_by: Sequence[str] = (),
    language: Language = "en",
) -> ReadPlaceholder:
    """Of a read whose lines these entries show; of one that is older than a change of its file when
    there are none."""
    subject, size = _shorten(what), f"{tokens:,} token"
    if not shown_by:
        english = f"read of {subject} before it was changed; only in the log"
        chinese = "[该文件的历史读取内容已压缩,文件此后已修改,仅存于日志]"
        text = chinese if language == "zh" else english
        return ReadPlaceholder(_frame(entry, text, size, language))
    named = ", ".join(handle_of(one) for one in shown_by)
    fallback = write_placeholder("superseded-read", what, tokens, entry, language)
    if language == "zh":
        chinese = f"[该文件的历史读取内容已压缩,请参看最新读取结果] {named}"
        return ReadPlaceholder(_frame(entry, chinese, size, language), fallback)
    english = f"[recall {handle_of(entry)}: earlier read of {subject}, shown by {named}; {size}s]"
    return ReadPlaceholder(english, fallback)


def may_name(shown_by: Collection[str]) -> bool:
    """Whether these are few enough entries to name."""
    return 0 < len(shown_by) <= _MAX_NAMED


def _frame(entry: str, text: str, size: str, language: Language) -> str:
    handle = handle_of(entry)
    return (
        f"[recall {handle}] {text} ({size})"
        if language == "zh"
        else (f"[recall {handle}: {text}, {size}s]")
    )


def _shorten(what: str) -> str:
    clean = " ".join(what.split())
    return clean if len(clean) <= _MAX_SUBJECT else clean[: _MAX_SUBJECT - 1] + "…"


def read_reason(rule: str, placeholder: str) -> str:
    """What `write_placeholder` was given for a rule that is not built in; empty if it was not."""
    begin, end = _BEGIN.match(placeholder), _END.search(placeholder)
    if begin is None or end is None or not placeholder.startswith(f"{rule}: ", begin.end()):
        return ""
    return placeholder[begin.end() + len(rule) + 2 : end.start()]
