"""The history and context engine that LLM agents stand on.

A session is an append-only log of immutable entries; everything anyone sees of it is a fold over
that log. `recollect.api` lists the public names.
"""

from __future__ import annotations

__version__ = "0.1.0"
TYPE_CHECKING = False  # type checkers know the name; importing `typing` would double the start-up
_MODULES = ("engine", "entries", "errors", "events", "testing")  # more public names, by subject

if TYPE_CHECKING:
    from recollect import engine, entries, errors, events, testing  # noqa: F401 - public
    from recollect.api import *  # noqa: F403 - its __all__ is the list


def __getattr__(name: str) -> object:
    # late, because `recollect --version` passes through this module and must stay quick;
    # `from recollect import api` would call this function again
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"recollect.{name}")
    api = importlib.import_module("recollect.api")
    if name == "__all__" or name in api.__all__:
        return getattr(api, name)
    raise AttributeError(f"module 'recollect' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), *_MODULES, "__version__"]  # type: ignore[misc]
