"""The text that replaces what was left out: what it was, its size, and how to bring it back.

English by default; `zh` gives the exact wording of the programs we come from, with the size and the
handle on a separate line.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from recollect.stale_rules import STALE_RULES

Language: TypeAlias = Literal["en", "zh"]

_TEXTS = {  # English and Chinese
    "superseded-read": (
        "An earlier read of {what}: see the latest one",
        "[该文件的历史读取内容已压缩,请参看最新读取结果]",
    ),
    "drop": ("Left out on request", "[已按要求省略]"),
    **{rule.name: (rule.english, rule.chinese) for rule in STALE_RULES},
}
BUILTIN_RULES = ("oversized", *_TEXTS)
_MAX_SUBJECT = 200  # characters
_HANDLE = re.compile(r"\. [\d,]+ tokens left out; recall \S+\]$")


def write_placeholder(
    rule: str, what: str, tokens: int, entry: str, language: Language = "en"
) -> str:
    """The handle is the entry's id: `recall` and `recollect context --restore` take it. A rule that
    is not built in has no wording of its own: its name and what it left out are shown."""
    handle = f"{tokens:,} tokens left out; recall {entry}"
    if rule == "oversized":
        return f"\n... [CONTENT TRUNCATED] ...\n[{handle}]\n"
    clean = " ".join(what.split())
    subject = clean if len(clean) <= _MAX_SUBJECT else clean[: _MAX_SUBJECT - 1] + "…"
    if rule not in _TEXTS:
        return f"[{rule}: {subject or 'left out'}. {handle}]"
    english, chinese = _TEXTS[rule]
    if language == "zh":
        return f"{chinese}\n[{handle}]"
    return f"[{english.format(what=subject)}. {handle}]"


def read_reason(rule: str, placeholder: str) -> str:
    """What `write_placeholder` was given for a rule that is not built in; empty if it was not."""
    begin, end = f"[{rule}: ", _HANDLE.search(placeholder)
    if not placeholder.startswith(begin) or end is None:
        return ""
    return placeholder[len(begin) : end.start()]
