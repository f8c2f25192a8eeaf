"""Lines that stand for text a model did not write out, such as `// rest of methods ...`.

Written to a file, such a line deletes what it stands for. A placeholder tells the reader that text
was left out: by dots on both sides of words like "existing", or by words like "rest of" or "other
methods unchanged". A sentence about what the code does is none. Only a whole line counts: a
comment, a text in brackets, the bare words with an ellipsis, or a comment after `pass` or brackets;
never words after other code, in a string or in prose, and never dots alone. Code blocks of Markdown
and strings of several lines are data and do not count. Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

from recollect.tools.multiline_strings import find_string_lines

MAX_LINE = 160  # characters; a longer line is not a placeholder

_MARKDOWN = frozenset({".md", ".markdown", ".mdx", ".rst"})
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_OPENING = ("//", "#", "--", ";", "%")
_ENCLOSING = (("/*", "*/"), ("<!--", "-->"), ("{/*", "*/}"), ("(", ")"), ("[", "]"))
# code that does nothing itself, before a comment
_IDLE_CODE = re.compile(r"(?:pass\b;?|[{}()\[\];,]{1,8})\s{0,20}(?=//|#|--|/\*|<!--)")
_DOTS = re.compile(r"(?:\.{3,}|…)[.…]*")
_CODE = r"(?:code|method|function|file|class|implementation|logic|import|component|module)(?:e?s)?"
_NOUN = (
    rf"(?:{_CODE}|(?:content|test|script|body|lines|section|field|propert(?:y|ie)|handler|route"
    r"|style|definition|document|program|case|type|constant|helper|template|configuration|config"
    r"|markup|html|jsx|css|setup|quer(?:y|ie)|statement|table|column|variable|element|option"
    r"|setting|block|rule|hook|endpoint|attribute)(?:e?s)?)"
)
_OWNER = r"(?: (?:of|in|from) (?:the|this|your) \w{1,30})?"
_HOW = r"(?: (?:completely|exactly|largely))?"
_SAME = (
    r"(?:unchanged|the same(?: as before)?|same as before|as before|as is|as it was|unmodified"
    r"|omitted(?: for brevity)?|not shown|untouched)"
)
_STAYS = rf"(?:remains?|stays?|goes|continues?){_HOW} {_SAME}"
_REST_OF = r"(?:the )?(?:rest|remainder) of(?: (?:the|your|this|my|its))?(?: \w{1,30})?"
_NO_VERB = r"(?!(?:is|are|was|were|remains?|stays?|goes|continues?|not|the) )"
_REST = rf"{_REST_OF} {_NOUN}"
_KEEP = r"(?:(?:keep|leave) )?"
_TELLTALES = (
    *("rest", "remainder", "unchanged", "existing", "remaining", "previous", "other"),
    *("omitted", "same"),
)
# with an ellipsis, but without a comment sign or brackets
_BARE = re.compile(r"rest of(?: methods?| code)?|unchanged (?:code|methods?)")
# with dots before and behind
_BARE_BETWEEN = re.compile(rf"rest of|{_REST}|{_KEEP}(?:the |your )?(?:existing|unchanged) {_NOUN}")
_BETWEEN = re.compile(
    r"(?=.*\b(?:rest|remainder|existing|unchanged|remaining|previous|other|omitted|same)\b)"
    r"[\w,'/-]{1,40}(?: [\w,'/-]{1,40}){0,7}"
)
_AFTER = rf"{_OWNER}(?: {_SAME}| {_STAYS}| (?:is|are) {_SAME}| here| goes here)?"
# with an ellipsis the words themselves say that something was left out
_LED = re.compile(
    rf"rest of|{_REST}{_AFTER}"
    rf"|{_KEEP}(?:the |your )?(?:unchanged|existing|remaining|previous|other) {_NOUN}{_AFTER}"
)
_TRAILED = re.compile(
    rf"rest of|{_REST}{_AFTER}"
    rf"|{_KEEP}(?:the |your )?(?:unchanged|existing) {_NOUN}{_AFTER}"
    rf"|{_KEEP}(?:the |your )?(?:remaining|previous|other) {_CODE}{_AFTER}"
)
# without one they must say so; with `is` it may be a sentence about what the code does
_STATED = re.compile(
    rf"(?:the )?rest(?: {_STAYS}| {_SAME})|{_REST_OF} {_NO_VERB}\w{{1,30}}{_OWNER} {_SAME}"
    rf"|{_REST}{_OWNER} {_STAYS}|{_REST_OF} {_CODE}{_OWNER} (?:is|are){_HOW} {_SAME}"
    rf"|(?:the |your |all )?(?:unchanged|existing|remaining|previous|other) {_NOUN}{_OWNER}"
    rf" (?:{_STAYS}|{_SAME})"
)


class OmissionPlaceholder(NamedTuple):
    """A placeholder: the number of its line, the line, and its words in a plain form."""

    line: int
    text: str
    words: str


def find_omissions(text: str, path: str = "") -> Iterator[OmissionPlaceholder]:
    """The lines of a text that stand for something left out."""
    suffix = PurePath(path).suffix.lower()
    found = list(_find_marked_lines(text, is_markdown=suffix in _MARKDOWN))
    inside = find_string_lines(text, suffix) if found else ()
    yield from (one for one in found if one.line not in inside)


def _find_marked_lines(text: str, *, is_markdown: bool) -> Iterator[OmissionPlaceholder]:
    fence = ""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if is_markdown and (found := _FENCE.match(line)):
            closes = fence and found[1].startswith(fence)
            fence = "" if closes else fence or found[1]
        if (
            not fence
            and len(line) <= MAX_LINE
            and (words := _placeholder_words(line, is_markdown=is_markdown))
        ):
            yield OmissionPlaceholder(number, line.strip(), words)


def first_new_omission(new: str, old: str, path: str) -> OmissionPlaceholder | None:
    """The first placeholder of a text that the old one does not have as well."""
    found = list(find_omissions(new, path))
    if not found:
        return None
    known = {one.words for one in find_omissions(old, path)}
    return next((one for one in found if one.words not in known), None)


def _placeholder_words(line: str, *, is_markdown: bool) -> str:
    """The words of a placeholder, in lower case and without marks; empty for any other line."""
    lower = line.strip().lower()
    if not any(word in lower for word in _TELLTALES):
        return ""
    if not is_markdown and lower.startswith("* "):  # a line inside a comment
        lower = f"# {lower[2:]}"
    if (idle := _IDLE_CODE.match(lower)) and not lower.startswith("{/*"):
        lower = lower[idle.end() :]
    body, is_marked = _without_marks(lower)
    leads, trails = _DOTS.match(body) is not None, body.endswith(("...", "…"))
    inner, is_bracketed = _without_marks(body.strip(".… "))
    is_marked = is_marked or is_bracketed
    if _DOTS.search(inner):  # dots between words are ordinary
        return ""
    words = " ".join(inner.replace("'s ", " ").split()).rstrip(" .,:;!")
    if not is_marked:
        bare = _BARE_BETWEEN if leads and trails else _BARE
        return words if (leads or trails) and bare.fullmatch(words) else ""
    between = _BETWEEN.fullmatch(words) if leads and trails else None
    led = _LED.fullmatch(words) if leads else None
    trailed = _TRAILED.fullmatch(words) if trails else None
    return words if between or led or trailed or _STATED.fullmatch(words) else ""


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
