"""Windows that were learnt from errors, and files that are anything but."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.workspace.limits import FILE, MAX_FILE, MOST_MODELS, SMALLEST, learn, learnt


def test_a_window_is_remembered_for_its_model_and_the_newest_counts(tmp_path: Path) -> None:
    assert learnt("mine", tmp_path) is None
    learn("mine", 4_096, tmp_path)
    learn("other", 9_000, tmp_path)
    learn("mine", 8_192, tmp_path)
    assert (learnt("mine", tmp_path), learnt("other", tmp_path)) == (8_192, 9_000)
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_what_is_no_window_is_not_remembered(tmp_path: Path) -> None:
    learn("mine", SMALLEST - 1, tmp_path)
    assert not (tmp_path / FILE).exists()
    (tmp_path / FILE).write_text(json.dumps({"mine": 1, "other": -5, "third": 9_000}))
    assert [learnt(name, tmp_path) for name in ("mine", "other", "third")] == [None, None, 9_000]


DAMAGED = [b"", b"{", b"[]", b'{"mine": "4096"}', b'{"mine": 1e999}', b"\xff\xfe", b"[" * 100_000]


@pytest.mark.parametrize("data", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_means_nothing_and_is_written_anew(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE).write_bytes(data)
    assert learnt("mine", tmp_path) is None
    learn("mine", 4_096, tmp_path)
    assert learnt("mine", tmp_path) == 4_096


@given(st.binary(max_size=200))
def test_whatever_stands_in_the_file_is_survived(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE).write_bytes(data)
        found = learnt("mine", Path(folder))
        assert found is None or found >= SMALLEST


def test_a_file_that_is_too_large_a_pipe_or_a_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b'{"mine": 4096}' + b" " * MAX_FILE)
    assert learnt("mine", tmp_path) is None
    (tmp_path / FILE).unlink()
    os.mkfifo(tmp_path / FILE)
    assert learnt("mine", tmp_path) is None
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    learn("mine", 4_096, tmp_path)  # cannot be written, and nobody minds
    assert learnt("mine", tmp_path) is None


def test_the_file_never_grows_beyond_its_limit_and_the_newest_stay(tmp_path: Path) -> None:
    many = {f"m{number}": 1_000 for number in range(MOST_MODELS + 50)}
    (tmp_path / FILE).write_text(json.dumps(many))
    learn("newest", 4_096, tmp_path)
    kept = json.loads((tmp_path / FILE).read_text())
    assert len(kept) == MOST_MODELS
    assert learnt("newest", tmp_path) == 4_096
    assert learnt("m0", tmp_path) is None


def test_long_names_cannot_make_the_file_unreadable(tmp_path: Path) -> None:
    for number in range(5):
        learn(f"{number}" + "x" * 60_000, 4_096, tmp_path)
    assert learnt("4" + "x" * 60_000, tmp_path) in (None, 4_096)
    learn("mine", 4_096, tmp_path)
    assert learnt("mine", tmp_path) == 4_096
