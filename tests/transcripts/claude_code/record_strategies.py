"""Records of Claude Code as no program writes them: any parent, any order, everything at once."""

from __future__ import annotations

from hypothesis import strategies as st

UUIDS = st.sampled_from([*"abcdefgh", ""])
CALLS = st.sampled_from(["c1", "c2", "c3"])
BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.sampled_from(["x", "é\ud800", ""])),
    st.builds(lambda id_: {"type": "tool_use", "id": id_, "name": f"t{id_}", "input": {}}, CALLS),
    st.builds(lambda id_: {"type": "tool_result", "tool_use_id": id_, "content": "r"}, CALLS),
)
TIMES = st.sampled_from(["2026-11-01T10:00:00Z", "2026-11-02T10:00:00Z", None, "never"])
COMMON = {"uuid": UUIDS, "parentUuid": st.none() | UUIDS | st.just(7), "timestamp": TIMES}
MESSAGES = st.fixed_dictionaries(
    COMMON
    | {
        "type": st.sampled_from(["user", "assistant", "user", "assistant", "attachment"]),
        "isMeta": st.booleans(),
        "isSidechain": st.sampled_from([False, False, False, True]),
        "isCompactSummary": st.sampled_from([False, False, False, True]),
        "message": st.fixed_dictionaries(
            {
                "id": st.sampled_from(["m1", "m2", "m3", None]),
                "content": st.lists(BLOCKS, max_size=3) | st.just("said"),
            }
        ),
    }
)
BOUNDARIES = st.fixed_dictionaries(
    COMMON
    | {
        "type": st.just("system"),
        "subtype": st.sampled_from(["compact_boundary", "microcompact_boundary"]),
        "compactMetadata": st.builds(
            lambda uuids: {"preservedMessages": {"uuids": uuids}}, st.lists(UUIDS, max_size=2)
        ),
        "microcompactMetadata": st.builds(
            lambda calls: {"compactedToolIds": calls}, st.lists(CALLS, max_size=2)
        ),
    }
)
TITLES = st.just({"type": "ai-title", "aiTitle": "A title"})
RECORDS = st.lists(st.one_of(MESSAGES, MESSAGES, MESSAGES, BOUNDARIES, TITLES), max_size=12)
BEGIN = {
    "type": "user",
    "uuid": "z",
    "parentUuid": None,
    "message": {"content": "hi"},
    "sessionId": "s",
}
