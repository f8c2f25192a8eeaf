"""A hub over a real runtime, a real SQLite store and a scripted provider on a free port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from recollect.runtime.runtime import Overrides, open_runtime
from recollect.server.session_hub import HubLimits, SessionHub
from recollect.testing import ProviderLine, ProviderServer

MODEL = "mine"


@contextmanager
def scripted_provider(
    home: Path, patch: pytest.MonkeyPatch, script: Sequence[ProviderLine], **options: Any
) -> Iterator[ProviderServer]:
    """A provider that answers from a script, named by the settings in `home`."""
    patch.setenv("RECOLLECT_HOME", str(home))
    patch.setenv("MY_KEY", "sk-fake-0123456789abcdef")
    home.mkdir(exist_ok=True)
    with ProviderServer("openai", script, **options) as server:
        (home / "settings.toml").write_text(
            f'model = "{MODEL}"\n[transport]\nretries = 1\nlongest_wait = 0.01\n'
            f'[models.{MODEL}]\nurl = "{server.url}"\nwire = "openai"\nkey = "MY_KEY"\n'
            "window = 30000\n"
        )
        yield server


@asynccontextmanager
async def opened_hub(
    folder: Path, limits: HubLimits | None = None, store: Path | str | None = None, mode: str = ""
) -> AsyncIterator[SessionHub]:
    """A hub in a project folder; closed at the end."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    async with open_runtime(project, store, overrides=Overrides(mode=mode)) as runtime:
        hub = SessionHub(runtime, limits or HubLimits())
        try:
            yield hub
        finally:
            await hub.close()
