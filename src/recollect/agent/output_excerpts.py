"""Errors and warnings in the output of a tool: found by code, quoted word for word.

An excerpt always stands in the output. What a model claims to quote is compared with it, and no
quoted text can open or close the block that it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from recollect.compaction.quoted_text import clip_to_tokens
from recollect.tokens import Counter

MAX_EXCERPTS = 40  # of each kind
_MAX_EXCERPT = 3_000  # characters
_MAX_LINES = 40
_MAX_LINE = 300  # characters of a line that are searched

ExcerptKind: TypeAlias = Literal["error", "warning"]
_KINDS: tuple[ExcerptKind, ...] = ("error", "warning")
_TRACEBACK = "Traceback (most recent call last)"
_ERROR = re.compile(
    r"(?i:error|exception|fatal|panic)(?:\[[^\]\s]{1,20}\])?: ?\S|panicked at |npm ERR!"
    r"|^\s{0,20}(?:FAILED|FAILURE|ERROR|FATAL)\b|^E {3}|^[\w.$]{0,100}(?:Error|Exception)$"
)
_WARNING = re.compile(
    r"(?i:warning|warn)(?:\[[^\]\s]{1,20}\])?: ?\S|npm WARN|^\s{0,20}(?:WARNING|WARN)\b"
)
# each line that a pattern matches has one of them
_HINTS = ("err", "warn", "exception", "fatal", "panic", "fail")
_INDENTED = re.compile(r"\s")
_CONTINUES = re.compile(r"\s|at |\||-->|\.\.\. |Caused by: ")
_TAG = re.compile(r"<(?=\s{0,8}/?\s{0,8}(?:error|warning)\b)", re.IGNORECASE)


class Excerpt(NamedTuple):
    kind: ExcerptKind
    text: str  # copied from the output


def find_excerpts(output: str) -> tuple[Excerpt, ...]:
    """Errors with their stacks, and warnings; the first and last of each when there are many."""
    found: dict[Excerpt, None] = {}
    lines, at = output.split("\n"), 0
    while at < len(lines):
        kind, end = _block(lines, at)
        if kind is not None:
            text = "\n".join(lines[at:end]).strip()
            found.update((Excerpt(kind, piece), None) for piece in _pieces(text))
        at = end
    return tuple(
        each for kind in _KINDS for each in _keep_ends([e for e in found if e.kind == kind])
    )


def _block(lines: Sequence[str], at: int) -> tuple[ExcerptKind | None, int]:
    """The kind of block that starts at a line, if any, and where it ends."""
    line = lines[at][:_MAX_LINE]
    if _TRACEBACK in line:
        end = _skip_matching(lines, at + 1, _INDENTED, len(lines))
        return "error", min(end + 1, len(lines))
    low = line.lower()
    if not line.startswith("E   ") and not any(hint in low for hint in _HINTS):
        return None, at + 1  # most lines; the patterns alone would take ten times as long
    if _ERROR.search(line):
        kind: ExcerptKind = "error"
    elif _WARNING.search(line):
        kind = "warning"
    else:
        return None, at + 1
    return kind, _skip_matching(lines, at + 1, _CONTINUES, at + _MAX_LINES)


def _skip_matching(lines: Sequence[str], at: int, pattern: re.Pattern[str], end: int) -> int:
    while at < min(end, len(lines)) and lines[at].strip() and pattern.match(lines[at]):
        at += 1
    return at


def _pieces(text: str) -> tuple[str, ...]:
    """The text, or both ends of a long stack: where it started, and the error."""
    if len(text) <= _MAX_EXCERPT:
        return (text,)
    first = _MAX_EXCERPT // 4
    return text[:first].strip(), text[first - _MAX_EXCERPT :].strip()


def _keep_ends(found: Sequence[Excerpt]) -> Sequence[Excerpt]:
    half = MAX_EXCERPTS // 2
    return found if len(found) <= MAX_EXCERPTS else (*found[:half], *found[-half:])


def parse_reply(written: str) -> tuple[str, tuple[Excerpt, ...]]:
    """Split a reply into its prose and the excerpts that it claims to quote."""
    prose: list[str] = []
    claims: list[Excerpt] = []
    at = 0
    last_end = {kind: written.rfind(f"</{kind}>") for kind in _KINDS}
    for tag in re.finditer("<(?:(error)|warning)>", written):
        kind: ExcerptKind = "error" if tag[1] else "warning"
        if not at <= tag.start() < last_end[kind]:
            continue  # inside another, or never closed
        end = written.index(f"</{kind}>", tag.end())
        prose.append(written[at : tag.start()])
        text = written[tag.end() : end].strip()
        if text and len(claims) < MAX_EXCERPTS:
            claims.append(Excerpt(kind, text[:_MAX_EXCERPT].strip()))
        at = end + len(f"</{kind}>")
    return "".join((*prose, written[at:])).strip(), tuple(claims)


def merge_excerpts(
    claims: Sequence[Excerpt], found: Sequence[Excerpt], output: str
) -> tuple[Excerpt, ...]:
    """Claims that are in the output, and what code found beyond them; the longer of two that
    overlap."""
    true = [claim for claim in claims if claim.text in output]
    new = [each for each in found if not any(each.text in claim.text for claim in true)]
    kept = [claim for claim in true if not any(claim.text in each.text for each in new)]
    return tuple(dict.fromkeys((*kept, *new)))


def format_excerpts(
    found: Sequence[Excerpt], room: int, entry: str, counter: Counter
) -> tuple[str, ...]:
    """Excerpts as blocks that fit: errors first, and of each kind the outermost first."""
    kept: dict[int, str] = {}
    for position in _outermost_first(found):
        kind, text = found[position]
        # the first is always shown, as much of it as fits
        text = text if kept else clip_to_tokens(text, room - 20, counter, head=0.25)
        block = f"<{kind}>\n{neutralize(text, entry)}\n</{kind}>"
        cost = counter.text(block) + 1
        if text and cost <= room:
            kept[position] = block
            room -= cost
    left = len(found) - len(kept)
    more = (f"[{left} more errors or warnings are in the full text]",) if left else ()
    return (*(kept[position] for position in sorted(kept)), *more)


def _outermost_first(found: Sequence[Excerpt]) -> Iterator[int]:
    for kind in _KINDS:
        places = [place for place, each in enumerate(found) if each.kind == kind]
        while places:
            yield places.pop(0)
            places.reverse()


def neutralize(text: str, entry: str) -> str:
    """Text that can neither open nor close a block, nor end the summary around it."""
    text = _TAG.sub("&lt;", text)
    return text.replace(f"summary {entry}", "summary (sic)").replace(f"recall {entry}", "recall")
