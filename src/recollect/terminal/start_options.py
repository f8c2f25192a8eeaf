"""How a terminal program begins: in which session and store, with what it was given."""

from __future__ import annotations

from pathlib import Path

import msgspec

from recollect.runtime.prompt_run import RunOptions
from recollect.runtime.runtime import Overrides


class StartOptions(msgspec.Struct, frozen=True):
    """How a terminal program begins."""

    store: Path | str | None = None
    session: str | None = None  # to continue; none: a new one
    fork: bool = False
    initial_screen: str = ""  # the command whose screen is open at first, such as `resume`
    overrides: Overrides = Overrides()
    run: RunOptions = RunOptions()
    store_persists: bool = True  # False: the store is deleted when the program has ended
    suggestions: tuple[str, ...] = ()  # prompts that are offered one after the other
    welcome: str = ""  # said at the beginning
