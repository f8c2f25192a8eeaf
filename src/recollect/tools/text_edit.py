"""Where a text that a model wants to replace stands in a file, and what goes there instead.

Line breaks do not count: models read and write LF, and new text gets the breaks of the lines it
replaces. An exact match comes first. Only if there is none, these are tried in order, and the
result says which: line numbers copied from `read_file`, the missing newline at a file's end,
blanks at the ends of lines, an indentation that differs by the same blanks in every line, and
backslashes before characters that need none. Each must be unambiguous. Nothing else is guessed: a
`ToolFailed` shows the nearest passage. Characters outside a match are never touched, and lines in
it that stay the same keep their own breaks and blanks. Everything is linear in the file's size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from recollect.text import common_length
from recollect.tools.line_endings import EndingFinder, normalize, raw_offsets, uses_cr
from recollect.tools.loose_match import LooseMatch, find_loosely
from recollect.tools.nearest_passage import nearest_passage
from recollect.tools.tool import ToolFailed
from recollect.workspace.text_format import UNKNOWN_BYTE, replace_surrogates

MAX_LISTED = 10  # places that a message names
_NUMBERED = re.compile(r" {0,9}(\d{1,9})(→|\t| ?\| ?|: )")
_ESCAPE = re.compile(r"\\([ntr\"'`\\])")
_UNESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


class TextEdit(NamedTuple):
    """A part of a file's own text, and what is to stand there."""

    start: int
    end: int
    new: str


class EditPlan(NamedTuple):
    edits: tuple[TextEdit, ...]
    ignored: tuple[str, ...] = ()  # what differs between the text given and the file


class _Wanted(NamedTuple):
    """One way to understand what a model gave, with LF breaks."""

    old: str
    new: str
    ignored: str = ""


def apply_edits(text: str, edits: Sequence[TextEdit]) -> str:
    """The text with these edits, which are in order and do not overlap."""
    pieces: list[str] = []
    at = 0
    for edit in edits:
        pieces += (text[at : edit.start], edit.new)
        at = edit.end
    return "".join((*pieces, text[at:]))


def plan_edit(text: str, old: str, new: str, expected: int, path: str) -> EditPlan:
    """How to replace `old` by `new` as often as expected; a `ToolFailed` says why not."""
    if expected < 1:
        raise ToolFailed("expected_replacements is at least 1")
    if not old:
        raise ToolFailed(
            f"old_string is empty and {path} exists; give the text to replace, or use write_file"
        )
    if old == new:
        raise ToolFailed("old_string and new_string are the same; nothing would change")
    cr = uses_cr(text)
    given = _Wanted(normalize(old, cr=cr), normalize(new, cr=cr))
    if given.old == given.new:
        return _plan_exact_breaks(text, old, new, expected, path)
    plain = normalize(text, cr=cr)
    for wanted in _ways_to_read(given):
        if places := _find_exactly(plain, wanted.old):
            _check_count(plain, wanted.old, expected, path)
            edits = _place(text, plain, wanted.new, places, len(wanted.old))
            return EditPlan(edits, (wanted.ignored,) if wanted.ignored else ())
        if (found := find_loosely(plain, wanted.old, wanted.new)) is not None:
            return _plan_loose(text, plain, wanted, found, expected, path)
    raise ToolFailed(_explain_missing(plain, given, path))


def _plan_exact_breaks(text: str, old: str, new: str, expected: int, path: str) -> EditPlan:
    """Line breaks are what is to change, so they count."""
    places = _find_exactly(text, old)
    if not places:
        raise ToolFailed(
            "old_string and new_string differ only in line breaks, and "
            f"{path} does not have old_string with its breaks; read the file again"
        )
    _check_count(text, old, expected, path)
    return EditPlan(tuple(TextEdit(at, at + len(old), new) for at in places))


def _find_exactly(plain: str, old: str) -> list[int]:
    places: list[int] = []
    at = plain.find(old)
    while at >= 0:
        places.append(at)
        at = plain.find(old, at + len(old))
    return places


def _check_count(plain: str, old: str, expected: int, path: str) -> None:
    count = plain.count(old)
    if count == expected:
        return
    lines = _line_numbers(plain, (m.start() for m in re.finditer(re.escape(old), plain)), count)
    raise ToolFailed(
        f"old_string occurs {count:,} times in {path}, not {expected:,} ({lines}); "
        f"add lines around it that make it unique, or say expected_replacements={count}"
    )


def _line_numbers(plain: str, places: Iterator[int], count: int) -> str:
    shown = ", ".join(str(plain.count("\n", 0, at) + 1) for at in islice(places, MAX_LISTED))
    return f"lines {shown}{' …' if count > MAX_LISTED else ''}"


# --- placing -----------------------------------------------------------------------------------


def _place(
    text: str, plain: str, new: str, places: Sequence[int], length: int
) -> tuple[TextEdit, ...]:
    """The edits of the file's own text for places in the normalized one. Only what differs between
    a match and the new text is an edit, so that the rest keeps its breaks."""
    old = plain[places[0] : places[0] + length]
    head = common_length(old, new)
    tail = common_length(old[head:][::-1], new[head:][::-1])
    middle = new[head : len(new) - tail]
    ends = [n for at in places for n in (at + head, at + length - tail)]
    offsets = raw_offsets(text, ends)
    endings = EndingFinder(text)
    edits: list[TextEdit] = []
    for start in offsets:
        end = next(offsets)
        ending = endings.find(start, end) if "\n" in middle else "\n"
        edits.append(TextEdit(start, end, middle.replace("\n", ending)))
    return tuple(edits)


def _plan_loose(
    text: str, plain: str, wanted: _Wanted, found: Sequence[LooseMatch], expected: int, path: str
) -> EditPlan:
    first = found[0]
    if len(found) > 1 or expected > 1:
        lines = _line_numbers(plain, (match.start for match in found), len(found))
        raise ToolFailed(
            f"old_string is not in {path} as it was given; {first.ignored} aside it stands "
            f"there {len(found):,} times ({lines}). Give it exactly, with lines around it that "
            "make it unique"
        )
    edits = _place(text, plain, first.new, (first.start,), first.end - first.start)
    return EditPlan(edits, tuple(filter(None, (wanted.ignored, first.ignored))))


# --- other ways to read what was given ---------------------------------------------------------


def _ways_to_read(given: _Wanted) -> Iterator[_Wanted]:
    yield given
    if separator := _number_separator(given.old):
        old, new = (_without_numbers(text, separator) for text in (given.old, given.new))
        if old.strip():
            yield _Wanted(old, new, "line numbers")
    old = _unescape(given.old)
    # whether a backslash in the new text is meant cannot be told, so there must be none
    if old != given.old and old.strip() and "\\" not in given.new:
        yield _Wanted(old, given.new, "backslashes")


def _number_separator(text: str) -> str:
    """What separates the number from the text in every line, if the numbers count on; else empty.
    The last line may be empty."""
    lines = text.removesuffix("\n").split("\n")
    found = [match for line in lines if (match := _NUMBERED.match(line))]
    if len(found) < len(lines) or len({match[2] for match in found}) > 1:
        return ""
    numbers = [int(match[1]) for match in found]
    counts_on = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return found[0][2] if counts_on else ""


def _without_numbers(text: str, separator: str) -> str:
    lines = text.split("\n")
    for at, line in enumerate(lines):
        found = _NUMBERED.match(line)
        if found and found[2] == separator:
            lines[at] = line[found.end() :]
    return "\n".join(lines)


def _unescape(text: str) -> str:
    return normalize(_ESCAPE.sub(lambda found: _UNESCAPED.get(found[1], found[1]), text))


# --- no match ----------------------------------------------------------------------------------


def _explain_missing(plain: str, given: _Wanted, path: str) -> str:
    said = f"old_string is not in {path}"
    squeezed = "".join(given.old.split())
    if squeezed and squeezed in "".join(plain.split()):
        said += " with these spaces and line breaks"
    unescaped = _unescape(given.old)
    if unescaped != given.old and unescaped.strip() and unescaped in plain:
        line = plain.count("\n", 0, plain.find(unescaped)) + 1
        return (
            f"{said}; with its backslashes undone it stands in line {line}: send old_string and "
            "new_string without a backslash before line breaks, tabs and quotation marks"
        )
    if UNKNOWN_BYTE in given.old:
        said += f" ({UNKNOWN_BYTE} stands for a byte that is not text: leave such lines out)"
    near = replace_surrogates(nearest_passage(plain, given.old))
    if not near:
        return f"{said}, and nothing like it; read the file again. Nothing was written"
    return (
        f"{said}; it must be exact, without line numbers. Nothing was written. "
        f"The nearest passage is:\n{near}"
    )
