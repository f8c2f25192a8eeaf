"""The reference in docs/api.md says what the docstrings say, and leaves nothing public out."""

from __future__ import annotations

import importlib.util
import pydoc
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import recollect
from recollect import api

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = ROOT / "scripts" / "api_reference.py"
    spec = importlib.util.spec_from_file_location("api_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_and_every_public_method_has_a_docstring(script: ModuleType) -> None:
    assert script.missing_docstrings() == []


def test_every_public_name_is_listed_once_in_the_help_with_one_line(script: ModuleType) -> None:
    names = [name for group in script.groups().values() for name in group]
    assert sorted(names) == sorted(api.__all__)
    shown = pydoc.plain(pydoc.render_doc(recollect))
    description = shown[: shown.index("PACKAGE CONTENTS")]
    assert [name for name in names if not re.search(rf"\b{name} +[A-Z]", description)] == []


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="Python writes some types differently")
def test_the_reference_is_up_to_date(script: ModuleType) -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert page == script.build_page(), "run: python scripts/api_reference.py"


def test_the_reference_is_the_same_on_every_machine(script: ModuleType) -> None:
    page = script.build_page()
    assert page == script.build_page()
    assert not re.search(r" at 0x|<function|<class|PosixPath|/home/|/tmp/|\.venv", page)
