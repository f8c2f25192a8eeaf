"""Damaged and hostile files: what can be read is read, the rest reported, in linear time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import CannotImport
from recollect.store.open_store import open_store
from recollect.transcripts.session_export import export_session
from recollect.transcripts.session_import import import_file
from recollect.transcripts.transcript import Transcript
from tests.transcripts.call_counter import count_calls
from tests.transcripts.file_builders import (
    SAMPLES,
    gemini_file,
    line,
    messages_of,
    model_record,
    result_of,
    server_call,
    server_file,
    server_record,
    tool_call,
    user_record,
)
from tests.transcripts.whole_files import read_transcript

HEAD = {"sessionId": "G", "projectHash": "h"}
USER = json.dumps(line("u1", None, "user", "hi")).encode()
REPLY = json.dumps(line("a1", "u1", "assistant", [{"type": "text", "text": "yo"}], id="m")).encode()


def read(data: bytes) -> Transcript:
    """What the file tells; whatever it is, that is a tree with parents first."""
    transcript = read_transcript(data, "file")
    known: set[str | None] = {None}
    for entry in transcript.entries:
        assert entry.parent in known
        known.add(entry.id)
    assert transcript.leaf in known
    return transcript


def test_an_empty_file_is_refused() -> None:
    for data in (b"", b"\n\n", b"\0" * 5_000, b"\xef\xbb\xbf"):
        with pytest.raises(CannotImport, match="empty"):
            read(data)


def test_a_file_of_another_kind_is_refused_and_the_known_ones_are_named() -> None:
    strangers: list[Any] = [
        "hello",
        {"a": 1},
        [1, 2],
        {"messages": [{"role": "user"}], "messageCount": 1},
        {"type": "session_meta", "payload": {}},
        {"uuid": "u", "parentUuid": None, "message": {"role": "user", "parts": []}},
    ]
    for stranger in strangers:
        with pytest.raises(CannotImport, match=r"history-server.*Gemini.*Claude Code"):
            read(json.dumps(stranger).encode())


def test_a_half_written_last_line_is_reported_and_the_rest_is_read() -> None:
    transcript = read(USER + b"\n" + REPLY[:-20])
    assert len(transcript.entries) == 1
    assert transcript.problems[0].line == 2


def test_two_records_glued_on_one_line_are_both_read() -> None:
    transcript = read(USER + REPLY + b"\n")
    assert len(transcript.entries) == 2
    assert transcript.problems == ()


def test_a_whole_record_after_a_torn_one_on_the_same_line_is_read() -> None:
    transcript = read(USER + b"\n" + USER[:-30] + REPLY + b"\n")
    assert len(transcript.entries) == 2
    assert [problem.line for problem in transcript.problems] == [2]


def test_nul_bytes_around_records_are_skipped() -> None:
    transcript = read(b"\0\0" + USER + b"\n\0\0\0\n" + b"\0" * 4_096 + REPLY + b"\0")
    assert len(transcript.entries) == 2


def test_a_nul_in_a_text_survives() -> None:
    for written in (b"a\0b", b"a\\u0000b"):
        transcript = read(USER.replace(b'"hi"', b'"' + written + b'"'))
        assert messages_of(transcript.entries)[0].parts[0].text == "a\0b"  # type: ignore[union-attr]


def test_a_bom_is_skipped() -> None:
    assert len(read(b"\xef\xbb\xbf" + USER).entries) == 1
    assert (
        len(read(b"\xef\xbb\xbf" + json.dumps(gemini_file(user_record("1", "a"))).encode()).entries)
        == 1
    )


def test_lone_surrogates_survive_written_either_way() -> None:
    for written in (b"\\ud800", b"\xed\xa0\x80"):
        transcript = read(USER.replace(b'"hi"', b'"' + written + b'"'))
        assert messages_of(transcript.entries)[0].parts[0].text == "\ud800"  # type: ignore[union-attr]
        assert transcript.problems == ()


def test_bytes_that_are_not_utf8_are_reported() -> None:
    transcript = read(REPLY + b"\n" + USER.replace(b'"hi"', b'"\xff\xfe"'))
    assert len(transcript.entries) == 2
    assert transcript.problems[0].line == 2
    assert "UTF-8" in transcript.problems[0].reason


def test_deep_nesting_costs_its_record_only() -> None:
    for depth in (150, 900, 100_000):
        deep = b'{"type":"user","uuid":"d","x":' + b"[" * depth + b"]" * depth + b"}"
        transcript = read(USER + b"\n" + deep + b"\n" + REPLY)
        assert len(transcript.entries) == 2
        assert "nested" in transcript.problems[0].reason
        message = b'{"id":"2","timestamp":"","type":"user","content":' + b"[" * depth
        file = json.dumps(
            gemini_file(user_record("1", "a"), user_record("DEEP", ""), user_record("3", "b"))
        ).encode()
        start = file.index(b'{"id": "DEEP"')
        end = file.index(b"}", start) + 1
        transcript = read(file[:start] + message + b"]" * depth + b"}" + file[end:])
        assert len(transcript.entries) == 2
        assert any("nested" in problem.reason for problem in transcript.problems)


@pytest.mark.parametrize("torn", [b'{"a":', b"[", b'{"type":"x","uuid":"y","a":'])
def test_objects_nested_without_end_cost_in_proportion_to_their_size(torn: bytes) -> None:
    def cost(count: int) -> int:
        data = USER + b"\n" + torn * count
        assert len(read(data).entries) == 1
        return count_calls(lambda: read(data))

    assert cost(200_000) < 4.5 * cost(50_000)


def test_numbers_beyond_json_are_read_as_null_and_reported() -> None:
    for number in (b"NaN", b"-Infinity", b"1e999", b"9" * 5_000):
        transcript = read(USER[:-1] + b',"n":' + number + b"}")
        assert len(transcript.entries) == 1
        assert "null" in transcript.problems[0].reason
        file = json.dumps(gemini_file(user_record("1", "a"), n=0)).encode()
        assert len(read(file.replace(b'"n": 0', b'"n": ' + number)).entries) == 1


@pytest.mark.parametrize("indent", [None, 2])
def test_an_object_that_was_cut_keeps_its_whole_messages(indent: int | None) -> None:
    file = json.dumps(
        gemini_file(*(user_record(str(n), "x" * 50) for n in range(20))), indent=indent
    )
    for end in range(len(file) * 3 // 4, len(file), 97):
        transcript = read(file[:end].encode())
        assert transcript.session == read(file.encode()).session
        assert 13 <= len(transcript.entries) < 20
        assert transcript.problems


def test_a_damaged_message_in_an_object_costs_that_message_only() -> None:
    file = json.dumps(server_file(*(server_record("user", f"text {n}") for n in range(9))))
    transcript = read(file.replace('"text 4",', '"text 4,').encode())
    assert len(transcript.entries) == 8
    assert transcript.session == read(file.encode()).session


def test_wrong_types_everywhere_still_give_a_tree() -> None:
    odd: list[Any] = [None, True, 7, -1.5, "", [], {}, [[]], {"a": None}, "2026-02-30"]
    for value in odd:
        for key in (
            "id",
            "timestamp",
            "type",
            "content",
            "thoughts",
            "tokens",
            "model",
            "toolCalls",
        ):
            read(json.dumps(gemini_file(model_record("1", "x") | {key: value})).encode())
            record = user_record("1", "x") | {key: value}
            read(
                "\n".join(
                    map(json.dumps, [HEAD, record, {"$set": value}, {"$rewindTo": value}])
                ).encode()
            )
        for key in ("id", "name", "args", "status", "timestamp", "result"):
            call = tool_call("c", "out") | {key: value}
            read(json.dumps(gemini_file(model_record("1", "x", toolCalls=[call, value]))).encode())
        for key in ("role", "content", "timestamp", "tool_calls", "metadata"):
            read(
                json.dumps(
                    server_file(
                        server_record("user", "x", server_call(), {key: value}) | {key: value}
                    )
                ).encode()
            )
        for key in (
            "uuid",
            "parentUuid",
            "type",
            "message",
            "sessionId",
            "timestamp",
            "isSidechain",
        ):
            wrong = line("u2", "u1", "user", "x") | {key: value}
            read(USER + b"\n" + json.dumps(wrong).encode())
        for key in ("type", "tool_use_id", "content", "is_error", "text", "id", "input", "source"):
            block = result_of("t1", "x") | {key: value}
            read(USER + b"\n" + json.dumps(line("u2", "u1", "user", [block, value])).encode())
        for key in ("sessionId", "startTime", "messages", "recollect"):
            with contextlib.suppress(CannotImport):
                read(json.dumps(gemini_file() | {key: value}).encode())


def test_many_bad_lines_are_counted_not_listed() -> None:
    transcript = read(USER + b"\n" + b"{bad\n" * 5_000)
    assert len(transcript.problems) == 1_001
    assert "4,000 more" in transcript.problems[-1].reason


def test_a_message_with_many_calls_costs_in_proportion_to_their_number() -> None:
    def cost(count: int) -> int:
        calls = [tool_call(f"c{n}", "out", resultDisplay="d") for n in range(count)]
        data = json.dumps(gemini_file(model_record("1", "x", toolCalls=calls))).encode()
        assert len(read(data).entries) == 2
        return count_calls(lambda: read(data))

    assert cost(800) < 4.5 * cost(200)


# --- mutations ---------------------------------------------------------------------------------


VALID = [sample for samples in SAMPLES.values() for sample in samples]
SWAPS = [
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b"-1",
    b"1e400",
    b"NaN",
    b'"\\ud800"',
    b'{"a":' * 120,
]


def mutated(chance: random.Random) -> bytes:
    data = bytearray(chance.choice(VALID))
    for _ in range(chance.choice((1, 1, 2, 8))):
        at, to = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        match chance.randrange(7):
            case 0 if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                del data[at : min(to, at + 60)]
            case 2:
                data[at:at] = data[at:to]
            case 3:
                del data[at:]
            case 4:
                data[at:at] = chance.choice(
                    (b"\0", b"\n", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf")
                )
            case 5:
                data = data.replace(b"\n", b"", chance.randrange(3))
            case _:
                _swap(data, chance)
        if not data:
            break
    return bytes(data)


def _swap(data: bytearray, chance: random.Random) -> None:
    """Another value for a field."""
    colons = [n for n, byte in enumerate(data) if byte == ord(":")]
    if colons:
        at = chance.choice(colons) + 1
        ends = [end for mark in b",}]\n" if (end := data.find(mark, at)) >= 0]
        data[at : min(ends, default=at)] = chance.choice(SWAPS)


def check(directory: Path, seed: int, count: int) -> int:
    """Import mutated files, each into the same store; how many could be imported."""
    chance = random.Random(seed)

    async def work() -> int:
        taken = 0
        async with open_store(directory / f"{seed}.db") as store:
            for _ in range(count):
                file = directory / f"{seed}.json"
                file.write_bytes(mutated(chance))
                with contextlib.suppress(CannotImport):
                    imported = await import_file(store, file)
                    taken += 1
                    if chance.random() < 0.05:
                        for to in ("gemini", "history-server"):
                            await export_session(store, imported.session, to)
        return taken

    return asyncio.run(work())


@pytest.mark.parametrize("seed", range(2))
def test_a_mutated_file_is_imported_or_refused(tmp_path: Path, seed: int) -> None:
    assert check(tmp_path, seed, 120) > 48


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(1_000, 1_400))
def test_very_many_mutated_files_are_imported_or_refused(tmp_path: Path, seed: int) -> None:
    assert check(tmp_path, seed, 250) > 100
