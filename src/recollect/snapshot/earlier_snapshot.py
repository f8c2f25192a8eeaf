"""What an earlier snapshot says that the messages since do not say anew.

Its directives stay word for word. Of its other items those go that a newer one replaces: the same
handle, the same file, the same ticket, and what was true of the work only then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from recollect.snapshot.file_records import parse_record
from recollect.snapshot.quotes import Quote, parse_items
from recollect.snapshot.snapshot_format import Snapshot
from recollect.text import LEFT_OUT, UNCOUNTED, clean

_HANDLE = re.compile(r"\[([0-9a-f]{8})\] ")
_SUBJECT = re.compile(r"(?:\[[0-9a-f]{8}\] )?([^\s:]{3,300})")
_NAMING = re.compile(r"[\d/]")  # in the name of a file or a ticket
_LEFT_OUT = re.compile(r"^(?:- )?\((\d{1,9}) more messages of the user ", re.M)
_CUT = re.compile(rf"{LEFT_OUT.pattern}|{re.escape(UNCOUNTED)}")
# what describes the work as it was then
_PASSING = ("Commits: ", "Pushes: ", "Changed ", "Last ", "Also named: ", "Root: ")
_STEPS = ("Done since", "Announced", "[ ] ", "[>] ", "[x] ")
_OLDER = 0.5  # the weight of what an earlier snapshot says


def earlier_directives(earlier: Snapshot, newer: Iterable[Quote]) -> list[Quote]:
    """Those of the earlier snapshot that are not among the newer ones, whole or cut."""
    known = [quote.text for quote in newer]
    items = parse_items(clean(earlier.user_directives))
    found = [Quote(text) for text in items if not _LEFT_OUT.match(text)]
    return [quote for quote in found if not any(_says(quote.text, whole) for whole in known)]


def _says(item: str, whole: str) -> bool:
    text = _HANDLE.sub("", item, count=1)
    pieces = _CUT.split(text)
    return text == whole or (
        len(pieces) == 2 and whole.startswith(pieces[0]) and whole.endswith(pieces[1])
    )


def count_left_out(earlier: Snapshot) -> int:
    """How many messages of the user the earlier snapshot says it has not."""
    return sum(map(int, _LEFT_OUT.findall(earlier.user_directives)))


def earlier_items(section: str, newer: Iterable[str]) -> list[Quote]:
    """The items of an earlier section that the newer items leave standing; the lines of files have
    records of their own."""
    new = list(newer)
    handles = {found[1] for item in new for found in _HANDLE.finditer(item[:14])}
    subjects = {found[1] for item in new if (found := _SUBJECT.match(item.removeprefix("- ")))}
    kept = []
    for item in parse_items(clean(section)):
        handle, subject = _HANDLE.match(item), _SUBJECT.match(item)
        text = _HANDLE.sub("", item, count=1)
        if text.startswith(_PASSING + _STEPS) or (handle is not None and handle[1] in handles):
            continue
        if subject is not None and subject[1] in subjects and _NAMING.search(subject[1]):
            continue
        if parse_record(item) is None:
            kept.append(Quote(item, weight=_OLDER))
    return kept
