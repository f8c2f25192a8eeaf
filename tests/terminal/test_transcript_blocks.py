"""A session that is opened again shows what was there when it ran."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.agent.corrections import CorrectionRequested
from recollect.agent.loop import Agent
from recollect.agent.run_events import RunFinished
from recollect.codecs.wire_protocol import Delta
from recollect.entries import (
    Compaction,
    Elide,
    Elided,
    Entry,
    Message,
    Note,
    Pin,
    Source,
    Text,
    Thought,
)
from recollect.errors import ModelError
from recollect.models.model_protocol import Retrying
from recollect.runtime.project_prompts import RAN
from recollect.store.ids import new_id
from recollect.store.sqlite import SqliteStore
from recollect.terminal.block import Block
from recollect.terminal.block_pieces import pieces_of
from recollect.terminal.event_feed import EventFeed
from recollect.terminal.terminal_events import (
    NoticeGiven,
    PromptEnded,
    PromptStarted,
    QueuedPrompt,
    SessionOpened,
)
from recollect.terminal.transcript_blocks import BlockList
from recollect.terminal.transcript_copying import block_text
from recollect.testing import (
    ScriptedModel,
    ScriptLine,
    breaks_after,
    call,
    model,
    result,
    says,
    user,
)
from recollect.tools.tool import tool
from tests.agent.harness import allow_all, in_store, new_session


@tool
async def add(a: int, b: int) -> str:
    """Add two numbers.

    Args:
        a: one
        b: the other
    """
    if a == b:
        raise ValueError("they are the same")
    return str(a + b)


def entry(body: object) -> Entry:
    return Entry(new_id(), None, 0, body)  # type: ignore[arg-type]


def in_log(blocks: BlockList) -> list[Block]:
    """Those that the log has, without what tells a run from a reading."""
    return [
        msgspec.structs.replace(block, key="", seconds=None, result="", entry="")
        for block in blocks.blocks
        if not block.key.startswith("notice-")
    ]


LINES = st.one_of(
    st.sampled_from(["hello", "# a\n\n- b\n- c", " ", "x" * 200]),
    st.builds(
        lambda text, pairs, thought: says(
            *([Thought(text=thought)] if thought else []),
            *([text] if text else []),
            *(call("add", id=f"c{n}-{a}{b}", a=a, b=b) for n, (a, b) in enumerate(pairs)),
        ),
        st.sampled_from(["", "I add", "two\n\nparts"]),
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=3),
        st.sampled_from(["", "let me think\nagain"]),
    ),
    st.just(breaks_after("half an ans")),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, min_size=1, max_size=5))
def test_a_run_leaves_what_reading_its_entries_shows(
    tmp_path_factory: pytest.TempPathFactory, script: list[ScriptLine]
) -> None:
    live = BlockList()

    async def story(store: SqliteStore) -> None:
        session = await new_session(store)
        scripted = ScriptedModel([*script, "the end"])
        agent = Agent(model=scripted, tools=(add,), permission_check=allow_all)
        feed = EventFeed(live)
        feed.add(SessionOpened(session, "new"))
        for prompt in ("first", "second"):
            queued, error = QueuedPrompt(prompt), ""
            if not scripted.left:
                break
            feed.add(PromptStarted(queued))
            try:
                async for event in agent.stream(prompt, session):
                    if not isinstance(event, RunFinished):
                        feed.add(event)
            except ModelError as failure:
                error = str(failure)
            feed.add(PromptEnded(queued, error=error))
        again = BlockList()
        again.add_entries(await store.path(session.id))
        again.end_pieces("interrupted")
        assert in_log(live) == in_log(again)
        assert all(block.entry for block in live.blocks if not block.key.startswith("notice-"))
        paged = BlockList()
        entries = await store.path(session.id)
        for start in range(len(entries) - 1, -1, -3):
            paged.prepend_entries(entries[max(0, start - 2) : start + 1])
        assert in_log(paged) == in_log(again)

    in_store(tmp_path_factory.mktemp("run"), story)


def test_pieces_are_shown_until_the_reply_is_stored_in_their_place() -> None:
    blocks = BlockList()
    blocks.add_said("hi")
    blocks.begin_reply("e" * 32)
    for piece in ("think", "ing"):
        blocks.add_piece("thought", piece)
    blocks.add_piece("reply", "hel")
    blocks.add_notice("something else happened")
    blocks.add_piece("reply", "lo")
    assert [block.kind for block in blocks.blocks] == [
        "user", "thought", "reply", "notice", "reply",
    ]  # fmt: skip
    assert blocks.growing is not None
    assert blocks.growing.text == "lo"
    blocks.add_entries([Entry("e" * 32, None, 0, model("hello"))])
    assert [(b.kind, b.text) for b in blocks.blocks][1:] == [
        ("reply", "hello"), ("notice", "something else happened"),
    ]  # fmt: skip


def test_a_reply_that_is_void_is_taken_away() -> None:
    blocks = BlockList()
    blocks.add_said("hi")
    blocks.add_piece("reply", "half")
    blocks.drop_pieces()
    assert [block.kind for block in blocks.blocks] == ["user"]


def test_elisions_in_a_row_are_one_line() -> None:
    items = (Elided(entry="a" * 32, placeholder="x"), Elided(entry="b" * 32, placeholder="x"))
    blocks = BlockList()
    blocks.add_entries(entry(Elide(rule=rule, items=items)) for rule in ("stale", "stale", "reads"))
    assert [block.text for block in blocks.blocks] == ["6 entries left out by rules stale, reads"]


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (Compaction(status="COMPRESSED", tokens_before=9_000, tokens_after=1_000, trigger="auto"),
         "compacted, automatically: 9,000 → 1,000 tokens"),
        (Compaction(status="COMPRESSION_FAILED_INFLATED_TOKEN_COUNT"),
         "not compacted: it would not have become smaller"),
        (Note(text="careful", level="warning"), "careful"),
        (Note(text="about to change a", extra='{"file_change":{}}'), None),
        (Pin(entries=("a" * 32,)), "pinned aaaaaaaa"),
        (Pin(entries=("a" * 32,), first=True), None),
        (Source(format="claude-code", name="x.jsonl", size=2_048), "imported from x.jsonl"),
        (user("hidden").__class__(role="user", parts=(Text(text="x"),), context="aside"), None),
    ],
)  # fmt: skip
def test_what_a_person_is_told_of_an_entry(body: Message, shown: str | None) -> None:
    blocks = BlockList()
    blocks.add_entries([entry(body)])
    texts = [block.text for block in blocks.blocks]
    assert texts == [] if shown is None else texts[0].startswith(shown)


def test_a_reply_that_was_cut_off_says_so() -> None:
    blocks = BlockList()
    blocks.add_entries([entry(msgspec.structs.replace(model("half"), finish="length"))])
    assert [(block.kind, block.level) for block in blocks.blocks] == [
        ("reply", "info"), ("notice", "warning"),
    ]  # fmt: skip


def test_a_note_with_the_remedy_takes_the_place_of_the_line_about_a_cut_off_reply() -> None:
    blocks = BlockList()
    cut = entry(msgspec.structs.replace(model("half"), finish="length"))
    note = entry(Note(text="cut off; raise the limit", level="warning"))
    blocks.add_entries([cut, note])
    assert [block.text for block in blocks.blocks] == ["half", "cut off; raise the limit"]


def test_retries_in_a_row_are_one_line_that_names_the_newest() -> None:
    blocks = BlockList()
    feed = EventFeed(blocks)
    for attempt in (1, 2):
        feed.add(Delta("text", "half an ans"))
        feed.add(Retrying("it broke off", 3.2, attempt, shown=True))
    feed.add(NoticeGiven("something else"))
    feed.add(Retrying("it broke off", 0.2, 3, shown=False))
    assert [block.text for block in blocks.blocks] == [
        "the request failed: it broke off; trying again in 3 s, attempt 3",
        "something else",
        "the request failed: it broke off; trying again now, attempt 4",
    ]
    assert feed.activity == "waiting for a reply, attempt 4"


def test_a_correction_is_told_without_what_the_model_is_told() -> None:
    blocks = BlockList()
    problem = "there is no tool 'x'; the tools are a, b, c"
    EventFeed(blocks).add(CorrectionRequested((problem,), 1, 3))
    assert [block.text for block in blocks.blocks] == [
        "there is no tool 'x'; asking the model again, 1 of 3"
    ]


def test_files_of_a_prompt_are_named_and_their_texts_are_for_unfolding() -> None:
    parts = (Text("look at @a.py"), Text("The file @a.py:\n1→x = 1"))
    blocks = BlockList()
    blocks.add_entries([entry(Message(role="user", parts=parts))])
    (block,) = blocks.blocks
    assert block.text == "look at @a.py\n[file a.py 23 bytes]"
    assert block.foldable
    assert "x = 1" not in str(pieces_of(block, unfolded=False))
    assert "x = 1" in str(pieces_of(block, unfolded=True))


def test_a_command_of_the_users_own_is_shown_as_typed_with_the_beginning_of_its_output() -> None:
    output = "\n".join(f"line {number}" for number in range(40))
    blocks = BlockList()
    blocks.add_entries([entry(user(f"{RAN}seq 40\n{output}\n[exit code 0]"))])
    (block,) = blocks.blocks
    assert block.text == "!seq 40"
    folded = pieces_of(block, unfolded=False)
    assert [piece.kind for piece in folded] == ["user", "text", "more"]
    assert folded[1].text.endswith("line 11")
    assert "exit code 0" in str(pieces_of(block, unfolded=True))
    assert block_text(block).startswith("!seq 40\nline 0\n")


def _long_path() -> list[Entry]:
    read = call("read_file", file_path="a")
    bodies = [user("a"), model("b", read), result(read, "c"), user("d"), model("e"), user("f")]
    return [entry(body) for body in bodies]


@pytest.mark.parametrize("cut", range(6))
def test_reloading_keeps_the_blocks_that_stay(cut: int) -> None:
    path = _long_path()
    blocks = BlockList()
    blocks.add_entries(path)
    before = {block.key: block for block in blocks.blocks}
    newer = blocks.first + len(blocks.blocks)
    blocks.add_said("typed meanwhile")
    fresh = [*path[: cut + 1], entry(user("another way"))]
    assert blocks.reload(fresh[-3:] if cut > 2 else fresh, newer)
    again = BlockList()
    again.add_entries(fresh)
    again.end_pieces("interrupted")
    assert in_log(blocks)[:-1] == in_log(again)
    assert blocks.blocks[-1].text == "typed meanwhile"
    assert all(b is before.get(b.key, b) for b in blocks.blocks if b.state != "interrupted")


def test_reloading_another_path_shows_that_alone() -> None:
    blocks = BlockList()
    blocks.add_entries(_long_path())
    other = [entry(user("x")), entry(model("y"))]
    assert not blocks.reload(other, blocks.first + len(blocks.blocks))
    assert [block.text for block in blocks.blocks] == ["x", "y"]
