"""Files of any size: the same records as parsing the whole text, within limits that are named."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from recollect.transcripts.format_table import RECORD_KEYS
from recollect.transcripts.json_values import Json
from recollect.transcripts.record_stream import open_records
from recollect.transcripts.source_file import SourceFile
from recollect.transcripts.tolerant_json import parse_records
from tests.transcripts.file_builders import gemini_file, user_record

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(["uuid", "type", "id", "a", "é"]), VALUES, max_size=5)
LINES = (
    OBJECTS.map(json.dumps)
    | OBJECTS.map(lambda o: json.dumps(o, ensure_ascii=False))
    | st.sampled_from(
        [
            "",
            " ",
            "{",
            "}",
            "[1]",
            "7",
            '{"a":1}{"b":2}',
            '{"a":1} x',
            '{"a":1,"a":2}',
            "NaN",
            "\0",
            "{}\r",
            '{"x":1e999}',
        ]
    )
)


def streamed(data: bytes, limit: int = 10_000_000) -> object:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        records = open_records(SourceFile(path), RECORD_KEYS, whole=0, limit=limit)
        return records.load_all(), records.problems()


@given(st.lists(LINES, min_size=1, max_size=12))
def test_reading_line_by_line_finds_what_parsing_the_text_finds(lines: list[str]) -> None:
    data = "\n".join(['{"uuid": "u", "type": "user"}', *lines]).encode("utf-8", "surrogatepass")
    assert repr(streamed(data)) == repr(parse_records(data, RECORD_KEYS))


@given(st.lists(OBJECTS, max_size=8), st.dictionaries(st.text(max_size=5), VALUES, max_size=3))
def test_reading_message_by_message_finds_what_parsing_the_object_finds(
    messages: list[Json], more: Json
) -> None:
    value = {"sessionId": "s", "messages": messages, **{f"x{key}": more[key] for key in more}}
    data = json.dumps(value, indent=1).encode()
    found, whole = streamed(data), parse_records(data, RECORD_KEYS)
    assert isinstance(found, tuple)
    assert repr(sorted(found[0][0][1].items(), key=str)) == repr(
        sorted(whole[0][0][1].items(), key=str)
    )
    assert len(found[1]) == len(whole[1])


def test_a_line_beyond_the_limit_is_named_and_the_others_are_read() -> None:
    records = [json.dumps({"uuid": str(n), "type": "user"}) for n in range(3)]
    records[1] = json.dumps({"uuid": "1", "text": "x" * 5_000})
    found = streamed("\n".join(records).encode(), limit=1_000)
    assert isinstance(found, tuple)
    assert [record["uuid"] for _, record in found[0]] == ["0", "2"]
    ((line, reason),) = found[1]
    assert (line, reason) == (2, "a line of 5.0 kB; the limit is 1.0 kB, so it was left out")


def test_a_message_beyond_the_limit_ends_the_reading_and_is_named() -> None:
    value = gemini_file(user_record("a", "one"), user_record("b", "x" * 3_000_000))
    found = streamed(json.dumps(value).encode(), limit=1_000)
    assert isinstance(found, tuple)
    assert [message["id"] for message in found[0][0][1]["messages"]] == ["a"]
    assert "message 2 is longer than 1.0 kB" in found[1][0].reason


def test_a_key_that_is_there_twice_is_named() -> None:
    for data in (b'{"uuid": "u", "type": "a", "type": "b"}', b'{"messages": [], "a": 1, "a": 2}'):
        for found in (parse_records(data, RECORD_KEYS), streamed(data)):
            assert isinstance(found, tuple)
            assert "is there more than once; the last one counts" in found[1][0].reason


def test_a_huge_line_takes_little_memory(tmp_path: Path) -> None:
    """A sparse file: 400 MB that need no space."""
    file = tmp_path / "huge.jsonl"
    with file.open("wb") as stream:
        stream.write(b'{"uuid": "u", "parentUuid": null, "message": {"content": "a"}}\n{"x": "')
        stream.truncate(400_000_000)
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from recollect.transcripts.format_table import read_bundle\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "problems = read_bundle(Path(sys.argv[1])).main.transcript.problems\n"
        "print(problems[0].reason)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True
    )
    reason, grown = done.stdout.splitlines()
    assert reason == "a line of 400.0 MB; the limit is 64.0 MB, so it was left out"
    assert int(grown) < 200_000  # kB: the limit of a line, and what reading it needs
