"""`recollect trust`: decides whose memory files, settings and hooks are used, one after the other.

Nothing of a folder is used before the user trusts it here. Each part is shown as it is, whole, and
asked for by itself; what was shown is what is trusted. A "no" also takes back an earlier yes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from recollect.cli.console import print_json, print_lines, print_note
from recollect.cli.options import command, json_option
from recollect.display.display_text import sanitize
from recollect.display.trust_report import (
    show_untrusted_hooks,
    show_untrusted_memory,
    show_untrusted_settings,
)
from recollect.errors import BadInput, BadSettings
from recollect.workspace.effective_settings import (
    default_settings,
    project_root,
    read_untrusted,
)
from recollect.workspace.hook_approval import digest_hooks
from recollect.workspace.trusted_folders import (
    TRUST_PARTS,
    FolderTrust,
    TrustPart,
    approve_hooks,
    distrust_folder,
    load_trust,
    trust_folder,
)
from recollect.workspace.untrusted_text import one_line

_HOOKS: tuple[TrustPart, ...] = ("hooks",)
_NOW = " (until now: yes)"
_LABELS = ("trusted", "not trusted")


@command(
    ("recollect trust", "this project: shows its memory, settings and hooks, and asks for each"),
    ("recollect trust --memory", "its memory files and nothing else"),
    ("recollect trust --yes ~/src", "a folder and everything below it, without questions"),
    ("recollect trust --remove ~/src/strange", "but not this one"),
    ("recollect trust --list", "all decisions"),
)
@click.argument(
    "folder",
    metavar="[FOLDER]",
    required=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option("--memory", is_flag=True, help="Only its memory files.")
@click.option("--settings", is_flag=True, help="Only its settings.")
@click.option("--hooks", is_flag=True, help="Only its hooks.")
@click.option("-y", "--yes", is_flag=True, help="Answer every question with yes.")
@click.option(
    "--remove", "--revoke", is_flag=True, help="Stop trusting it, even if a folder above is."
)
@click.option("--list", "listing", is_flag=True, help="List all decisions and change none.")
@json_option
def trust(
    *,
    folder: Path | None,
    memory: bool,
    settings: bool,
    hooks: bool,
    yes: bool,
    remove: bool,
    listing: bool,
    as_json: bool,
) -> None:
    """Trust a folder's memory, settings and hooks.

    The folder is this project's unless you name another. Each part is shown and asked for by
    itself; memory and settings hold for everything below the folder. A project's settings can only
    be stricter than yours. Hooks are commands that run by themselves: only those that you were
    shown run, until they or the files that they name change.
    """
    flags = dict(zip(TRUST_PARTS, (memory, settings, hooks), strict=True))
    chosen: tuple[TrustPart, ...] = tuple(part for part in TRUST_PARTS if flags[part])
    if listing:
        if folder or remove or yes or chosen:
            raise click.UsageError("--list cannot be combined with other arguments.")
        _list_decisions(load_trust(), as_json=as_json)
        return
    place = folder.resolve() if folder else project_root(Path.cwd())
    if remove:
        removed = chosen or TRUST_PARTS
        distrust_folder(place, parts=removed)
        _print_result(place, dict.fromkeys(removed, False), as_json=as_json)
        return
    steps = _TrustSteps(place, chosen, ask=(lambda _: True) if yes else _ask)
    try:
        steps.take()
    finally:  # without an answer, what was answered before holds
        _print_result(place, steps.answers, as_json=as_json)


class _TrustSteps:
    """Shows and asks for one part after the other, and records each answer at once."""

    def __init__(
        self, place: Path, chosen: tuple[TrustPart, ...], ask: Callable[[str], bool]
    ) -> None:
        self._place, self._ask, self._chosen = place, ask, chosen
        self.answers: dict[TrustPart, bool] = {}  # for each part that was asked for
        self._problem = ""
        try:
            self._found = read_untrusted(place)
        except BadSettings as error:
            if {"settings", "hooks"} & set(chosen):
                raise
            self._found, self._problem = default_settings(place), str(error)
        if "hooks" in chosen and self._found.root != place:
            root = one_line(str(self._found.root))
            raise BadInput(
                f"{one_line(str(place))} is in the project {root}, whose hooks are meant; "
                f"`recollect trust --hooks {root}` shows them"
            )

    def take(self) -> None:
        answers = self.answers
        parts = self._chosen or TRUST_PARTS
        if "memory" in parts:
            _print_exactly(show_untrusted_memory(self._place, self._found))
            answers["memory"] = self._decide("memory")
        if self._problem:
            print_note(f"Its settings and hooks cannot be trusted: {self._problem}")
            return
        if "settings" in parts:
            _print_exactly(show_untrusted_settings(self._found))
            answers["settings"] = self._decide("settings")
        hooks = self._found.unapproved_hooks if self._found.root == self._place else ()
        if "hooks" in parts and hooks:
            # before they are shown: what changes while the user reads is not approved
            digest = digest_hooks(hooks, self._found.root)
            _print_exactly(show_untrusted_hooks(hooks, self._found.root))
            known = load_trust().approves(self._found.root, digest)
            answers["hooks"] = self._ask(f"Let these hooks run?{_NOW if known else ''}")
            if answers["hooks"]:
                approve_hooks(self._found.root, digest)
            elif str(self._found.root) in load_trust().hooks:
                distrust_folder(self._found.root, parts=_HOOKS)
        elif "hooks" in self._chosen:
            print_note("It has no hooks.")

    def _decide(self, part: TrustPart) -> bool:
        trust = load_trust()
        covers = trust.covers if part == "memory" else trust.covers_settings
        known = covers(self._place)
        if self._ask(f"Trust its {part}?{_NOW if known else ''}"):
            trust_folder(self._place, parts=(part,))
            return True
        if known:
            distrust_folder(self._place, parts=(part,))
        return False


def _ask(question: str) -> bool:
    try:
        return click.confirm(question, default=False, err=True)
    except click.Abort:
        remedy = "answer y or n, or pass --yes in a script"
        raise BadInput(f"{question} has no answer, so nothing more is trusted; {remedy}") from None


def _print_exactly(lines: Iterable[str]) -> None:
    """Not `print_note`, which masks what looks like a credential: a command could hide there."""
    for line in lines:
        click.echo(sanitize(line), err=True)


# --- results -----------------------------------------------------------------------------------


def _print_result(place: Path, answers: dict[TrustPart, bool], *, as_json: bool) -> None:
    if as_json:
        parts_document = {str(part): answer for part, answer in answers.items()}
        print_json({"folder": str(place), **parts_document})
        return
    for label, wanted in zip(_LABELS, (True, False), strict=True):
        parts = [part for part, answer in answers.items() if answer is wanted]
        if parts:
            print_lines([f"{label}: {one_line(str(place))} ({', '.join(parts)})"])
    if any(answers.values()):
        print_note("`recollect trust --remove` undoes this.")


def _list_decisions(decided: FolderTrust, *, as_json: bool) -> None:
    rows: dict[str, dict[TrustPart, bool]] = {}
    by_folder = zip(TRUST_PARTS, (decided.folders, decided.settings_decisions), strict=False)
    for part, decisions in by_folder:
        for path, trusted in decisions.items():
            rows.setdefault(path, {})[part] = trusted
    for path in decided.hooks:
        rows.setdefault(path, {})["hooks"] = True
    if as_json:
        print_json(rows)
        return
    for path, row in sorted(rows.items()):
        for label, wanted in zip(_LABELS, (True, False), strict=True):
            parts = [part for part in TRUST_PARTS if row.get(part) is wanted]
            if parts:
                print_lines([f"{label:<11}  {one_line(path)}  ({', '.join(parts)})"])
