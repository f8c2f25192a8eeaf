"""What Claude Code's compactions kept stays visible, and what they left out is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Compaction, Elide, Entry, Message, Text, ToolResult
from recollect.transcripts.claude_code import session_reader
from recollect.transcripts.json_values import Json
from recollect.transcripts.record_source import MemoryRecords
from recollect.transcripts.transcript import Transcript
from tests.transcripts.call_counter import count_calls
from tests.transcripts.file_builders import anything, line, result_of, use


def read(*records: Any) -> Transcript:
    return session_reader.read(MemoryRecords(enumerate(records, 1)))


def path(transcript: Transcript, at: str | None = None) -> list[Entry]:
    by_id = {entry.id: entry for entry in transcript.entries}
    found, at = [], at or transcript.leaf
    while at:
        found.append(by_id[at])
        at = by_id[at].parent
    return found[::-1]


def label(entry: Entry) -> str:
    body = entry.body
    if isinstance(body, Message):
        texts = [p.text for p in body.parts if isinstance(p, Text)]
        return "".join(texts) or f"{body.role}: {len(body.parts)}"
    return type(body).__name__


def labels(transcript: Transcript) -> list[str]:
    return [label(entry) for entry in path(transcript)]


def only_compaction(transcript: Transcript) -> Compaction:
    (found,) = [e.body for e in transcript.entries if isinstance(e.body, Compaction)]
    return found


def kept_label(transcript: Transcript) -> str | None:
    first = only_compaction(transcript).first_kept
    return next((label(e) for e in transcript.entries if e.id == first), None)


def boundary(uuid: str, after: str, **about: Any) -> Json:
    return line(
        uuid, None, "system", subtype="compact_boundary", logicalParentUuid=after,
        compactMetadata={"trigger": "auto", "preTokens": 9_000, **about},
    )  # fmt: skip


def summary(uuid: str, after: str, text: str = "summary", **more: Any) -> Json:
    return line(uuid, after, "user", text, isCompactSummary=True, **more)


def segment(head: str, tail: str) -> Json:
    return {"preservedSegment": {"headUuid": head, "anchorUuid": "s", "tailUuid": tail}}


def said(uuid: str, after: str | None) -> Json:
    return line(uuid, after, "user", uuid)


TALK = [said("one", None), said("two", "one"), said("three", "two"), said("four", "three")]
REWOUND = [*TALK, boundary("c", "four"), summary("s", "c"), said("five", "s")]


def test_messages_that_a_compaction_preserved_stay_visible() -> None:
    about = segment("three", "four")
    transcript = read(*TALK, boundary("c", "four", **about), summary("s", "c"), said("five", "s"))
    assert labels(transcript) == ["one", "two", "three", "four", "Compaction", "five"]
    assert kept_label(transcript) == "three"


def test_a_compaction_that_preserves_nothing_replaces_everything() -> None:
    assert only_compaction(read(*REWOUND)).first_kept is None


def test_the_list_of_preserved_messages_supersedes_the_segment() -> None:
    about = segment("two", "four") | {
        "preservedMessages": {"anchorUuid": "s", "uuids": ["four"], "allUuids": ["four"]},
        "postTokens": 800,
    }
    transcript = read(*TALK, boundary("c", "four", **about), summary("s", "c"))
    assert kept_label(transcript) == "four"
    assert only_compaction(transcript).tokens_after == 800


def test_later_children_of_the_last_preserved_message_follow_the_compaction() -> None:
    about = segment("three", "four")
    records = [*TALK, boundary("c", "four", **about), summary("s", "c"), said("five", "four")]
    assert labels(read(*records)) == ["one", "two", "three", "four", "Compaction", "five"]


def test_a_rewind_that_summarises_up_to_a_place_keeps_what_comes_after_it() -> None:
    """Its boundary names the last message that was summarised, from which the kept ones go on."""
    about = {"preservedMessages": {"anchorUuid": "s", "uuids": ["three", "four"]}}
    transcript = read(
        *TALK,
        boundary("c", "two", **about),
        summary("s", "c", summarizeMetadata={"direction": "up_to", "messagesSummarized": 2}),
        said("five", "s"),
    )
    assert labels(transcript) == ["one", "two", "three", "four", "Compaction", "five"]
    assert kept_label(transcript) == "three"


@pytest.mark.parametrize("about", [{}, {"preservedMessages": {"uuids": ["one", "two"]}}])
def test_a_rewind_that_summarises_from_a_place_on_keeps_what_came_before_it(about: Json) -> None:
    transcript = read(
        *TALK,
        boundary("c", "two", **about),
        summary("s", "c", summarizeMetadata={"direction": "from"}),
        said("five", "s"),
    )
    assert labels(transcript) == ["one", "two", "Compaction", "five"]
    assert kept_label(transcript) == "one"
    assert {"three", "four"} < {label(entry) for entry in transcript.entries}


def test_a_rewind_that_keeps_an_earlier_compaction_repeats_its_snapshot() -> None:
    """Only the newest snapshot is shown; the earlier one has to be in it."""
    transcript = read(
        *REWOUND,
        said("six", "five"),
        boundary("c2", "five"),
        summary("s2", "c2", "what six was about", summarizeMetadata={"direction": "from"}),
    )
    first, second = [e for e in path(transcript) if isinstance(e.body, Compaction)]
    assert isinstance(second.body, Compaction)
    assert second.body.snapshot == "summary\n\nwhat six was about"
    assert second.body.first_kept == first.id


def test_a_second_compaction_may_keep_what_the_first_one_kept() -> None:
    transcript = read(
        *TALK,
        boundary("c", "four", **segment("three", "four")),
        summary("s", "c"),
        said("five", "four"),
        boundary("c2", "five", **segment("four", "five")),
        summary("s2", "c2"),
        said("six", "s2"),
    )
    expected = ["one", "two", "three", "four", "Compaction", "five", "Compaction", "six"]
    assert labels(transcript) == expected
    second = path(transcript)[6].body
    assert isinstance(second, Compaction)
    assert second.first_kept == path(transcript)[3].id


def test_a_result_that_was_preserved_keeps_its_call() -> None:
    transcript = read(
        said("one", None),
        line("a1", "one", "assistant", [use("t1")], id="m"),
        line("r1", "a1", "user", [result_of("t1", "out")]),
        boundary("c", "r1", **segment("r1", "r1")),
        summary("s", "c"),
    )
    assert kept_label(transcript) == "model: 1"


def test_a_compaction_keeps_only_messages_above_it() -> None:
    for names in (["gone"], ["five"], ["c"], ["s"], [7], "three"):
        about = {"preservedMessages": {"uuids": names}}
        transcript = read(
            *TALK, boundary("c", "four", **about), summary("s", "c"), said("five", "s")
        )
        assert only_compaction(transcript).first_kept is None, names
        assert len(transcript.entries) == 6


def test_a_compaction_without_a_summary_names_no_first_kept_message() -> None:
    transcript = read(*TALK, boundary("c", "four", **segment("three", "four")), said("five", "c"))
    assert only_compaction(transcript).first_kept is None
    assert only_compaction(transcript).status == "COMPRESSION_FAILED_EMPTY_SUMMARY"


# --- microcompactions --------------------------------------------------------------------------


def micro(uuid: str, after: str, *calls: Any) -> Json:
    about = {"trigger": "auto", "tokensSaved": 900, "compactedToolIds": list(calls)}
    return line(
        uuid, after, "system", subtype="microcompact_boundary", microcompactMetadata=about
    )  # fmt: skip


WORK = [
    said("one", None),
    line("a1", "one", "assistant", [use("t1"), use("t2")], id="m"),
    line("r1", "a1", "user", [result_of("t1", "first"), result_of("t2", "second")]),
]


def test_results_that_a_microcompaction_cleared_are_elided() -> None:
    transcript = read(*WORK, micro("c", "r1", "t2", "gone", "t2", 5), said("two", "c"))
    assert labels(transcript) == ["one", "model: 2", "user: 2", "Elide", "two"]
    elide = path(transcript)[3].body
    assert isinstance(elide, Elide)
    (item,) = elide.items
    assert (elide.rule, item.entry, item.parts) == ("import", path(transcript)[2].id, (1,))
    assert item.placeholder == "[The result of Read (call t2) was left out by Claude Code.]"


def test_a_microcompaction_of_nothing_above_it_makes_no_entry() -> None:
    transcript = read(*WORK, micro("c", "one", "t1"), said("two", "c"))
    assert labels(transcript) == ["one", "two"]
    assert labels(read(*WORK, micro("c", "r1"))) == ["one", "model: 2", "user: 2"]


def test_a_placeholder_is_short_and_plain_whatever_the_call_is_called() -> None:
    name = "t\n\x1b[31m]" + "x" * 5_000
    transcript = read(
        line("a1", None, "assistant", [use(name) | {"name": name}], id="m"),
        line("r1", "a1", "user", [result_of(name, "out")]),
        micro("c", "r1", name),
    )
    elide = path(transcript)[-1].body
    assert isinstance(elide, Elide)
    assert len(elide.items[0].placeholder) < 250
    assert elide.items[0].placeholder.isprintable()


# --- whatever the file says --------------------------------------------------------------------

_uuids = st.sampled_from(["u0", "u1", "u2", "u3", "c0", "c1", "s0", "s1", "m0", "gone"])
_preserved = st.one_of(
    st.builds(segment, _uuids, _uuids),
    st.lists(_uuids, max_size=3).map(lambda names: {"preservedMessages": {"uuids": names}}),
    anything.map(lambda odd: {"preservedSegment": odd, "preservedMessages": odd}),
)
_directions = st.sampled_from([{}, {"direction": "from"}, {"direction": "up_to"}])


@st.composite
def files(draw: st.DrawFn) -> list[Json]:
    records = [line(f"u{n}", draw(st.none() | _uuids), "user", f"u{n}") for n in range(2)]
    records += [
        line("u2", draw(_uuids), "assistant", [use("t1")], id="m"),
        line("u3", draw(_uuids), "user", [result_of("t1", "out")]),
        micro("m0", draw(_uuids), "t1"),
    ]
    for n in range(2):
        records.append(boundary(f"c{n}", draw(_uuids), **draw(_preserved)))
        after = draw(st.just(f"c{n}") | _uuids)
        records.append(summary(f"s{n}", after, summarizeMetadata=draw(_directions)))
    return draw(st.permutations(records))


@given(files())
def test_edits_only_ever_name_what_is_above_them(records: list[Json]) -> None:
    transcript = read(*records)
    for entry in transcript.entries:
        above = {each.id: each for each in path(transcript, entry.id)[:-1]}
        if isinstance(entry.body, Compaction):
            assert entry.body.first_kept is None or entry.body.first_kept in above
        if isinstance(entry.body, Elide):
            for item in entry.body.items:
                named = above[item.entry].body
                assert isinstance(named, Message)
                assert all(isinstance(named.parts[at], ToolResult) for at in item.parts)
    texts = [label(entry) for entry in transcript.entries if isinstance(entry.body, Message)]
    assert sorted(texts) == ["model: 1", "u0", "u1", "user: 1"]


def many_compactions(count: int) -> list[Json]:
    """Each keeps everything before it, and so repeats the snapshot before."""
    records, last = [said("u", None)], "u"
    for n in range(count):
        records.append(boundary(f"c{n}", last, **segment("u", last)))
        records += [summary(f"s{n}", f"c{n}", "s" * 99, summarizeMetadata={"direction": "from"})]
        records += [said(f"u{n}", f"s{n}")]
        last = f"u{n}"
    return records


def test_many_compactions_cost_in_proportion_to_their_number() -> None:
    few, many = many_compactions(250), many_compactions(1_000)
    cost = count_calls(lambda: read(*few))
    assert count_calls(lambda: read(*many)) < 4.5 * cost


def test_snapshots_that_repeat_each_other_do_not_grow_without_end() -> None:
    transcript = read(*many_compactions(2_000))
    assert len(transcript.entries) == 4_001
    snapshots = [e.body.snapshot for e in transcript.entries if isinstance(e.body, Compaction)]
    assert sum(map(len, snapshots)) < 5_000_000
