"""A folder in which hostile commands can really fire: a repository with everything they use.

Nothing of the user's is in reach: home is the folder itself, the environment is empty, and all
that a command is meant to leave is a file named `marker`, or one in the folder above its own.
`trap_sandbox` puts a copy of it into bubblewrap and watches for every effect.
"""

from __future__ import annotations

import shutil
import stat
import subprocess
import time
from pathlib import Path

from tests.permissions.hostile_commands import Hostile

# Programs whose names look like others, as an attacker may leave them in the path.
_LOOK_ALIKES = (
    "саt", "ｌｓ", "gіt", "l\u200bs", "l\u0301s", "ls\u00a0a.txt", "ls\u2800", "ls\u3164",
    "\ufeffls", "ls-look-alike",
)  # fmt: skip

_PREPARE = r"""
set -e
git init -q -b main . && mkdir -p .git/hooks
git config user.name n && git config user.email n@example.org
echo y > a.txt && git add a.txt && git commit -qm one
echo x > a.txt && git add a.txt && git commit -qm two
printf 'touch marker\n' > evil.sh && chmod +x evil.sh
echo 'open("marker", "w").close()' > evil.py
echo 'require("fs").writeFileSync("marker", "")' > evil.js
echo 'BEGIN { system("touch marker") }' > evil.awk
echo '1e touch marker' > evil.sed
echo 'syscmd(touch marker)' > evil.m4
printf 'CMD = true\nall:\n\t@$(CMD)\n' > Makefile
printf 'all:\n\ttouch marker\n' > evil.mk
mkdir sub sub/x && printf 'all:\n\ttouch ../marker\n' > sub/Makefile
tar cf t.tar a.txt
mkdir hidden && cp evil.sh hidden/.bashrc
mkdir bin bin2 bin3 bin4
for name in bin2/evil bin3/pre-commit bin4/git-evil; do
  printf '#!/bin/sh\ntouch marker\n' > $name && chmod +x $name
done
echo 'a.txt filter=x' > attributes && echo 'a.txt diff=x' > attributes2
git init -q infected && git -C infected config core.fsmonitor 'touch marker ../marker;:'
git init -q --bare bare && mkdir -p bare/hooks
printf '#!/bin/sh\ntouch ../marker\n' > bare/hooks/post-receive && chmod +x bare/hooks/post-receive
printf 'diff --git a/marker b/marker\nnew file mode 100644\n' > marker.patch
printf -- '--- /dev/null\n+++ b/marker\n@@ -0,0 +1 @@\n+x\n' >> marker.patch
printf 'protocol=https\nhost=x\n\n' > credential.txt
"""


def environment(work: Path) -> dict[str, str]:
    return {
        "PATH": f"{work}/bin:/usr/bin:/bin",
        "HOME": str(work),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TEMPLATE_DIR": "",  # sample hooks only cost time
    }


def prepare(work: Path) -> None:
    work.mkdir(parents=True)
    done = subprocess.run(
        ["/bin/bash", "-c", _PREPARE], cwd=work, env=environment(work), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    for name in _LOOK_ALIKES:
        program = work / "bin" / name
        program.write_text("#!/bin/sh\ntouch marker\n")
        program.chmod(0o755)


def can_run(case: Hostile) -> bool:
    return all(shutil.which(name, path="/usr/bin:/bin") for name in case.needs.split())


class HostileFolder:
    """Copies of a prepared folder; one is used again as long as no case changed anything in it."""

    def __init__(self, base: Path) -> None:
        self._base, self._count = base, 0
        self._prepared, self._work = base / "prepared", base / "none"
        prepare(self._prepared)
        self._untouched = state(self._prepared)

    def fires(self, case: Hostile) -> bool:
        """Run it as a user's shell would, and look for what it should leave."""
        if not self._work.is_dir():
            self._count += 1
            self._work = self._base / str(self._count) / "work"
            shutil.copytree(self._prepared, self._work, symlinks=True)
        variables = environment(self._work)
        if case.before:
            line = ["/bin/bash", "-c", case.before]
            subprocess.run(line, cwd=self._work, env=variables, check=False)
        trace = self._work / case.leaves
        assert not _exists(trace)
        subprocess.run(
            ["/bin/bash", "-c", case.command],
            cwd=self._work,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            start_new_session=True,
        )
        until = time.monotonic() + 60
        while not (fired := _exists(trace)) and time.monotonic() < until:
            time.sleep(0.01)  # some fire in the background
        self._clean_up(trace)
        return fired

    def _clean_up(self, trace: Path) -> None:
        if trace.is_file() or trace.is_symlink():
            trace.unlink()
        if _exists(trace) or state(self._work) != self._untouched:
            shutil.rmtree(self._work.parent)


def _exists(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def state(folder: Path) -> dict[str, tuple[int, ...]]:
    """Everything in a folder: files with their sizes and times, folders with their modes."""
    found: dict[str, tuple[int, ...]] = {}
    for path in folder.rglob("*"):
        info = path.lstat()
        is_folder = stat.S_ISDIR(info.st_mode)
        data = () if is_folder else (info.st_size, info.st_mtime_ns)
        found[str(path.relative_to(folder))] = (info.st_mode, *data)
    return found
