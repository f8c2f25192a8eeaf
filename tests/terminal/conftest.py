"""Fixtures that the tests of the terminal program share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runner import Cli
from tests.terminal import pilot

terminal = pilot.terminal


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)
