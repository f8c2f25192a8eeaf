"""`recollect completion`: the script that makes a shell complete commands, options and ids.

The script calls `recollect` for each completion. Nothing but completions is printed then, and a
failure completes nothing.
"""

from __future__ import annotations

import os
import sys

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

from recollect.cli.options import COMPLETE, command

PROGRAM = "recollect"
# Bash inserts what it completes, so the descriptions are only in the list that a second Tab shows.
_BASH_SCRIPT = """\
%(complete_func)s() {
    local type value about values=() described=()
    COMPREPLY=()
    while IFS=$'\\t' read -r type value about; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) values+=("$value"); described+=("$value${about:+  $about}") ;;
        esac
    done < <(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
    if [[ $COMP_TYPE == 63 ]]; then
        COMPREPLY=("${described[@]}")
    else
        COMPREPLY=("${values[@]}")
    fi
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class DescribingBash(BashComplete):
    """Bash, with descriptions, and without a check of the version that starts bash."""

    source_template = _BASH_SCRIPT

    def source(self) -> str:
        return ShellComplete.source(self)

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type}\t{item.value}\t{item.help or ''}"


_SHELLS: dict[str, type[ShellComplete]] = {
    "bash": DescribingBash,
    "zsh": ZshComplete,
    "fish": FishComplete,
}


@command(
    ("recollect completion bash >> ~/.bashrc", "for bash"),
    ("recollect completion zsh >> ~/.zshrc", "for zsh, after `compinit`"),
    ("recollect completion fish > ~/.config/fish/completions/recollect.fish", "for fish"),
    ('eval "$(recollect completion bash)"', "for this shell only"),
)
@click.argument("shell", type=click.Choice(list(_SHELLS)))
def completion(*, shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options, and the ids of this project's sessions with their titles.
    """
    script = _SHELLS[shell](click.Group(PROGRAM), {}, PROGRAM, COMPLETE).source()
    sys.stdout.write(script.strip() + "\n")


def answer_shell(group: click.Command) -> int:
    """Print the completions that a script asks for; the exit code."""
    shell, _, instruction = os.environ[COMPLETE].partition("_")
    if instruction != "complete" or shell not in _SHELLS:
        return 1
    try:
        found = _SHELLS[shell](group, {}, PROGRAM, COMPLETE).complete()
    except Exception:  # noqa: BLE001 - an error in the middle of a user's line helps nobody
        return 1
    sys.stdout.write(found + "\n")
    return 0
