"""Keeps the secrets of the workspace from tools: the same files that commands may not see.

A call that the user approved may read and change them, and so may every call those that the user
shows (`permissions.show_secrets`).
"""

from __future__ import annotations

import os
from pathlib import Path

from recollect.tools.resolve_path import quote
from recollect.tools.tool import ToolContext, ToolFailed
from recollect.workspace.workspace_secrets import SecretFinder

_FEW = 3  # names in a note


def names_secret_file(context: ToolContext, named: str) -> bool:
    """Whether a path, as a call names it, is a secret of the workspace."""
    if "\0" in named:
        return False
    lexical = os.path.normpath(Path(context.root, context.absolute(named)))
    return _finder(context).is_secret(lexical, os.path.realpath(lexical))


def is_secret_file(context: ToolContext, real: Path) -> bool:
    return _finder(context).is_secret(real)


def refuse_secret(context: ToolContext, named: str, real: Path) -> None:
    """Fail if a call that nobody approved is about to read or change a secret of the workspace."""
    if context.approved:
        return
    lexical = os.path.normpath(Path(context.root, named))
    if _finder(context).is_secret(lexical, real):
        raise ToolFailed(
            f"{quote(named)} is a secret of the workspace, and nobody approved this call; go on "
            "without it, or ask the user to add it to show_secrets under [permissions]"
        )


class KeptSecrets:
    """What a search leaves out."""

    def __init__(self, context: ToolContext) -> None:
        self._finder = None if context.approved else _finder(context)
        self._found = set[str]()

    def keeps(self, path: Path) -> bool:
        if self._finder is None or not self._finder.is_secret(path):
            return False
        self._found.add(str(path))
        return True

    def note(self) -> str:
        """A note for the result; empty if nothing was left out."""
        files = sorted(self._found)
        named = ", ".join(map(quote, files[:_FEW])) + (", …" if len(files) > _FEW else "")
        return f"left out, as secrets of the workspace: {named}" if files else ""


def _finder(context: ToolContext) -> SecretFinder:
    return SecretFinder(context.roots, context.shown)
