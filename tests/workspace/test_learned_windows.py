"""Windows that were learnt from errors, and files that are anything but."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.workspace.learned_windows import (
    MAX_FILE,
    MAX_MODELS,
    MIN_WINDOW,
    WINDOWS_FILE,
    learned_window,
    remember_window,
)


def test_a_window_is_remembered_for_its_model_and_the_newest_counts(tmp_path: Path) -> None:
    assert learned_window("mine", tmp_path) is None
    remember_window("mine", 4_096, tmp_path)
    remember_window("other", 9_000, tmp_path)
    remember_window("mine", 8_192, tmp_path)
    assert (learned_window("mine", tmp_path), learned_window("other", tmp_path)) == (8_192, 9_000)
    assert (tmp_path / WINDOWS_FILE).stat().st_mode & 0o777 == 0o600


def test_a_number_that_is_no_context_window_is_not_stored(tmp_path: Path) -> None:
    remember_window("mine", MIN_WINDOW - 1, tmp_path)
    assert not (tmp_path / WINDOWS_FILE).exists()
    (tmp_path / WINDOWS_FILE).write_text(json.dumps({"mine": 1, "other": -5, "third": 9_000}))
    assert [learned_window(name, tmp_path) for name in ("mine", "other", "third")] == [
        None,
        None,
        9_000,
    ]


DAMAGED = [b"", b"{", b"[]", b'{"mine": "4096"}', b'{"mine": 1e999}', b"\xff\xfe", b"[" * 100_000]


@pytest.mark.parametrize("data", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_means_nothing_and_is_written_anew(tmp_path: Path, data: bytes) -> None:
    (tmp_path / WINDOWS_FILE).write_bytes(data)
    assert learned_window("mine", tmp_path) is None
    remember_window("mine", 4_096, tmp_path)
    assert learned_window("mine", tmp_path) == 4_096


@given(st.binary(max_size=200))
def test_whatever_stands_in_the_file_is_survived(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / WINDOWS_FILE).write_bytes(data)
        found = learned_window("mine", Path(folder))
        assert found is None or found >= MIN_WINDOW


def test_a_file_that_is_too_large_a_pipe_or_a_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / WINDOWS_FILE).write_bytes(b'{"mine": 4096}' + b" " * MAX_FILE)
    assert learned_window("mine", tmp_path) is None
    (tmp_path / WINDOWS_FILE).unlink()
    os.mkfifo(tmp_path / WINDOWS_FILE)
    assert learned_window("mine", tmp_path) is None
    (tmp_path / WINDOWS_FILE).unlink()
    (tmp_path / WINDOWS_FILE).mkdir()
    remember_window("mine", 4_096, tmp_path)  # cannot be written, and nobody minds
    assert learned_window("mine", tmp_path) is None


def test_the_file_never_grows_beyond_its_limit_and_the_newest_stay(tmp_path: Path) -> None:
    many = {f"m{number}": 1_000 for number in range(MAX_MODELS + 50)}
    (tmp_path / WINDOWS_FILE).write_text(json.dumps(many))
    remember_window("newest", 4_096, tmp_path)
    kept = json.loads((tmp_path / WINDOWS_FILE).read_text())
    assert len(kept) == MAX_MODELS
    assert learned_window("newest", tmp_path) == 4_096
    assert learned_window("m0", tmp_path) is None


def test_long_names_cannot_make_the_file_unreadable(tmp_path: Path) -> None:
    for number in range(5):
        remember_window(f"{number}" + "x" * 60_000, 4_096, tmp_path)
    assert learned_window("4" + "x" * 60_000, tmp_path) in (None, 4_096)
    remember_window("mine", 4_096, tmp_path)
    assert learned_window("mine", tmp_path) == 4_096
