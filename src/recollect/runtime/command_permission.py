"""Which commands an agent may run in a folder: by the rules of the settings, with the sandbox that
is in force there and the secrets that really lie in the folders a line reads.

A refusal names what would allow the line: rules, a mode, or both, and never one that would not.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec

from recollect.execution.hidden_secrets import explain_exposed
from recollect.execution.sandbox import SandboxChoice, find_isolation
from recollect.permissions.command_judge import CommandVerdict, judge_line
from recollect.permissions.command_rules import PermissionMode, parse_rules, tighten
from recollect.permissions.folder_contents import FindSecrets
from recollect.runtime.secret_files import secret_finder
from recollect.workspace.effective_settings import EffectiveSettings
from recollect.workspace.workspace_secrets import SecretFinder, ShownSecrets

_LAXER: dict[PermissionMode, tuple[PermissionMode, ...]] = {
    "plan": ("edit", "free"),
    "ask": ("edit", "free"),
    "edit": ("free",),
}


class CommandPermission(msgspec.Struct, frozen=True):
    """Whether a command may run, and what would allow it."""

    reason: str = ""  # why it may not run; empty: it may
    may_ask: bool = False
    rules: tuple[str, ...] = ()
    mode: str = ""
    normal_form: str = ""  # what the line means, if that is not what it says
    word_for_word: bool = False  # a rule that gives the whole line allows it
    asked_because: str = ""  # for the user who is asked: why, without what else would allow it


def build_command_judge(
    effective: EffectiveSettings,
    *,
    interactive: bool,
    cwd: Path | None = None,
    finder: SecretFinder | None = None,
) -> Callable[[str, str], CommandPermission]:
    """The judge of every command of a session: of a line and the directory that the call names,
    if any. `cwd` is where lines run otherwise, `finder` knows the secrets of all folders that
    they may write. An invalid rule is reported here."""
    given = effective.settings.permissions
    own = parse_rules(allow=given.allow, ask=given.ask, deny=given.deny, mode=given.mode)
    rules = tighten(own, parse_rules(ask=effective.project_ask, mode=given.mode))
    root = str(effective.root)

    home = cwd or effective.root
    finder = finder or SecretFinder((effective.root,), ShownSecrets(given.show_secrets))
    find_exposed = _exposed_finder(finder, given.sandbox)

    def judge_in(
        mode: PermissionMode, command: str, directory: str, find_secrets: FindSecrets
    ) -> CommandVerdict:
        return judge_line(
            command,
            msgspec.structs.replace(rules, mode=mode),
            interactive=interactive,
            root=root,
            sandboxed=find_isolation(given.sandbox).kind != "none",
            find_secrets=find_secrets,
            directory=directory,
            find_exposed=find_exposed,
        )

    def judge(command: str, directory: str = "") -> CommandPermission:
        place = home / Path(directory).expanduser()
        moved = directory if os.path.normpath(place) != os.path.normpath(home) else ""
        find_secrets = cache(secret_finder(place, shown=finder))  # each command looks anew, once
        verdict = judge_in(rules.mode, command, moved, find_secrets)
        if verdict.decision == "allow" or verdict.suggested_rules:
            return _explain(command, verdict)
        for mode in _LAXER.get(rules.mode, ()):
            if judge_in(mode, command, moved, find_secrets).decision == "allow":
                return _explain(command, verdict, mode)
        return _explain(command, verdict)

    return judge


def _exposed_finder(finder: SecretFinder, sandbox: SandboxChoice) -> Callable[[], str]:
    """The function that says why a sandbox cannot hide the workspace's secrets."""
    hides_all = False

    def find_exposed() -> str:
        nonlocal hides_all
        kind = find_isolation(sandbox).kind
        if kind == "none" or hides_all:
            return ""
        exposed = explain_exposed(finder.find_all(), finder.roots, kind)
        # should the workspace grow too large later, the command runner refuses
        hides_all = kind == "bubblewrap" and not exposed
        return exposed

    return find_exposed


def _explain(command: str, verdict: CommandVerdict, mode: str = "") -> CommandPermission:
    if verdict.decision == "allow":
        return CommandPermission(word_for_word=verdict.word_for_word)
    named = ", ".join(f"`{rule}`" for rule in verdict.suggested_rules)
    means = [f"--allow or `allow` under [permissions] with {named}"] if named else []
    means += [f"--mode {mode}"] if mode else []
    remedy = f"{' and '.join(means)} would allow it" if means else ""
    reason = "; ".join(filter(None, (f"not allowed: {verdict.reason}", remedy)))
    meaning = verdict.normal_form if verdict.normal_form.split() != command.split() else ""
    return CommandPermission(
        reason,
        verdict.decision == "ask",
        verdict.suggested_rules,
        mode,
        meaning,
        asked_because=verdict.reason,
    )
