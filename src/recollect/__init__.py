"""The history and context engine that LLM agents stand on.

A session is an append-only log of immutable entries; everything anyone sees of it is a fold over
that log. `recollect.api` lists the public names.
"""

from __future__ import annotations

__version__ = "0.1.0"
TYPE_CHECKING = False  # type checkers know the name; importing `typing` would double the start-up

if TYPE_CHECKING:
    from recollect.api import *  # noqa: F403 - its __all__ is the list


def __getattr__(name: str) -> object:
    # `recollect --version` passes through this module and must stay quick
    from recollect import api

    if name not in api.__all__:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    return getattr(api, name)


def __dir__() -> list[str]:
    from recollect import api

    return [*api.__all__, "__version__"]
