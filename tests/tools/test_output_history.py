"""The model looks into what commands printed: any part of it, as text that hides nothing."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Entry, Note, handle_of, json_text
from recollect.store.output_notes import (
    OutputPart,
    join_output,
    output_note,
    output_part,
    without_output,
)
from recollect.testing import call, model, result, user
from recollect.tools.history_lookup import MAX_RECALL, MAX_RECALL_LINES
from recollect.view.elision_rules import ElisionRules
from tests.tools.calls import text
from tests.tools.recorded import Recorded, body, play


async def record(session: Recorded, *parts: bytes, missing: int = 0) -> Entry:
    """A command with this output in the log; the note that leads to all of it."""
    run = call("run_shell_command", id="c1", command="make")
    before, last = list[str](), 0
    await session.say(user("run it"), model("", run))
    for data in parts:
        part = OutputPart("c1", run.name, "", tuple(before), missing if before else last)
        (entry,) = await session.say(output_note(data, part))
        before.append(entry.id)
    await session.say(result(run, "head\n[... left out here ...]\ntail"))
    return entry


def test_parts_are_recalled_as_one_text_from_any_offset(tmp_path: Path) -> None:
    lines = [b"".join(b"%d line %d\n" % (part, n) for n in range(9_000)) for part in range(3)]

    async def story(session: Recorded) -> None:
        entry = await record(session, *lines)
        await session.forget()
        got, offset = "", 0
        while offset < len(b"".join(lines)):
            made = await session.recall(handle_of(entry.id), offset=offset, limit=10**9)
            assert len(body(made)) <= MAX_RECALL
            assert body(made).count("\n") <= MAX_RECALL_LINES
            got, offset = got + body(made), offset + len(body(made))
        assert got.encode() == b"".join(lines)
        around = text(await session.recall(handle_of(entry.id), around='"2 line 8765"'))
        assert "\n2 line 8765\n" in around

    play(tmp_path, story)


def test_bytes_that_were_not_kept_are_counted_where_they_are_missing(tmp_path: Path) -> None:
    async def story(session: Recorded) -> None:
        entry = await record(session, b"first\n", b"last\n", missing=1_234_567)
        made = body(await session.recall(handle_of(entry.id)))
        assert made == "first\n\n[... 1,234,567 bytes that were not kept ...]\nlast\n"

    play(tmp_path, story)


def test_every_state_of_a_line_comes_back_and_no_terminal_code(tmp_path: Path) -> None:
    came = b"1 %\r2 %\r\x1b[31mERROR 7\x1b[0m\r3 %\ncaf\xe9 \x00\xff\n" + bytes(range(256)) * 400

    async def story(session: Recorded) -> None:
        entry = await record(session, came)
        made = text(await session.recall(handle_of(entry.id), limit=20_000))
        assert "1 %\n2 %\nERROR 7\n3 %\ncaf\\xe9 \\x00\\xff\n" in made
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", made)
        assert len(made) < 21_000
        found = text(await session.search("ERROR"))
        assert "> ERROR 7" in found
        assert "what run_shell_command gave, as it came" in found
        assert "for run_shell_command: make" in found

    play(tmp_path, story)


def test_short_lines_are_never_so_many_that_a_rule_cuts_out_the_middle(tmp_path: Path) -> None:
    most = ElisionRules().max_lines

    async def story(session: Recorded) -> None:
        entries = await session.say(*(user(f"{n}\nword\n" * 999) for n in range(20)))
        handles = [handle_of(entry.id) for entry in entries[:10]]
        await session.forget()
        assert text(await session.recall(handles[0], limit=20_000)).count("\n") < most
        assert text(await session.recall(handles, limit=20_000)).count("\n") < most
        centred = text(await session.recall(handles, limit=20_000, around="word"))
        assert centred.count("\n") < most
        assert centred.count("word") >= 10
        found = text(await session.search("word", limit=20))
        assert found.count("\n") < most
        assert found.count("> word") >= 20

    play(tmp_path, story)


def test_a_view_has_the_record_of_an_output_and_not_its_text(tmp_path: Path) -> None:
    async def story(session: Recorded) -> None:
        entry = await record(session, b"x" * 100_000)
        view = (await session.context()).view
        assert view is not None
        held = view.log.entries[view.log.at[entry.id]].body
        assert isinstance(held, Note)
        assert held.text == ""
        assert output_part(held) == output_part(entry.body)

    play(tmp_path, story)


@given(st.binary(max_size=300))
def test_the_text_of_a_note_gives_the_very_bytes(data: bytes) -> None:
    note = output_note(data, OutputPart("c", "t"))
    assert join_output([Entry("0" * 32, None, 0, note)]).encode("utf-8", "surrogateescape") == data
    kept = msgspec.structs.replace(note, text="")
    assert without_output([Entry("0" * 32, None, 0, note)]) == (Entry("0" * 32, None, 0, kept),)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
        max_leaves=9,
    )
)
def test_a_note_with_any_record_is_an_output_or_none(value: object) -> None:
    for extra in ({"output": value}, {"output": {"call": value, "tool": "t", "before": value}}):
        note = Note(text="kept", extra=json_text(extra))
        if output_part(note) is None:
            assert without_output([Entry("0" * 32, None, 0, note)])[0].body is note
