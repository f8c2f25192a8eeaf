"""The lines of a source text that are inside a string of several lines.

Python's triple quotes, and the backticks of JavaScript, TypeScript and Go. A string that is not
closed does not count: a part of a file may begin inside one. Templates within templates and odd
regular expressions may be misread. Linear: what was read is not read again.
"""

from __future__ import annotations

import re

# Of a string, without its quotes. In Python 3.11.2 a possessive group with a choice in it is wrong.
_DOUBLE, _SINGLE = r'[^"\\]*+(?:\\.[^"\\]*+)*+', r"[^'\\]*+(?:\\.[^'\\]*+)*+"
_ONE_LINE = r"\"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+\"?|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'?"
_PYTHON = re.compile(
    r"#[^\n]*+"
    rf'|(?P<long>"""{_DOUBLE}(?:"(?!""){_DOUBLE})*(?P<closed>"""|\Z)'
    rf"|'''{_SINGLE}(?:'(?!''){_SINGLE})*(?P<also_closed>'''|\Z))"
    rf"|{_ONE_LINE}",
    re.DOTALL,
)
_BACKTICKS = re.compile(
    r"`{3,}+"  # a fence of Markdown that a model put around the whole file
    r"|//[^\n]*+|/\*.*?(?:\*/|\Z)"
    r"|(?P<long>`[^`\\]*+(?:\\.[^`\\]*+)*+(?P<closed>`|\Z))(?P<also_closed>)"
    rf"|{_ONE_LINE}",
    re.DOTALL,
)
_SUFFIXES = {
    ".py .pyi": _PYTHON,
    ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte .go": _BACKTICKS,
}
_TOKENS = {suffix: tokens for several, tokens in _SUFFIXES.items() for suffix in several.split()}


def find_string_lines(text: str, suffix: str) -> set[int]:
    """The numbers of the lines, from 1, that are strings from their first character to their last;
    none for a file name's suffix of another language."""
    tokens = _TOKENS.get(suffix)
    lines: set[int] = set()
    counted, line = 0, 1
    for token in tokens.finditer(text) if tokens is not None else ():
        if not token["long"] or not (token["closed"] or token["also_closed"]):
            continue
        line += text.count("\n", counted, token.start())
        last = line + text.count("\n", token.start(), token.end())
        lines.update(range(line + 1, last))
        counted, line = token.end(), last
    return lines
