"""What stands where something was left out: what it was, its size, and how to bring it back.

English by default; `zh` gives the exact wording of the programs we come from, with the size and the
handle on a line of their own.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh"]
RuleName: TypeAlias = Literal["superseded-read", "stale-shell", "stale-search", "oversized", "drop"]

_ENGLISH: dict[RuleName, str] = {
    "superseded-read": "An earlier read of {what}: see the latest one",
    "stale-shell": "Output of an earlier command ({what}): out of date",
    "stale-search": "Results of an earlier search ({what}): out of date",
    "oversized": "... [CONTENT TRUNCATED] ...",
    "drop": "Left out on request",
}
_CHINESE: dict[RuleName, str] = {
    "superseded-read": "[该文件的历史读取内容已压缩,请参看最新读取结果]",
    "stale-shell": "此命令返回内容已过时",
    "stale-search": "本次搜索结果已过时,故精简为占位符",
    "oversized": "... [CONTENT TRUNCATED] ...",
    "drop": "[已按要求省略]",
}
_MAX_SUBJECT = 200


def write_placeholder(
    rule: RuleName, what: str, tokens: int, entry: str, language: Language = "en"
) -> str:
    """The handle is the entry's id: `recall` and `recollect context --restore` take it."""
    handle = f"{tokens:,} tokens left out; recall {entry}"
    if language == "zh":
        text = f"{_CHINESE[rule]}\n[{handle}]"
    elif rule == "oversized":
        text = f"{_ENGLISH[rule]}\n[{handle}]"
    else:
        clean = " ".join(what.split())
        shown = clean if len(clean) <= _MAX_SUBJECT else clean[: _MAX_SUBJECT - 1] + "…"
        text = f"[{_ENGLISH[rule].format(what=shown)}. {handle}]"
    return f"\n{text}\n" if rule == "oversized" else text
