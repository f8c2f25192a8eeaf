"""A folder that the examples of a property share: a new store for each would cost most of it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")
