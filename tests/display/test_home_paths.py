"""Paths in a text are shown as a user would type them in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.display.home_paths import abbreviate_paths


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/work/app/src/a.py, all lines", "src/a.py, all lines"),
        ("list_directory: /work/app: 3 files", "list_directory: .: 3 files"),
        ("--- /work/app/a.py +++ /work/app/a.py", "--- a.py +++ a.py"),
        ("/work/app/ and /work/app", "/work/app/ and ."),
        ("/work/application/a.py", "/work/application/a.py"),
        ("/mnt/work/app/a.py", "/mnt/work/app/a.py"),
        ("/home/ada/notes.md of /home/ada", "~/notes.md of ~"),
        ("/home/adam/notes.md", "/home/adam/notes.md"),
        ("nothing of the kind", "nothing of the kind"),
    ],
)
def test_only_whole_paths_are_abbreviated(
    text: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert Path.home() == Path("/home/ada")
    assert abbreviate_paths(text, "/work/app") == shown
