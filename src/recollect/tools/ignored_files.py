"""What ignore files keep from tools: a refusal for a path, and a count for a listing.

`.geminiignore` and `.recollectignore` are the user's word: no tool reads, changes or lists what
they hide, whatever its arguments say. What git ignores is left out of listings and searches unless
a call asks for it, and is read when a call names it exactly.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from recollect.tools.resolve_path import quote
from recollect.tools.tool import ToolFailed
from recollect.workspace.hidden_paths import IgnoreSource, find_hider


def refuse_hidden(roots: Sequence[Path], named: str, real: Path) -> None:
    """Fail if the user's ignore files hide a path, as a call names it or with links resolved."""
    lexical = Path(os.path.normpath(Path(roots[0], named)))
    tops = [Path(os.path.realpath(root)) for root in roots]
    for path in dict.fromkeys((real, lexical)):
        if path in tops or not any(path.is_relative_to(top) for top in tops):
            continue
        if hider := find_hider(path, roots, use_git=False):
            raise ToolFailed(
                f"{quote(named)} {hider.reason}; go on without it, or ask the user to change that"
            )


class LeftOut:
    """How much a listing or a search leaves out, by what hides it."""

    def __init__(self) -> None:
        self._by_git = 0
        self._by_agent = Counter[str]()

    def add(self, hider: IgnoreSource) -> None:
        if hider.of_git:
            self._by_git += 1
        else:
            name = PurePosixPath(hider.name).name
            because = f"because {name} {hider.problem}" if hider.hides_all else f"by {name}"
            self._by_agent[because] += 1

    def note(self) -> str:
        """A note for the result; empty if nothing was left out."""
        parts = [f"{count:,} hidden {because}" for because, count in self._by_agent.items()]
        if self._by_git:
            parts.append(f"{self._by_git:,} that git ignores (respect_git_ignore=false shows them)")
        return f"left out: {', '.join(parts)}" if parts else ""
