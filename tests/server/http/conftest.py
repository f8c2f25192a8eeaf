"""A folder for a server: its project, and the user's data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.http.face import KEY, Folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path / "home"))
    for name, value in KEY.items():
        monkeypatch.setenv(name, value)
    made = Folder(tmp_path)
    made.project.mkdir()
    return made
