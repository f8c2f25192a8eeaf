"""`recollect trust`: whose memory files, settings and hooks are used.

Nothing of a folder is used before a person named it here. What begins to count with it is told at
once, the commands of its hooks word for word; these and no others run from then on.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recollect.cli.options import examples, json_option

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command(
    epilog=examples(
        ("recollect trust", "this project"),
        ("recollect trust ~/src", "a folder and all that is below it"),
        ("recollect trust --remove ~/src/strange", "but not this one"),
        ("recollect trust --list", "what was decided"),
    )
)
@click.argument(
    "folder",
    metavar="[FOLDER]",
    required=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option("--remove", is_flag=True, help="Trust it no longer, also when one above is trusted.")
@click.option("--list", "listing", is_flag=True, help="List what was decided, and decide nothing.")
@json_option
def trust(*, folder: Path | None, remove: bool, listing: bool, as_json: bool) -> None:
    """Trust this project, or a folder and what is below it.

    The memory files and the settings of a trusted folder are used; settings of a project can only
    tighten yours. Hooks are commands that run by themselves: those of the project you name are
    shown, and run until they change. Name it again to see and allow what has changed.
    """
    from recollect.cli.console import print_json, print_lines, print_note
    from recollect.cli.display_text import one_line
    from recollect.workspace import trusted_folders as trusting
    from recollect.workspace.effective_settings import project_root

    if listing:
        if folder or remove:
            raise click.UsageError("--list goes alone.")
        decided = trusting.load_trust().folders
        if as_json:
            print_json(decided)
        else:
            print_lines(
                f"{_trust_label(trusted=yes):<11}  {one_line(place)}"
                for place, yes in decided.items()
            )
        return
    place = folder.resolve() if folder else project_root(Path.cwd())
    (trusting.distrust_folder if remove else trusting.trust_folder)(place)
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
    from recollect.cli.display_text import one_line
    from recollect.errors import BadSettings
    from recollect.workspace.effective_settings import resolve_settings
    from recollect.workspace.project_overrides import digest_hooks
    from recollect.workspace.trusted_folders import approve_hooks

    yield "Its memory files are read from now on; `recollect trust --remove` takes that back."
    try:
        found = resolve_settings(place)
    except BadSettings as error:
        yield f"The agent will not begin here: {error}"
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
