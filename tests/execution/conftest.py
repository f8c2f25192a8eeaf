from __future__ import annotations

import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from recollect.execution.bubblewrap import PRIVATE_FOLDERS
from recollect.execution.sandbox import Isolation
from tests.execution.workbench import isolation_of


@pytest.fixture(params=["bubblewrap", "landlock", "none"])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return isolation_of(request.param)


@pytest.fixture(autouse=True)
def own_data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What commands change in protected files is kept in the data directory."""
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path_factory.mktemp("data")))


@pytest.fixture
def nap() -> str:
    """A time to sleep that no other test, here or elsewhere, has on its command line."""
    return str(10**9 + secrets.randbelow(10**9))


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder outside the workspace that is not among the temporary ones."""
    for base in (Path(sys.prefix).resolve(), Path.home().resolve()):
        if not any(base.is_relative_to(hidden) for hidden in PRIVATE_FOLDERS):
            with suppress(OSError):
                made = tempfile.mkdtemp(dir=base, prefix="recollect-test-")
                break
    else:
        pytest.skip("no folder outside the temporary ones can be written")
    yield Path(made)
    shutil.rmtree(made)
