"""`<state_snapshot>`: seven sections of plain text, written and parsed back exactly.

No text inside a section can open or close a tag: `write_snapshot` puts a backslash after the `<` of
anything that looks like one of our tags, and `parse_snapshot` removes it, so parsing what was
written gives the same sections, unless they are blank. All other text is unchanged. Parsing is
linear, reads the first `MAX_REPLY` characters, and accepts replies as models write them: with a
scratchpad, fences, text around the snapshot, a missing end. The result is data; `quote_written`
decides how much of it to believe.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

SECTIONS = (
    "overall_goal",
    "user_directives",
    "key_knowledge",
    "file_system_state",
    "recent_actions",
    "current_plan",
    "open_questions",
)
MAX_REPLY = 4_000_000

_OUTER, _SCRATCH = "state_snapshot", "scratchpad"
_NAMES = "|".join((_OUTER, _SCRATCH, *SECTIONS))
_FLAGS = re.I | re.A
_TAG = re.compile(rf"<(/?)({_NAMES})[ \t]{{0,8}}>", _FLAGS)
_TAG_LIKE = re.compile(rf"<(?=\\*+[\s/]{{0,8}}(?:{_NAMES}))", _FLAGS)
_ESCAPED = re.compile(rf"<\\(?=\\*+[\s/]{{0,8}}(?:{_NAMES}))", _FLAGS)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The text of each section; an empty one is not written."""

    overall_goal: str = ""
    user_directives: str = ""
    key_knowledge: str = ""
    file_system_state: str = ""
    recent_actions: str = ""
    current_plan: str = ""
    open_questions: str = ""

    def section(self, name: str) -> str:
        return str(getattr(self, name))


def escape(text: str) -> str:
    return _TAG_LIKE.sub(r"<\\", text)


def unescape(text: str) -> str:
    return _ESCAPED.sub("<", text)


def write_snapshot(snapshot: Snapshot) -> str:
    lines = [f"<{_OUTER}>"]
    for name in SECTIONS:
        if (text := snapshot.section(name)).strip():
            lines += [f"<{name}>", escape(text), f"</{name}>"]
    return "\n".join((*lines, f"</{_OUTER}>"))


def parse_snapshot(text: str) -> Snapshot | None:
    """The snapshot in a text; None if there is none or all its sections are blank."""
    # a draft or quotation has fewer sections than the snapshot; the first of equals wins
    best = max(_snapshots(text[:MAX_REPLY]), key=len)
    return Snapshot(**best) if best else None


def text_outside(text: str) -> str:
    """What stands outside of every section, in one line: no reader of the snapshot finds it."""
    found, at, open_name = [], 0, ""
    for tag in _without_scratchpads(text):
        closing, name = tag[1] == "/", tag[2].lower()
        if not open_name:
            found.append(text[at : tag.start()])
        elif not (closing and name not in (open_name, _OUTER)):
            open_name = ""
        if name in SECTIONS and not closing:
            open_name = name
        at = tag.end()
    rest = "" if open_name else text[at:]
    return " ".join(" ".join((*found, rest)).split())


def _snapshots(text: str) -> Iterator[dict[str, str]]:
    sections: dict[str, str] = {}
    for name, body in _elements(text):
        if name == _OUTER:
            yield sections
            sections = {}
        # exactly the line ends that `write_snapshot` puts around a section
        elif (content := unescape(body.removeprefix("\n").removesuffix("\n"))).strip():
            sections.setdefault(name, content)
    yield sections


def _elements(text: str) -> Iterator[tuple[str, str]]:
    """Each section with its raw text, and the outer tag wherever a snapshot begins or ends."""
    open_name, start = "", 0
    for tag in _without_scratchpads(text):
        closing, name = tag[1] == "/", tag[2].lower()
        if open_name and not (closing and name not in (open_name, _OUTER)):
            yield open_name, _between(text, start, tag.start())
            open_name = ""
        if name == _OUTER:
            yield _OUTER, ""
        elif name in SECTIONS and not closing:
            open_name, start = name, tag.end()
    if open_name:
        yield open_name, _between(text, start, len(text))


def _between(text: str, start: int, end: int) -> str:
    """The content of a section without the scratchpads in it."""
    body = text[start:end]
    if "scratchpad" not in body.lower():
        return body
    kept, at, deep = [], 0, False
    for tag in _TAG.finditer(body):
        if tag[2].lower() != _SCRATCH:
            continue
        if not deep:
            kept.append(body[at : tag.start()])
        deep, at = tag[1] != "/", tag.end()
    return "".join(kept) + ("" if deep else body[at:])


def _without_scratchpads(text: str) -> Iterable[re.Match[str]]:
    """The tags outside all scratchpads. A scratchpad that is never closed ends where the snapshot
    begins."""
    tags = [(tag, tag[2].lower() == _SCRATCH) for tag in _TAG.finditer(text)]
    last_end = max((tag.start() for tag, scratch in tags if scratch and tag[1]), default=-1)
    inside = False
    for tag, scratch in tags:
        if scratch:
            inside = not tag[1] and tag.start() < last_end
        elif not inside:
            yield tag
