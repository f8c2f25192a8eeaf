"""No process outlives the test that started it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reliability.children import end_all


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    yield
    end_all()
