"""Calls that are only shown: after words that announce an example, or in an indented code block.

A block (a fence) is an example if the last sentence of the line right before it has such words; any
other call, only if the words stand directly before it. An indented code block is Markdown's: four
columns or a tab, after an empty line, another line of the block, or nothing. Below the item of a
list, indented text belongs to the item, and models really put calls there: it is never code.
"""

from __future__ import annotations

import re

_ANYWHERE = (
    r"\bfor (?:example|instance)\b",
    r"\be\.\s?g\.",
    r"\bzum beispiel\b",
    r"\bz\.\s?b\.",
    r"\bpar exemple\b",
    r"\bpor ejemplo\b",
    r"\bнапример\b",
    "例如|比如|例えば",
)
# these words are also used for things: "an example file"
_OF_CALLS = r"(?: (?:of|how|call|tool|for|with)\b[^:.]{0,80})?"
_AT_END = (
    r"\bsuch as",
    r"\b(?:an?|another|some|following) (?:\w+ )?examples?" + _OF_CALLS,
    r"^\W*examples?" + _OF_CALLS,
    r"\bbeispiele?(?: (?:für|eines|einer|von|mit)\b[^:.]{0,80})?",
    "示例|例子",
)
_TAIL = r"[\s:：,，;*_()\"'.…-]{0,12}$"
_ANNOUNCES = re.compile(
    "|".join((*_ANYWHERE, *(f"(?:{words}){_TAIL}" for words in _AT_END))), re.IGNORECASE
)
_DIRECTLY_BEFORE = re.compile(
    "(?:"
    + "|".join((*_ANYWHERE, r"\bsuch as", r"\ban example", r"\bbeispiel", "示例|例子"))
    + ")"
    + _TAIL,
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?:(?<=\w\w)|(?<=[)\]`\"'”»]))[.!?]\s+|[。！？]")
_ASIDE = re.compile(r"\([^()]{0,200}\)")  # "a file for helpers (e.g. parsing):" announces a file
_LIST_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]")
_CODE_COLUMNS = 4
_SHORT = 40  # characters right before a call that may introduce it


def announces_example(before: str, *, block: bool) -> bool:
    """Whether the end of this text introduces what follows as an example."""
    line = before.rstrip().rpartition("\n")[2]
    if not block:
        return _DIRECTLY_BEFORE.search(line[-_SHORT:]) is not None
    return _ANNOUNCES.search(_ASIDE.sub("", _SENTENCE_END.split(line)[-1])) is not None


class IndentedCode:
    """Tells which lines are an indented code block, one line after the other."""

    def __init__(self) -> None:
        self._after_blank = True
        self._in_list = self._in_code = False

    def blank_line(self) -> None:
        self._after_blank = True

    def is_code(self, lead: str, rest: str) -> bool:
        """Whether a line is code: its blanks at the beginning, and some of what follows them."""
        indented = len(lead.expandtabs(_CODE_COLUMNS)) >= _CODE_COLUMNS
        self._in_code = indented and not self._in_list and (self._after_blank or self._in_code)
        if not self._in_code:
            if _LIST_ITEM.match(rest):
                self._in_list = True
            elif not lead:
                self._in_list = False
        self._after_blank = False
        return self._in_code
