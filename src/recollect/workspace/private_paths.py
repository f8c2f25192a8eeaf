"""What no tool reads or lists, wherever an agent works: secrets in the home, and recollect's data.

The data directory has every session and the tokens of the servers: whoever may prompt an agent in
a folder around it must not get them. A folder that the user works in is not closed.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from recollect.settings import data_directory

# Never shown to a command or a tool: below the home, or absolute.
_HIDDEN_PATHS = """
.ssh .aws .azure .gnupg .kube .docker .netrc .npmrc .pypirc .git-credentials .pgpass .my.cnf .boto
.s3cfg .vault-token .password-store .terraform.d .huggingface .mozilla .thunderbird .age .claude
.claude.json .codex .gemini .config/gh .config/hub .config/gcloud .config/op .config/rclone
.config/sops .config/git/credentials .config/recollect .config/google-chrome .config/chromium
.config/BraveSoftware .config/anthropic .local/share/keyrings .local/share/recollect
.cargo/credentials .cargo/credentials.toml .gem/credentials .cache/huggingface/token .bash_history
.zsh_history .python_history .psql_history .mysql_history .sqlite_history .node_repl_history
/etc/shadow /etc/gshadow /etc/sudoers /etc/sudoers.d
"""
SECRET_PATHS = tuple(_HIDDEN_PATHS.split())
PathNames: TypeAlias = tuple[str, ...]  # from a top folder


def private_below(top: Path, roots: Collection[Path] = ()) -> frozenset[PathNames]:
    """The private paths below a folder, by their names from it; nearly always none."""
    try:
        home = Path.home()
    except RuntimeError:
        home = Path("/")
    found = _private_below(top, home, data_directory())
    if not found:
        return found
    inside = [root.resolve() for root in roots]
    return frozenset(
        names
        for names in found
        if not any(root.is_relative_to(top.joinpath(*names)) for root in inside)
    )


@lru_cache(maxsize=128)
def _private_below(top: Path, home: Path, data: Path) -> frozenset[PathNames]:
    paths = {place / name for place in (home, home.resolve()) for name in SECRET_PATHS}
    paths |= {data.absolute(), data.resolve()}
    return frozenset(
        path.relative_to(top).parts for path in paths if path != top and path.is_relative_to(top)
    )
