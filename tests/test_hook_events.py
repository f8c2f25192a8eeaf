"""An event is one class; these tests name what a new one still lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.hook_events import EVENT_NAMES, HookEvent

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", PAGE, re.M))
SOURCE = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))


def missing(event: type[HookEvent]) -> Iterator[str]:
    """What an event lacks, each with the place where it belongs."""
    name, documented = event.__name__, set(re.findall(r"`(\w+)`", ROWS.get(event.__name__, "")))
    fields = {field for field in event.__struct_fields__ if field not in ("session", "time")}
    if name not in ROWS:
        yield f"a row `{name}` in the table of events in docs/hooks.md"
    for field in sorted(fields ^ documented):
        where = "the class" if field in documented else f"the row `{name}` of docs/hooks.md"
        yield f"the field `{field}` in {where}"
    if not re.search(rf"\b{name}\(\s*session=", SOURCE):
        yield f"a place in src/recollect that fires it: `hooks.fire({name}(session=…))`"


@pytest.mark.parametrize("event", HookEvent.__subclasses__())
def test_an_event_lacks_nothing(event: type[HookEvent]) -> None:
    assert list(missing(event)) == []


def test_no_event_is_documented_that_does_not_exist() -> None:
    events = PAGE.partition("## Events")[2].partition("## ")[0]
    assert set(re.findall(r"^\| `(\w+)`", events, re.M)) == set(EVENT_NAMES)


def test_the_names_of_the_events_do_not_change() -> None:
    released = (
        "SessionStart",
        "BeforeAgent",
        "BeforeModel",
        "AfterModel",
        "BeforeTool",
        "AfterTool",
        "PreCompress",
        "ChatCompressed",
        "ContextWindowWillOverflow",
        "LoopDetected",
        "AfterAgent",
        "SessionEnd",
    )
    assert set(released) <= set(EVENT_NAMES)
