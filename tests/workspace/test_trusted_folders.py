from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from recollect.errors import BadSettings
from recollect.workspace.trusted_folders import (
    TRUST_FILE,
    distrust_folder,
    is_trusted,
    load_trust,
    trust_folder,
)


def test_trust_covers_what_is_below_and_nothing_else(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    assert not is_trusted(project, home)
    trust_folder(project, home)
    assert is_trusted(project, home)
    assert is_trusted(project / "sub" / "not there yet", home)
    assert not is_trusted(tmp_path, home)
    assert not is_trusted(tmp_path / "project-2", home)


def test_the_nearest_decision_decides(tmp_path: Path) -> None:
    home, sub = tmp_path / "home", tmp_path / "project" / "sub"
    trust_folder(tmp_path, home)
    distrust_folder(sub, home)
    trust_folder(sub / "own", home)
    known = load_trust(home)
    asked = (tmp_path, sub, sub / "x", sub / "own", sub / "own" / "y")
    assert [known.covers(folder) for folder in asked] == [True, False, False, True, True]
    distrust_folder(tmp_path, home)
    assert not is_trusted(tmp_path / "project", home)


def test_a_link_is_trusted_as_what_it_leads_to(tmp_path: Path) -> None:
    home, project, other = tmp_path / "home", tmp_path / "project", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    trust_folder(project, home)
    (tmp_path / "link").symlink_to(project)
    (project / "out").symlink_to(other)
    (project / "loop").symlink_to("loop")
    assert is_trusted(tmp_path / "link", home)
    assert not is_trusted(project / "out", home)
    assert is_trusted(project / "out" / ".." / "project", home)
    assert not is_trusted(project / "loop", home)
    assert not is_trusted(Path("a\0b"), home)


def test_the_file_is_private_to_the_user(tmp_path: Path) -> None:
    trust_folder(tmp_path, tmp_path / "home")
    file = tmp_path / "home" / TRUST_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == [TRUST_FILE]
    file.chmod(0o666)
    assert not is_trusted(tmp_path, tmp_path / "home")
    with pytest.raises(BadSettings, match="other users can write"):
        trust_folder(tmp_path, tmp_path / "home")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"folders": {"/": "yes"}}',
        b'{"folders": {"/": 1}}',
        b'{"folders": {"/": true}, "more": 1}',
        b'{"folders": ' + b"[" * 100_000,
        b"\xff",
        b" " * 1_000_001,
    ],
)
def test_a_damaged_file_trusts_nothing_and_is_not_overwritten(tmp_path: Path, data: bytes) -> None:
    (tmp_path / TRUST_FILE).write_bytes(data)
    (tmp_path / TRUST_FILE).chmod(0o600)
    assert not is_trusted(Path("/"), tmp_path)
    with pytest.raises(BadSettings):
        trust_folder(Path("/"), tmp_path)
    assert (tmp_path / TRUST_FILE).read_bytes() == data


def test_a_pipe_in_its_place_does_not_make_anyone_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / TRUST_FILE)
    assert not is_trusted(Path("/"), tmp_path)
