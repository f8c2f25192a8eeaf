"""Programs that only run another command, as data: what stands between them and its name."""

from __future__ import annotations

from typing import Literal

import msgspec

from recollect.permissions.parsed_line import word_set
from recollect.permissions.program_record import ProgramRecord, record


class Wrapper(msgspec.Struct, frozen=True, kw_only=True):
    """How to find the command that a program runs."""

    options: ProgramRecord
    before: int = 0  # operands before the command: the time of `timeout`
    subcommands: tuple[str, ...] = ()  # `uv run`; empty: the program itself runs it
    # project: a tool of the project is run (`uv run`), so a rule may name the wrapper itself
    # plain:   the command is run as it stands
    kind: Literal["project", "plain"] = "plain"
    scripts: str = ""  # the interpreter of a file that is named instead of a command
    appends: bool = False  # words that only run time knows follow the command's own: xargs


def _wrapper(options: str = "", **further: object) -> Wrapper:
    numbers = bool(further.pop("numbers", False))
    read = record(options, permutes=False, numbers=numbers)
    return Wrapper(options=read, **further)  # type: ignore[arg-type]


_UV_RUN = (
    "-qvnU --quiet --verbose --no-sync --frozen --locked --isolated --offline --dev --no-dev"
    " --all-extras --no-project --active --exact --no-progress --all-groups --all-packages"
    " --extra= --group= --no-group= --only-group= --package= --color= --only-dev --upgrade"
    " --no-cache --no-editable --no-env-file --reinstall -m,--module=."
    " ~--with= ~--with-requirements= ~--with-editable= ~-p,--python= ~--refresh ~--index="
    " !--env-file= !--directory= !--project= !--config-file= !--default-index= !--gui-script !-s"
    " !--script"
)
_NPX = (
    "-y,--yes -q,--quiet -s,--silent --no --no-install --prefer-offline --offline -w,--workspace="
    " --workspaces --if-present --bun ~-p,--package= !--node-options= -c,--call= !--shell="
    " !--script-shell= !--prefix= !--userconfig= !--registry= !--cache="
)
_PNPM_EXEC = (
    "-r,--recursive -s,--silent --parallel -F,--filter= -w,--workspace-root --no-bail"
    " !-c !--shell-mode !-C= !--dir="
)

WRAPPERS: dict[str, tuple[Wrapper, ...]] = {
    "command": (_wrapper("-p"),),
    "env": (_wrapper("-i,--ignore-environment -u,--unset= --debug -v !-S,--split-string= !-C="
                     " !--chdir= !--block-signal=? !--default-signal=? !--ignore-signal=?"),),
    "exec": (_wrapper("-c -l !-a="),),
    "ionice": (_wrapper("-t -c= -n= --class= --classdata= --ignore !-p= !-P= !-u="),),
    "nice": (_wrapper("-n,--adjustment=", numbers=True),),
    "nohup": (_wrapper(""),),
    "setsid": (_wrapper("-wfc --wait --fork --ctty"),),
    "stdbuf": (_wrapper("-i,--input= -o,--output= -e,--error="),),
    "time": (_wrapper("-pvq --portability --verbose --quiet -f,--format= !-o= !--output= !-a"),),
    "timeout": (_wrapper("-vf -s,--signal= -k,--kill-after= --preserve-status --foreground"
                         " --verbose", before=1),),
    "gtimeout": (_wrapper("-v -s,--signal= -k,--kill-after= --preserve-status --foreground",
                          before=1),),
    "xargs": (_wrapper("-0rtxo --null -n,--max-args= -P,--max-procs= -I= -L= -d,--delimiter= -s="
                       " -E= -a,--arg-file= --no-run-if-empty --verbose --max-lines=? --exit"
                       " --replace=? !-p !--interactive !--process-slot-var=", appends=True),),
    "bundle": (_wrapper("", subcommands=("exec",), kind="project"),),
    "bunx": (_wrapper("--bun ~-p= ~--package=", kind="project"),),
    "hatch": (_wrapper("", subcommands=("run",), kind="project"),),
    "npm": (_wrapper(_NPX, subcommands=("exec", "x"), kind="project"),),
    "npx": (_wrapper(_NPX, kind="project"),),
    "pdm": (_wrapper("", subcommands=("run",), kind="project", scripts="python"),),
    "pipenv": (_wrapper("", subcommands=("run",), kind="project"),),
    "pipx": (_wrapper("~--spec= ~--python=", subcommands=("run",), kind="project"),),
    "pnpm": (_wrapper(_PNPM_EXEC, subcommands=("exec",), kind="project"),
             _wrapper("~--package=", subcommands=("dlx",), kind="project")),
    "pnpx": (_wrapper("~--package=", kind="project"),),
    "poetry": (_wrapper("-qn --quiet --no-interaction --no-ansi --ansi", subcommands=("run",),
                        kind="project"),),
    "rye": (_wrapper("", subcommands=("run",), kind="project"),),
    "uv": (_wrapper(_UV_RUN, subcommands=("run",), kind="project", scripts="python"),),
    "uvx": (_wrapper("-q --quiet --isolated --offline ~--from= ~--with= ~-p= ~--python=",
                     kind="project"),),
    "yarn": (_wrapper("", subcommands=("exec",), kind="project"),
             _wrapper("~-p= ~--package=", subcommands=("dlx",), kind="project")),
}  # fmt: skip
# Modules that are programs of their own: `python -m pip install x` is `pip install x`.
PYTHON_MODULES = word_set("black coverage mypy pip pytest ruff twine unittest uv")
SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh"})
