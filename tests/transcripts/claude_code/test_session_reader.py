"""Claude Code's files: one reply is one message, the chain is the order, nothing twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from recollect.entries import (
    Compaction,
    InlineData,
    Message,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
)
from recollect.store.open_store import open_store
from recollect.transcripts.claude_code import session_reader
from recollect.transcripts.record_source import MemoryRecords
from recollect.transcripts.transcript import Transcript
from tests.transcripts.file_builders import import_value, line, messages_of, result_of, use
from tests.transcripts.whole_files import load_original


def _read(*records: Any) -> Transcript:
    return session_reader.read(MemoryRecords(enumerate(records, 1)))


def _main(transcript: Transcript) -> list[Any]:
    by_id = {entry.id: entry for entry in transcript.entries}
    bodies, at = [], transcript.leaf
    while at:
        bodies.append(by_id[at].body)
        at = by_id[at].parent
    return bodies[::-1]


def _texts(transcript: Transcript) -> list[str]:
    return [
        "".join(part.text for part in body.parts if isinstance(part, Text))
        for body in _main(transcript)
        if isinstance(body, Message)
    ]


def text(content: str) -> list[Any]:
    return [{"type": "text", "text": content}]


def test_a_reply_in_several_lines_is_one_message_counted_once() -> None:
    usage = {"input_tokens": 9, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 10}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    transcript = _read(
        line("u1", None, "user", "fix it"),
        line("a1", "u1", "assistant", [thinking], id="m", usage={**usage, "output_tokens": 1}),
        line("a2", "a1", "assistant", text("ok"), id="m", usage={**usage, "output_tokens": 45}),
        line(
            "a3", "a2", "assistant", [use("t1", path="a.py")], id="m", stop_reason="tool_use",
            usage={**usage, "output_tokens": 45},
        ),
    )  # fmt: skip
    asked, reply = messages_of(transcript.entries)
    assert asked.parts == (Text(text="fix it"),)
    assert reply.parts == (
        Thought(text="hm", signature="sig"),
        Text(text="ok"),
        ToolCall(id="t1", name="Read", arguments='{"path":"a.py"}'),
    )
    assert reply.finish == "calls"
    assert reply.usage == Usage(input=919, output=45, cached=900, written=10, total=964)


def test_results_of_calls_made_together_all_follow_the_reply() -> None:
    """Each result hangs off the line of its call, so only one of them is on the chain."""
    transcript = _read(
        line("u1", None, "user", "read both"),
        line("a1", "u1", "assistant", [use("t1")], id="m"),
        line("a2", "a1", "assistant", [use("t2")], id="m"),
        line("r1", "a1", "user", [result_of("t1", "one")]),
        line(
            "r2", "a2", "user", [result_of("t2", [{"type": "text", "text": "two"}], is_error=True)]
        ),
        line("a3", "r2", "assistant", text("done"), id="n"),
    )
    assert len(transcript.entries) == len(_main(transcript)) == 5
    first, second = (body.parts[0] for body in _main(transcript)[2:4])
    assert first == ToolResult(call_id="t1", name="Read", content=(Text(text="one"),))
    assert second == ToolResult(
        call_id="t2", name="Read", content=(Text(text="two"),), is_error=True
    )


def test_the_chain_is_the_order_not_the_line() -> None:
    transcript = _read(
        line("a1", "u1", "assistant", text("second"), id="m"),
        line("u1", None, "user", "first"),
        line("p", "a1", "progress"),
        line("u2", "p", "user", "third"),
    )
    assert _texts(transcript) == ["first", "second", "third"]


def test_an_abandoned_branch_stays_in_the_tree() -> None:
    transcript = _read(
        line("u1", None, "user", "hi"),
        line("a1", "u1", "assistant", text("old"), id="m"),
        line("a2", "u1", "assistant", text("new"), id="n"),
    )
    assert _texts(transcript) == ["hi", "new"]
    assert len(transcript.entries) == 3


def test_a_sidechain_is_not_part_of_the_conversation() -> None:
    transcript = _read(
        line("u1", None, "user", "hi"),
        line("s1", "u1", "user", "do this for me", isSidechain=True),
        line("a1", "u1", "assistant", text("hello"), id="m"),
        line("s2", "s1", "assistant", text("done"), id="s", isSidechain=True),
    )
    assert _texts(transcript) == ["hi", "hello"]
    assert len(transcript.entries) == 2


def test_a_subagents_own_file_is_a_session_of_its_own() -> None:
    main = _read(line("u1", None, "user", "hi"))
    aside = [line("s1", None, "user", "do this", isSidechain=True, agentId="7")]
    transcript = _read(*aside)
    assert _texts(transcript) == ["do this"]
    assert transcript.session != main.session


def test_a_record_that_is_written_again_counts_once() -> None:
    records = [
        line("u1", None, "user", "hi"),
        line("a1", "u1", "assistant", [use("t1")], id="m"),
        line("r1", "a1", "user", [result_of("t1", "one")]),
    ]
    transcript = _read(*records, *records)
    assert len(transcript.entries) == 3


def test_a_record_that_is_appended_again_elsewhere_stays_where_it_was() -> None:
    """After a second compaction records are written again, with other parents."""
    transcript = _read(
        line("u1", None, "user", "one"),
        line("a1", "u1", "assistant", text("two"), id="m"),
        line("c1", None, "system", subtype="compact_boundary", logicalParentUuid="a1"),
        line("s1", "c1", "user", "summary", isCompactSummary=True),
        line("u1", "s1", "user", "one"),
        line("a1", "u1", "assistant", text("two"), id="m"),
        line("u2", "s1", "user", "three"),
    )
    assert _texts(transcript) == ["one", "two", "three"]
    assert len(transcript.entries) == 4


def test_the_head_is_the_last_record_that_the_user_saw() -> None:
    transcript = _read(
        line("u1", None, "user", "hi"),
        line("a1", "u1", "assistant", text("hello"), id="m"),
        line("x1", "u1", "user", "caveat", isMeta=True),
    )
    assert _texts(transcript) == ["hi", "hello"]


def test_a_result_may_have_no_content() -> None:
    transcript = _read(
        line("a1", None, "assistant", [use("t1")], id="m"),
        line("r1", "a1", "user", [result_of("t1", None)]),
    )
    assert messages_of(transcript.entries)[1].parts == (ToolResult(call_id="t1", name="Read"),)


def test_records_of_unknown_kinds_are_stored_and_break_no_chain(tmp_path: Path) -> None:
    records = [
        {"type": "hologram", "sessionId": "C-1", "depth": 3},
        line("u1", None, "user", "one"),
        line("h1", "u1", "hologram", depth=4),
        line("h2", "h1", "system", subtype="snip_boundary"),
        line("u2", "h2", "user", "two"),
    ]

    async def work() -> None:
        async with open_store(tmp_path / "store.db") as store:
            imported = await import_value(store, tmp_path / "file.jsonl", records)
            path = await store.path(imported.session)
            assert [p.text for m in messages_of(path) for p in m.parts if isinstance(p, Text)] == [
                "one",
                "two",
            ]
            assert imported.problems == ()
            kept = await load_original(store, path[0], path)
            assert kept == (tmp_path / "file.jsonl").read_bytes()

    asyncio.run(work())


def test_a_result_that_is_written_twice_is_read_once() -> None:
    transcript = _read(
        line("a1", None, "assistant", [use("t1")], id="m"),
        line("r1", "a1", "user", [result_of("t1", "one")]),
        line("r2", "r1", "user", [result_of("t1", "one")]),
    )
    results = [
        p for m in messages_of(transcript.entries) for p in m.parts if isinstance(p, ToolResult)
    ]
    assert len(results) == 1


def test_a_boundary_and_its_summary_are_one_compaction() -> None:
    transcript = _read(
        line("u1", None, "user", "hi"),
        line(
            "c1", None, "system", subtype="compact_boundary", logicalParentUuid="u1",
            compactMetadata={"trigger": "auto", "preTokens": 167000},
        ),
        line("s1", "c1", "user", "This session is being continued", isCompactSummary=True),
        line("u2", "s1", "user", "go on"),
    )  # fmt: skip
    _, compaction, asked = _main(transcript)
    assert isinstance(compaction, Compaction)
    assert (compaction.status, compaction.trigger) == ("COMPRESSED", "import")
    assert compaction.snapshot == "This session is being continued"
    assert (compaction.tokens_before, compaction.first_kept) == (167000, None)
    assert asked.parts == (Text(text="go on"),)


def test_a_boundary_without_a_summary_hides_nothing() -> None:
    transcript = _read(
        line("u1", None, "user", "hi"),
        line("c1", None, "system", subtype="compact_boundary", logicalParentUuid="gone"),
        line("u2", "c1", "user", "go on"),
    )
    _, compaction, _ = _main(transcript)
    assert compaction.status == "COMPRESSION_FAILED_EMPTY_SUMMARY"
    assert "gone" in transcript.problems[0].reason


def test_the_title_that_the_user_gave_wins() -> None:
    titles = [
        {"type": "custom-title", "customTitle": "Mine", "sessionId": "C-1"},
        {"type": "agent-name", "agentName": "Agent's", "sessionId": "C-1"},
        {"type": "ai-title", "aiTitle": "Machine's", "sessionId": "C-1"},
        {"type": "summary", "summary": "Summary", "leafUuid": "u1"},
    ]
    message = line("u1", None, "user", "hi")
    assert _read(message, *titles).heading == "Mine"
    assert _read(message, *titles[1:]).heading == "Agent's"
    assert _read(message, *titles[2:]).heading == "Machine's"
    assert _read(message, *titles[3:]).heading == "Summary"
    assert _read(*titles[3:], message, titles[3] | {"summary": "Later"}).heading == "Later"


def test_images_and_unknown_blocks_are_stored() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AAEC"}
    strange = {"type": "hologram", "depth": 3}
    transcript = _read(line("u1", None, "user", [{"type": "image", "source": source}, strange]))
    image, unknown = messages_of(transcript.entries)[0].parts
    assert image == InlineData(mime="image/png", data=b"\x00\x01\x02")
    assert isinstance(unknown, Unknown)
    assert "hologram" in unknown.data


def test_circles_and_missing_parents_lose_no_record() -> None:
    transcript = _read(
        line("u1", "a1", "user", "one"),
        line("a1", "u1", "assistant", text("two"), id="m"),
        line("u2", "nowhere", "user", "three"),
        line("u3", "u3", "user", "four"),
        line("p1", "p2", "progress"),
        line("p2", "p1", "progress"),
        line("u4", "p1", "user", "five"),
    )
    assert len(transcript.entries) == 5


def test_a_long_chain_needs_no_deep_recursion() -> None:
    records = [line(f"u{n}", f"u{n - 1}" if n else None, "user", str(n)) for n in range(5_000)]
    assert len(_main(_read(*reversed(records)))) == 5_000


def test_a_reply_that_has_grown_since_replaces_its_earlier_state(tmp_path: Path) -> None:
    records = [
        line("u1", None, "user", "read both"),
        line("a1", "u1", "assistant", [use("t1")], id="m"),
        line("r1", "a1", "user", [result_of("t1", "one")]),
        line("a2", "a1", "assistant", [use("t2")], id="m"),
        line("r2", "a2", "user", [result_of("t2", "two")]),
        line("a3", "r2", "assistant", text("done"), id="n"),
    ]

    async def work() -> None:
        async with open_store(tmp_path / "store.db") as store:
            await import_value(store, tmp_path / "file.jsonl", records[:3])
            imported = await import_value(store, tmp_path / "file.jsonl", records)
            path = await store.path(imported.session)
            assert [len(message.parts) for message in messages_of(path)] == [1, 2, 1, 1, 1]
            assert "branch" in imported.warnings[0]
            assert len(await store.tree(imported.session)) == len(path) + 2

    asyncio.run(work())
