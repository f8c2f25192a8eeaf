"""Every public name can be looked at with Python's own tools."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Iterator
from typing import get_type_hints

import pytest

import recollect
from recollect import api


def _functions(owner: object) -> Iterator[tuple[str, object]]:
    for name, value in vars(owner).items():
        found = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if inspect.isfunction(found):
            yield name, found


@pytest.mark.parametrize("name", api.__all__)
def test_help_signature_and_type_hints_of_a_public_name_can_be_read(name: str) -> None:
    value = getattr(recollect, name)
    assert name in pydoc.plain(pydoc.render_doc(value))
    get_type_hints(value)
    if not (inspect.isclass(value) and issubclass(value, Exception)):  # as Python's own have none
        inspect.signature(value)
    for _, function in _functions(value) if inspect.isclass(value) else ():
        get_type_hints(function)
        inspect.signature(function)  # type: ignore[arg-type]


def test_help_of_the_package_lists_the_public_names() -> None:
    shown = pydoc.plain(pydoc.render_doc(recollect))
    assert [name for name in api.__all__ if name not in shown] == []
