"""Lines that stand for text a model did not write out, such as `// rest of methods ...`.

Written to a file, such a line deletes what it stands for. Only a whole line counts: a comment, a
text in brackets, or the bare words with an ellipsis; never words inside code, a string or prose,
and never dots alone. Code blocks of Markdown are examples and do not count. Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

MAX_LINE = 160  # characters; a longer line is not a placeholder

_MARKDOWN = frozenset({".md", ".markdown", ".mdx", ".rst"})
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_OPENING = ("//", "#", "--", ";;", "%")
_ENCLOSING = (("/*", "*/"), ("<!--", "-->"), ("{/*", "*/}"), ("(", ")"), ("[", "]"))
_DOTS = re.compile(r"(?:\.{3,}|…)[.…]*")
_NOUN = (
    r"(?:code|method|function|file|class|implementation|content|logic|import|test|component|module"
    r"|script|body|line|section|field|propert(?:y|ie)|handler|route|style|definition|document"
    r"|program|case|type|constant|helper|template|configuration|config|markup|html|css|setup)"
    r"(?:e?s)?"
)
_OWNER = r"(?: (?:of|in|from) (?:the|this|your) \w{1,30})?"
_SAME = (
    r"(?:(?:remains?|stays?|is|are|goes|continues?)(?: (?:completely|exactly|largely))? )?"
    r"(?:unchanged|the same(?: as before)?|same as before|as before|as is|as it was|unmodified"
    r"|omitted(?: for brevity)?|not shown|untouched)"
)
_REST = rf"(?:the )?(?:rest|remainder) of(?: (?:the|your|this|my|its))?(?: \w{{1,30}})? {_NOUN}"
_KIND = rf"(?:the |your )?(?:unchanged|existing|remaining|previous) {_NOUN}"
_TELLTALES = ("rest of", "remainder of", "unchanged", "existing", "remaining", "previous")
# with an ellipsis, but without a comment sign or brackets
_BARE = re.compile(r"rest of(?: methods?| code)?|unchanged (?:code|methods?)")
# with an ellipsis the words themselves say that something was left out
_ELIDED = re.compile(
    rf"(?:rest of|{_REST}{_OWNER}(?: {_SAME}| here| goes here)?|{_KIND}{_OWNER}(?: {_SAME}| here)?)"
)
# without one they must say so
_STATED = re.compile(rf"(?:{_REST}{_OWNER}|{_KIND}{_OWNER}) {_SAME}")


class OmissionPlaceholder(NamedTuple):
    """A placeholder: the number of its line, the line, and its words in a plain form."""

    line: int
    text: str
    words: str


def find_omissions(text: str, path: str = "") -> Iterator[OmissionPlaceholder]:
    """The lines of a text that stand for something left out."""
    is_markdown = PurePath(path).suffix.lower() in _MARKDOWN
    fence = ""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if is_markdown and (found := _FENCE.match(line)):
            closes = fence and found[1].startswith(fence)
            fence = "" if closes else fence or found[1]
        if not fence and len(line) <= MAX_LINE and (words := _placeholder_words(line)):
            yield OmissionPlaceholder(number, line.strip(), words)


def first_new_omission(new: str, old: str, path: str) -> OmissionPlaceholder | None:
    """The first placeholder of a text that the old one does not have as well."""
    found = list(find_omissions(new, path))
    if not found:
        return None
    known = {one.words for one in find_omissions(old, path)}
    return next((one for one in found if one.words not in known), None)


def _placeholder_words(line: str) -> str:
    """The words of a placeholder, in lower case and without marks; empty for any other line."""
    lower = line.strip().lower()
    if not any(word in lower for word in _TELLTALES):
        return ""
    body, is_marked = _without_marks(lower)
    has_dots = _DOTS.match(body) is not None or body.endswith(("...", "…"))
    inner, is_bracketed = _without_marks(body.strip(".… "))
    is_marked = is_marked or is_bracketed
    if _DOTS.search(inner):  # dots between words are ordinary
        return ""
    words = " ".join(inner.replace("'s ", " ").split()).rstrip(" .,:;!")
    if has_dots and (_ELIDED if is_marked else _BARE).fullmatch(words):
        return words
    return words if is_marked and _STATED.fullmatch(words) else ""


def _without_marks(text: str) -> tuple[str, bool]:
    """A line without its comment signs and brackets, and whether it had any."""
    is_marked = False
    for _ in range(4):
        before = text
        for sign in _OPENING:
            if text.startswith(sign):
                text = text.lstrip(sign[0]).strip()
        for opening, closing in _ENCLOSING:
            if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening):
                text = text[len(opening) : -len(closing)].strip()
        if text == before:
            break
        is_marked = True
    return text, is_marked
