"""What a model wrote into a snapshot: kept in every section, and marked where the log disagrees.

The user's words are the log's: what a model wrote as such is knowledge, so that it can neither
remove nor forge one. A line that names a commit or a file that no tool ever showed is marked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from recollect.code_names import find_names
from recollect.snapshot.quotes import Quote, parse_items
from recollect.snapshot.snapshot_format import SECTIONS, Snapshot
from recollect.text import clean, clip_again
from recollect.work_journal import ToolOutputText

_HASH = re.compile(r"\b(?=[0-9a-f]{0,39}\d)(?=[0-9a-f]{0,39}[a-f])[0-9a-f]{7,40}\b")
_HANDLE = re.compile(r"\[[0-9a-f]{8}\] ?")
_MAX_SECTION, _MAX_CHECKED = 60_000, 60
_UNKNOWN = " [not in the log]"
_WISHES = "As the model understood the user: "


def quote_written(
    written: Snapshot, outputs: Sequence[ToolOutputText], said: Collection[str]
) -> Iterator[tuple[str, list[Quote]]]:
    """Each section with its items; of the user's wishes, those that the user did not say so."""
    for name in SECTIONS:
        text = clip_again(clean(written.section(name)).strip(), _MAX_SECTION)
        if not text:
            continue
        wishes, unknown = name == "user_directives", _unknown_names(text, outputs)
        items = [
            Quote((_WISHES if wishes else "") + item + _UNKNOWN * any(n in item for n in unknown))
            for item in parse_items(text)
            if not (wishes and _HANDLE.sub("", item).strip(" \"'“”„«»「」") in said)
        ]
        yield "key_knowledge" if wishes else name, items


def _unknown_names(text: str, outputs: Sequence[ToolOutputText]) -> list[str]:
    """The commits and files in a text that no call named and no tool showed."""
    files = (file.rsplit("/", 1)[-1] for file in find_names(text).files)
    hashes = _HASH.findall(_HANDLE.sub("", text))
    names = list(dict.fromkeys([*hashes, *sorted(files)]))[:_MAX_CHECKED]
    return [n for n in names if not any(n in o.asked or n in o.text for o in outputs)]
