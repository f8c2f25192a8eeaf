"""Takes from a repository that a command made whatever would run programs in the user's name.

`git init` and `git clone` are ordinary work, and so is a repository in a test's folder. Settings
are kept if they are on a list of harmless ones, hooks if they are git's samples. A `.git` that
leads anywhere but to a folder of git's in the workspace is taken away: its settings were not seen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from recollect.execution.command_plan import ProtectedPaths
from recollect.execution.git_folders import (
    DECIDING_NAMES,
    GitFolders,
    link_target,
    read_settings,
    read_start,
)

_HARMLESS_KEYS = re.compile(
    r"core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode"
    r"|symlinks|autocrlf|eol|safecrlf|quotepath|abbrev|compression|preloadindex|untrackedcache"
    r"|sharedrepository|sparsecheckout|sparsecheckoutcone|splitindex|longpaths|commentchar)"
    r"|extensions\.(?:objectformat|compatobjectformat|partialclone|worktreeconfig|refstorage"
    r"|preciousobjects|relativeworktrees)|user\.(?:name|email)"
    r"|remote\..*\.(?:fetch|push|tagopt|prune|mirror|promisor|partialclonefilter)"
    r"|branch\..*\.(?:remote|merge|rebase|pushremote|description)"
    r"|submodule\..*\.(?:active|branch|ignore|fetchrecursesubmodules)|submodule\.active"
    r"|(?:advice|color|column|status|feature|index|pull|push|fetch|rebase|rerere|receive)\.[a-z]*"
    r"|commit\.(?:gpgsign|verbose)|tag\.(?:gpgsign|sort)|gc\.auto(?:detach)?|maintenance\.auto"
    r"|init\.defaultbranch|merge\.(?:conflictstyle|ff)|diff\.(?:algorithm|renames)"
    r"|lfs\.repositoryformatversion",
    re.IGNORECASE | re.DOTALL,
)
_URL_KEYS = re.compile(r"remote\..*\.(?:url|pushurl)|submodule\..*\.url", re.IGNORECASE | re.DOTALL)
_SetAside = Callable[[str], str]  # moves a path away and says where it is now


def disarm_repository(
    path: str, found: GitFolders, paths: ProtectedPaths, set_aside: _SetAside
) -> Iterator[str]:
    """Make a new folder of git's, or a new `.git` that leads to one, harmless; say what was done.
    What was there before the command is the user's and stays."""
    users = frozenset((*paths.kept, *paths.occupied))
    if path in users:
        return
    if path in found.links:
        target = link_target(path)
        if target and target not in found.folders:
            yield _taken(path, set_aside(path), f"it leads to {target}")
        return
    fresh = {name: f"{path}/{name}" for name in DECIDING_NAMES if f"{path}/{name}" not in users}
    common = fresh.get("commondir", "")
    if os.path.lexists(common) and _common_folder(path) not in found.folders:
        yield _taken(common, set_aside(common), "it leads out of the workspace's repositories")
    for name in ("config", "config.worktree"):
        if name in fresh:
            yield from _disarm_settings(fresh[name], path, paths.roots, set_aside)
    if "hooks" in fresh:
        yield from _disarm_hooks(fresh["hooks"], set_aside)


def _disarm_hooks(hooks: str, set_aside: _SetAside) -> Iterator[str]:
    if os.path.islink(hooks):
        yield _taken(hooks, set_aside(hooks), "it is a link")
        return
    with suppress(OSError):
        for name in sorted(os.listdir(hooks)):
            if not name.endswith(".sample"):
                hook = f"{hooks}/{name}"
                yield _taken(hook, set_aside(hook), "git would run it")


def _disarm_settings(
    file: str, folder: str, roots: tuple[str, ...], set_aside: _SetAside
) -> Iterator[str]:
    if not os.path.lexists(file):
        return
    if os.path.islink(file) or not os.path.isfile(file):
        yield _taken(file, set_aside(file), "it is not a file")
        return
    settings = list(read_settings(("config", "--file", file, "--no-includes")))
    harmless = [(k, v) for k, v in settings if _is_harmless(k, v, folder, roots)]
    if settings == harmless and (settings or not os.path.getsize(file)):
        return
    refused = ", ".join(sorted({key for key, _ in settings} - {key for key, _ in harmless})[:5])
    kept = set_aside(file)
    if kept:
        with suppress(OSError), open(file, "x", encoding="utf-8", errors="surrogateescape") as new:
            new.writelines(map(_settings_line, harmless))
    yield _taken(file, kept, f"git would act on {refused or 'what could not be read'}")


def _is_harmless(key: str, value: str, folder: str, roots: tuple[str, ...]) -> bool:
    if key.lower() == "core.worktree":
        tree = os.path.realpath(os.path.join(folder, value))
        return any(tree.startswith(f"{root}/") or tree == root for root in roots)
    if _URL_KEYS.fullmatch(key):  # `ext::` runs a command
        return "::" not in value and not value.startswith("-")
    if re.fullmatch(r"submodule\..*\.update", key, re.IGNORECASE | re.DOTALL):
        return value in ("checkout", "rebase", "merge", "none")
    return _HARMLESS_KEYS.fullmatch(key) is not None


def _settings_line(setting: tuple[str, str]) -> str:
    key, value = setting
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    quoted = middle.replace("\\", "\\\\").replace('"', '\\"')
    title = f'[{section} "{quoted}"]' if middle else f"[{section}]"
    text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{title}\n\t{name} = "{text}"\n'


def _common_folder(folder: str) -> str:
    named = read_start(f"{folder}/commondir").strip()
    return os.path.realpath(os.path.join(folder, named)) if named else ""


def _taken(path: str, kept: str, why: str) -> str:
    if not kept:
        return f"PROTECTED {path} was made by the command and cannot be taken away: {why}"
    return f"PROTECTED {path} was made while the command ran: {why}; it is now {kept}"
