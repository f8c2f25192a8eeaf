"""What no tool reads, lists or changes, wherever an agent works: secrets in the home, and
recollect's data.

The data directory has every session, the tokens of the servers, and whom the user trusts: whoever
may prompt an agent in a folder around it must get none of that, however they spell its name. A
folder that the user works in is not closed, unless it is the data directory itself.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from recollect.settings import data_directory
from recollect.workspace.protected_names import canonical_name

# Never shown to a command or a tool: below the home, or absolute.
_HIDDEN_PATHS = """
.ssh .aws .azure .gnupg .kube .docker .netrc .npmrc .pypirc .git-credentials .pgpass .my.cnf .boto
.1password .colima .lima .rd
.s3cfg .vault-token .password-store .terraform.d .huggingface .mozilla .thunderbird .age .claude
.claude.json .codex .gemini .config/gh .config/hub .config/gcloud .config/op .config/rclone
.config/sops .config/git/credentials .config/recollect .config/google-chrome .config/chromium
.config/BraveSoftware .config/anthropic .local/share/keyrings .local/share/recollect
.cargo/credentials .cargo/credentials.toml .gem/credentials .cache/huggingface/token .bash_history
.zsh_history .python_history .psql_history .mysql_history .sqlite_history .node_repl_history
/etc/shadow /etc/gshadow /etc/sudoers /etc/sudoers.d
"""
SECRET_PATHS = tuple(_HIDDEN_PATHS.split())
PathNames: TypeAlias = tuple[str, ...]  # from a top folder, as `canonical_name` has them


def is_data_directory(folder: Path) -> bool:
    """Whether a folder is recollect's data directory, under whatever name."""
    data = data_directory()
    with suppress(OSError):
        return folder.samefile(data)
    return folder.absolute() == data.absolute()


def private_below(top: Path, roots: Collection[Path] = ()) -> frozenset[PathNames]:
    """The private paths below a folder, by their names from it; nearly always none. No name at all
    stands for the folder itself, with everything below it."""
    if is_data_directory(top):
        return frozenset({()})
    try:
        home = Path.home()
    except RuntimeError:
        home = Path("/")
    found = _private_below(top, home, data_directory())
    if not found:
        return found
    inside = [_names_below(root.resolve(), top) for root in roots]
    data = _names_below(data_directory().resolve(), top)
    return frozenset(
        names
        for names in found
        if not any(root[: len(names)] == names and root != data for root in inside)
    )


@lru_cache(maxsize=128)
def _private_below(top: Path, home: Path, data: Path) -> frozenset[PathNames]:
    paths = {place / name for place in (home, home.resolve()) for name in SECRET_PATHS}
    paths |= {data.absolute(), data.resolve()}
    below = (_names_below(path, top) for path in paths if path != top and path.is_relative_to(top))
    return frozenset(below)


def _names_below(path: Path, top: Path) -> PathNames:
    """None for a path that is elsewhere."""
    below = path.relative_to(top).parts if path.is_relative_to(top) else ()
    return tuple(map(canonical_name, below))
