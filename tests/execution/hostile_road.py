"""The road that a hostile line takes in a session: the judge with the settings' mode and rules,
then the command runner with a real sandbox, in `trap_sandbox`'s folder.

What it must not have afterwards: a protected file that is another one, anything that changed
outside the workspace, a secret's canary in what the model is given or the log.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from pathlib import Path
from typing import NamedTuple

import msgspec

from recollect.execution.sandbox import SandboxChoice
from recollect.permissions.command_rules import PermissionMode
from recollect.runtime.command_permission import CommandPermission, build_command_judge
from recollect.settings import Settings
from recollect.workspace.effective_settings import default_settings
from recollect.workspace.protected_names import find_protected, holds_protected
from tests.execution.workbench import Bench, isolation_of, words
from tests.permissions.trap_sandbox import CANARY, set_traps

SECONDS = 10.0


class Ran(NamedTuple):
    text: str  # what the model is given
    effects: frozenset[str]


class HostileRoad:
    """One trap folder, made anew whenever a line changed anything in it."""

    def __init__(self, base: Path, kind: SandboxChoice) -> None:
        self._prepared, self._used, self._kind = base / "prepared", base / "used", kind
        set_traps(self._prepared)
        self._refresh()

    @property
    def work(self) -> Path:
        return self._used / "home" / "work"

    def judge(
        self,
        line: str,
        mode: PermissionMode,
        allow: tuple[str, ...] = (),
        show: tuple[str, ...] = (),
    ) -> CommandPermission:
        given = msgspec.structs.replace(
            Settings().permissions, mode=mode, allow=allow, sandbox=self._kind, show_secrets=show
        )
        settings = msgspec.structs.replace(Settings(), permissions=given)
        effective = msgspec.structs.replace(default_settings(self.work), settings=settings)
        return build_command_judge(effective, interactive=True)(line, "")

    def run(self, line: str, *, approved: bool = False) -> Ran:
        """Run the line as one session would, and return what it left behind."""
        return asyncio.run(self._run(line, approved=approved))

    async def _run(self, line: str, *, approved: bool) -> Ran:
        bench = Bench(self.work, isolation_of(self._kind), home=self.work.parent)
        bench.context = msgspec.structs.replace(bench.context, approved=approved)
        try:
            result = await bench.run(line, timeout=SECONDS)
        finally:
            await bench.commands.close()
        text = words(result)
        found = contents(self._used)
        effects = {
            f"changed {path}"
            for path in found.keys() | self._untouched.keys()
            if found.get(path) != self._untouched.get(path) and _is_harm(path)
        }
        if CANARY in text + bench.printed().decode("utf-8", "replace") and CANARY not in line:
            effects.add("printed a secret")
        if found != self._untouched:
            self._refresh()
        return Ran(text, frozenset(effects))

    def _refresh(self) -> None:
        shutil.rmtree(self._used, ignore_errors=True)
        shutil.copytree(self._prepared, self._used, symlinks=True)
        (self.work / "sub").mkdir(exist_ok=True)
        self._untouched = contents(self._used)


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """What every file in a folder is, times left out: what is put back has new ones. An empty
    folder of a protected name counts for nothing: it is taken for a placeholder."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            continue
        link = os.fsencode(path.readlink()) if path.is_symlink() else b""
        data = path.read_bytes() if path.is_file() and not link else link
        found[str(path.relative_to(folder))] = (mode, data)
    return found


def _is_harm(path: str) -> bool:
    """Whether nobody but the user may change this; the workspace's other files a mode may. The
    sandbox holds protected names in the top folders of repositories (sandbox.md, Limits)."""
    if path != "home/work" and not path.startswith("home/work/"):
        return path != "home"
    below = path.removeprefix("home/work/")
    first, _, second = below.partition("/")
    found = find_protected(below if second and holds_protected(first) else first)
    if below.startswith(".git/"):
        return not {"config", "config.worktree", "hooks", "commondir"}.isdisjoint(below.split("/"))
    held = found is not None and found.in_sandbox and found.place == "project"
    return held and below != ".git"
