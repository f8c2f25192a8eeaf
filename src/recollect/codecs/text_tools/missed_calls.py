"""Text that can only be meant as a call and that the scanner cannot take for one.

Keys without quotation marks or with typographic ones, another name around the call (`tool_calls`,
`function_call`), a missing first brace. Nothing of it is run or repaired: the model is told, so
that its call does not end as the answer. Quotations and examples do not count, as for calls.
"""

from __future__ import annotations

import re

from recollect.codecs.text_tools.example_text import announces_example

_MARK = "[\"'“”„`]?"
_MEANT = re.compile(
    rf"^[ \t]{{0,3}}(?:\{{\s{{0,8}}{_MARK}(?:tool_calls?|function_call){_MARK}\s{{0,8}}:"
    rf"|\"(?:tool_calls?|function_call)\"\s{{0,8}}:)\s{{0,8}}[\[{{]",
    re.MULTILINE,
)
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*(\w*)", re.MULTILINE)
_OF_CALLS = frozenset({"", "json", "json5", "tool_call", "tool_calls", "tool_code"})
_RECENT = 400  # characters before it that may announce it as an example


def find_missed_call(text: str) -> str:
    """What to tell the model about a call that could not be taken for one; may be empty."""
    for found in _MEANT.finditer(text):
        before, fence = text[: found.start()], _open_fence(text, found.start())
        if fence is not None:
            if fence[2].lower() not in _OF_CALLS:
                continue
            before = text[: fence.start()]
        if not announces_example(before[-_RECENT:], block=True):
            return (
                "what looks like a call is not valid JSON of the expected form, so it was not run; "
                'write {"tool_call": {"name": …, "arguments": {…}}}'
            )
    return ""


def _open_fence(text: str, end: int) -> re.Match[str] | None:
    """The fence that a place in the text is in."""
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text, 0, end):
        opened = fence if opened is None else None
    return opened
