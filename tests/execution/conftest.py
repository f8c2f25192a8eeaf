from __future__ import annotations

import secrets

import pytest

from recollect.execution.sandbox import Isolation
from tests.execution.workbench import isolation_of


@pytest.fixture(params=["bubblewrap", "landlock", "none"])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return isolation_of(request.param)


@pytest.fixture
def nap() -> str:
    """A time to sleep that no other test, here or elsewhere, has on its command line."""
    return str(10**9 + secrets.randbelow(10**9))
