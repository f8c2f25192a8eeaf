"""Reads the snapshot in a model's reply, in whatever way the model wrote its sections down.

Small models know what belongs into a section but not always how to mark it: besides tags they write
a JSON object with the sections as keys, or a heading for each. All of it is data; how much of it is
believed is decided when the snapshot is built. Linear, and nothing raises.
"""

from __future__ import annotations

import re

from recollect.codecs.text_tools.lenient_json import JsonRepairer
from recollect.snapshot.snapshot_format import MAX_REPLY, SECTIONS, Snapshot, parse_snapshot

_MIN_SECTIONS = 2  # with fewer, it may be prose that mentions a section
_NAMES = "|".join(name.replace("_", "[ _]") for name in SECTIONS)
_OBJECT = re.compile(rf'\{{\s{{0,100}}"(?:{_NAMES})"\s{{0,100}}:', re.I)
_HEADING = re.compile(
    rf"^[ \t]{{0,8}}[#*>`<\"-]{{0,8}} ?({_NAMES})[*`>\"]{{0,4}}:?[*` \t]{{0,8}}$", re.I
)
_FENCE = re.compile(r"^[ \t]{0,8}```")


def parse_reply(text: str) -> Snapshot | None:
    """The snapshot in a reply; None if there is none."""
    text = text[:MAX_REPLY]
    return parse_snapshot(text) or _parse_object(text) or _parse_headings(text)


def _parse_object(text: str) -> Snapshot | None:
    found = _OBJECT.search(text)
    if found is None:
        return None
    end = text.rfind("}") + 1
    written = text[found.start() : end if end > found.end() else len(text)]
    repairer = JsonRepairer()
    value = repairer.read(written)
    if not isinstance(value, dict):  # the last brace may close an object around it
        value = repairer.read(written[:-1])
    if not isinstance(value, dict):
        return None
    return _build({_name(key): _write_items(one) for key, one in value.items()})


def _write_items(value: object) -> str:
    """A section's items, one to a line."""
    if isinstance(value, dict):
        value = [f"{key}: {_write_items(one)}" for key, one in value.items()]
    if isinstance(value, list):
        return "\n".join(f"- {_write_items(one)}" for one in value)
    return value if isinstance(value, str) else "" if value is None else str(value)


def _parse_headings(text: str) -> Snapshot | None:
    sections: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in text.split("\n"):
        if (found := _HEADING.match(line)) is not None:
            lines = sections.setdefault(_name(found[1]), [])
        elif lines is not None and not _FENCE.match(line):
            lines.append(line)
    return _build({name: "\n".join(found).strip("\n") for name, found in sections.items()})


def _name(written: str) -> str:
    return written.strip().lower().replace(" ", "_")


def _build(sections: dict[str, str]) -> Snapshot | None:
    known = {name: text for name, text in sections.items() if name in SECTIONS and text.strip()}
    return Snapshot(**known) if len(known) >= _MIN_SECTIONS else None
