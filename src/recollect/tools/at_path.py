"""Paths that begin with `@`, as models copy them from prompts, where `@src/app.py` names a file.

What really has such a name is meant literally: a folder `@components`, a file `@notes`. Otherwise
the sign is dropped. `./@components` always means the name with the sign. A pattern with wildcards
loses the sign only if the name that it begins with exists without it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def drop_mention_sign(path: str, base: Path, roots: Sequence[Path]) -> str:
    """The path without an `@` in front that is not part of a name; `base` is where it begins."""
    if not path.startswith("@") or path in ("@", "@/"):
        return path
    first = path.split("/", 1)[0]
    if os.path.lexists(base / first):
        return path
    rest = path[1:]
    if rest.startswith("/") and any(Path(rest).is_relative_to(root) for root in roots):
        return rest  # a whole path, with the sign in front
    return rest.lstrip("/\\") or path


def drop_pattern_sign(pattern: str, base: Path, roots: Sequence[Path]) -> str:
    """A glob without an `@` in front that is not part of a name; `base` is where it begins."""
    rest = drop_mention_sign(pattern, base, roots)
    first = next(iter(Path(rest).parts), "")
    return rest if first and os.path.lexists(base / first) else pattern
