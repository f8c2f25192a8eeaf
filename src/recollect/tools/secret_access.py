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


def names_secret_file(context: ToolContext, named: str) -> bool:
    """Whether a path, as a call names it, is a secret of the workspace."""
    if "\0" in named:
        return False
    lexical = os.path.normpath(Path(context.root, context.absolute(named)))
    return _finder(context).is_secret(lexical, os.path.realpath(lexical))


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


def kept_secrets(context: ToolContext) -> SecretFinder | None:
    """What a search has to leave out; None: nothing."""
    return None if context.approved else _finder(context)


def _finder(context: ToolContext) -> SecretFinder:
    return SecretFinder(context.roots, context.show_secrets)
