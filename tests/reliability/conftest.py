"""No process outlives the test that started it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.runner import Cli
from tests.reliability.children import end_all


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    yield
    end_all()


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)
