"""What commands that nobody allowed word for word may not see, and how a result says so.

Only bubblewrap can hide a file of the workspace: something is mounted over it that cannot be
opened. Its name stays; it cannot be written, renamed or removed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from recollect.workspace.workspace_secrets import (
    MOST_SECRETS,
    SecretFinder,
    ShownSecrets,
    WorkspaceSecrets,
    describe_secrets,
)

_FEW = 3  # names in a note


def make_covers(folder: Path) -> tuple[str, str]:
    """A file and a folder that nobody can open who has no privileges; made once."""
    file, closed = folder / "closed-file", folder / "closed-folder"
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0))
    with suppress(FileExistsError):
        closed.mkdir(mode=0)
    return str(file), str(closed)


def remove_covers(folder: Path) -> None:
    """Let the folder be removed: what cannot be listed cannot be."""
    with suppress(OSError):
        (folder / "closed-folder").chmod(0o700)


def find_hidden(roots: Sequence[str], shown: ShownSecrets) -> WorkspaceSecrets:
    return SecretFinder(roots, shown).find_all()


def explain_incomplete(found: WorkspaceSecrets) -> str:
    """Why a command cannot run: its secrets cannot all be hidden."""
    many = f"more than {MOST_SECRETS} secrets" if found.paths else "too many files to look through"
    return (
        f"the workspace has {many}, so they cannot be hidden from a command that the user did not "
        'approve; the user can allow commands to read them with show_secrets = ["."] under '
        "[permissions], or work in a smaller folder"
    )


def explain_exposed(found: WorkspaceSecrets, roots: Sequence[str], kind: str) -> str:
    """Why commands could read secrets of the workspace; empty if they cannot."""
    if not found.complete:
        return explain_incomplete(found)
    if kind != "landlock" or not found.paths:
        return ""
    return (
        f"Landlock cannot hide {describe_secrets(found.paths, roots, _FEW)} from commands, so here "
        "mode free decides like edit, and words that the shell decides ask; install bubblewrap, or "
        "let commands read it with show_secrets under [permissions]"
    )


class HiddenNotes:
    """Says what is hidden: with the first command for which something is, and whenever one fails
    and names it."""

    def __init__(self) -> None:
        self._said = False

    def note(
        self, hidden: WorkspaceSecrets, roots: Sequence[str], output: str, *, failed: bool
    ) -> str:
        paths = hidden.paths
        mentioned = [path for path in paths if Path(path).name in output] if failed else []
        if not paths or (self._said and not mentioned):
            return ""
        self._said = True
        shown = describe_secrets(mentioned or paths, roots, _FEW)
        return (
            f"hidden from this command: {shown}; secrets of the workspace cannot be opened "
            "(Permission denied). Only the user can change that: by approving a command line, or "
            "with permissions.show_secrets (`recollect config --add permissions.show_secrets NAME`)"
        )
