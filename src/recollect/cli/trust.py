"""`recollect trust`: decides whose memory files, settings and hooks are used.

Nothing of a folder is used before the user trusts it here. The command prints what that puts into
force, the commands of hooks word for word; only these run from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from recollect.cli.console import print_json, print_lines, print_note
from recollect.cli.display_text import one_line
from recollect.cli.options import command, json_option
from recollect.errors import BadSettings
from recollect.workspace.effective_settings import project_root, resolve_settings
from recollect.workspace.project_overrides import digest_hooks
from recollect.workspace.trusted_folders import (
    approve_hooks,
    distrust_folder,
    load_trust,
    trust_folder,
)


@command(
    ("recollect trust", "this project"),
    ("recollect trust ~/src", "a folder and everything below it"),
    ("recollect trust --remove ~/src/strange", "but not this one"),
    ("recollect trust --list", "all decisions"),
)
@click.argument(
    "folder",
    metavar="[FOLDER]",
    required=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option("--remove", is_flag=True, help="Stop trusting it, even if a folder above is trusted.")
@click.option("--list", "listing", is_flag=True, help="List all decisions and change none.")
@json_option
def trust(*, folder: Path | None, remove: bool, listing: bool, as_json: bool) -> None:
    """Trust this project, or a folder and everything below it.

    Memory files and settings of a trusted folder are used; a project's settings can only be
    stricter than yours. Hooks are commands that run by themselves: the hooks of the project you
    trust are shown, and run until they change. Trust it again to see and allow the changes.
    """
    if listing:
        if folder or remove:
            raise click.UsageError("--list cannot be combined with other arguments.")
        decisions = load_trust().folders
        if as_json:
            print_json(decisions)
        else:
            rows = ((_trust_label(trusted=yes), path) for path, yes in decisions.items())
            print_lines(f"{label:<11}  {one_line(path)}" for label, path in rows)
        return
    place = folder.resolve() if folder else project_root(Path.cwd())
    (distrust_folder if remove else trust_folder)(place)
    if as_json:
        print_json({"folder": str(place), "trusted": not remove})
    else:
        print_lines([f"{_trust_label(trusted=not remove)}: {one_line(str(place))}"])
    if not remove:
        for line in _consequences(place):
            print_note(line)


def _trust_label(*, trusted: bool) -> str:
    return "trusted" if trusted else "not trusted"


def _consequences(place: Path) -> Iterator[str]:
    yield "Its memory files are read from now on; `recollect trust --remove` undoes this."
    try:
        found = resolve_settings(place)
    except BadSettings as error:
        yield f"The agent will not start here: {error}"
        return
    if found.project is not None:
        yield f"Its settings are used: {one_line(str(found.project_file))}"
    hooks = found.project_hooks or found.unapproved_hooks
    for hook in hooks:
        yield f"A hook that will run at {hook.event}: {one_line(hook.command)}"
    if found.unapproved_hooks:
        approve_hooks(found.root, digest_hooks(hooks))
        found = resolve_settings(place)
    yield from found.warnings
