"""The rules that leave out tool results by their age, one row each.

Everything else follows from a row: the rule's name, its two settings in `[context]`, which results
it looks at, and the placeholder in both languages. `tests/test_stale_rules.py` names what a new row
still lacks.
"""

from __future__ import annotations

import msgspec


class StaleRule(msgspec.Struct, frozen=True, kw_only=True):
    """Leaves out results older than `age`, except the newest `keep` and those that failed."""

    subject: str  # names the rule and its settings: stale-SUBJECT, keep_SUBJECT, SUBJECT_age
    tool_kinds: tuple[str, ...]  # of `recollect.toolkinds.ToolKind`
    english: str  # the placeholder; `{what}` becomes the tool's name
    chinese: str
    keep: int = 5
    age: float  # seconds

    @property
    def name(self) -> str:
        return f"stale-{self.subject}"

    @property
    def keep_setting(self) -> str:
        return f"keep_{self.subject}"

    @property
    def age_setting(self) -> str:
        return f"{self.subject}_age"


STALE_RULES = (
    StaleRule(
        subject="shell",
        tool_kinds=("shell",),
        english="output of an earlier command ({what}), out of date",
        chinese="此命令返回内容已过时",
        age=900.0,
    ),
    StaleRule(
        subject="search",
        tool_kinds=("search",),
        english="results of an earlier search ({what}), out of date",
        chinese="本次搜索结果已过时,故精简为占位符",
        age=600.0,
    ),
    StaleRule(
        subject="listing",
        tool_kinds=("list",),
        english="earlier listing of files ({what}), out of date",
        chinese="此目录列表已过时,故精简为占位符",
        age=600.0,
    ),
)
