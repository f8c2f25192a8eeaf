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
    # late, because `recollect --version` passes through this module and must stay quick;
    # `from recollect import api` would call this function again
    import recollect.api as api

    if name == "__all__" or name in api.__all__:
        return getattr(api, name)
    raise AttributeError(f"module 'recollect' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]  # type: ignore[misc]
