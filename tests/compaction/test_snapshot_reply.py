"""A snapshot is read from a reply however the model marked its sections."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.compaction.snapshot_reply import parse_reply
from recollect.snapshot.snapshot_format import SECTIONS, Snapshot, write_snapshot
from tests.growth import is_linear

GOAL, PLAN = "Repair the limiter.", "- [DONE] Refill once\n- [TODO] Test it"
EXPECTED = Snapshot(overall_goal=GOAL, current_plan=PLAN)
OBJECT = json.dumps(
    {"overall_goal": GOAL, "current_plan": ["[DONE] Refill once", "[TODO] Test it"]}, indent=1
)


@pytest.mark.parametrize(
    "reply",
    [
        write_snapshot(EXPECTED),
        OBJECT,
        f"### Reasoning\n\nI think.\n\n### <state_snapshot>\n\n```json\n{OBJECT}\n```",
        json.dumps({"state_snapshot": json.loads(OBJECT)}),
        OBJECT[:-1],  # cut off
        f"## Overall goal\n{GOAL}\n\n## Current plan:\n{PLAN}\n",
        f"**overall_goal**\n{GOAL}\n**current_plan:**\n```\n{PLAN}\n```",
    ],
)
def test_tags_objects_and_headings_mark_the_same_sections(reply: str) -> None:
    assert parse_reply(reply) == EXPECTED


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I cannot do that.",
        "The overall goal is unclear, and so is the\ncurrent plan\nof the user.",
        '{"overall_goal": "only one section"}',
        '{"name": "read_file", "arguments": {}}',
        '{"overall_goal": {"current_plan"',
    ],
)
def test_a_reply_without_a_snapshot_is_none(reply: str) -> None:
    assert parse_reply(reply) is None


@given(st.text(max_size=300), st.sampled_from(SECTIONS), st.sampled_from(SECTIONS))
def test_nothing_that_a_model_writes_raises(text: str, one: str, other: str) -> None:
    for reply in (text, f'{{"{one}": {text}', f"# {one}\n{text}\n# {other}\n{text}"):
        found = parse_reply(reply)
        assert found is None or isinstance(found, Snapshot)


@pytest.mark.parametrize("piece", ['{"overall_goal": ', "# current plan\n", "{", '"', "<", " "])
def test_the_time_grows_with_the_length_of_the_reply(piece: str) -> None:
    def prepare(size: int) -> object:
        reply = piece * size
        return lambda: parse_reply(reply)

    assert is_linear(prepare, 2_000, 8_000, slack=1.0)  # type: ignore[arg-type]
