"""What of a folder waits for the user's trust, shown whole: its memory files, settings and hooks.

Nothing is shortened and nothing masked: a command could hide in what is left out. Lines still have
to be sanitized by whoever prints them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from recollect.errors import BadInput, BadSettings
from recollect.settings import HookCommand
from recollect.workspace.effective_settings import (
    PROJECT_FOLDER,
    EffectiveSettings,
    default_settings,
    read_untrusted,
)
from recollect.workspace.hook_approval import digest_hooks, find_hook_files
from recollect.workspace.memory_files import MemoryFiles, MemorySources, read_memory
from recollect.workspace.trusted_folders import (
    TrustPart,
    approve_hooks,
    load_trust,
    trust_folder,
)
from recollect.workspace.untrusted_text import one_line
from recollect.workspace.user_commands import read_user_commands

_WHOLE = 8_000  # characters: more than a command or a value can have


class TrustReview(NamedTuple):
    """What was shown of a folder; a yes holds for exactly that."""

    place: Path
    lines: dict[TrustPart, tuple[str, ...]]
    digests: dict[TrustPart, str]  # of the parts that can be trusted
    trusted: frozenset[TrustPart] = frozenset()  # before
    problem: str = ""  # why settings and hooks cannot be trusted


def review_trust(place: Path) -> TrustReview:
    """All that a project's folder brings along, whole: also the texts of its memory files."""
    problem = ""
    try:
        found = read_untrusted(place)
    except BadSettings as error:
        found, problem = default_settings(place), str(error)
    memory = _untrusted_memory(place, found)
    lines: dict[TrustPart, tuple[str, ...]] = {
        "memory": (*show_untrusted_memory(place, found), *_memory_texts(place, memory))
    }
    digests: dict[TrustPart, str] = {}
    if not problem:
        lines["settings"] = tuple(show_untrusted_settings(found))
        if found.root == place and (hooks := found.unapproved_hooks):
            # before they are shown: what changes while the user reads is not approved
            digests["hooks"] = digest_hooks(hooks, place)
            lines["hooks"] = tuple(show_untrusted_hooks(hooks, place))
    for part, shown in lines.items():
        digests.setdefault(part, sha256("\n".join(shown).encode("utf-8", "replace")).hexdigest())
    decided = load_trust()
    trusted: set[TrustPart] = {"memory"} if decided.covers(place) else set()
    trusted |= {"settings"} if decided.covers_settings(place) else set()
    if "hooks" in digests and decided.approves(place, digests["hooks"]):
        trusted.add("hooks")
    return TrustReview(place, lines, digests, frozenset(trusted), problem)


def approve_review(review: TrustReview, parts: Collection[TrustPart]) -> None:
    """Trust these parts, if they are still as they were shown; all or none."""
    now = review_trust(review.place)
    for part in parts:
        if part not in review.digests:
            why = f": {review.problem}" if review.problem else ""
            raise BadInput(f"there are no {part} to trust{why}")
        if now.digests.get(part) != review.digests[part]:
            raise BadInput(f"its {part} changed since you saw them; /trust shows them again")
    by_folder = [part for part in parts if part != "hooks"]
    if by_folder:
        trust_folder(review.place, parts=by_folder)
    if "hooks" in parts:
        approve_hooks(review.place, review.digests["hooks"])


def _memory_texts(place: Path, known: MemoryFiles) -> Iterator[str]:
    for file in known.files:
        yield f"  --- {one_line(_short(Path(file.path), place), _WHOLE)}"
        yield from (f"  {line}" for line in file.text.splitlines())
    for command in read_user_commands(None, place / PROJECT_FOLDER).commands:
        yield f"  --- command /{command.name}"
        yield from (f"  {line}" for line in command.text.splitlines())


def _untrusted_memory(place: Path, found: EffectiveSettings) -> MemoryFiles:
    names = tuple(name for name in found.settings.agent.memory_files if "/" not in name)
    sources = MemorySources(
        cwd=place,
        root=place,
        home=found.user_file.parent,
        trusted=lambda _: True,
        names=names,
        import_style=found.settings.agent.memory_imports,
        has_own=False,
    )
    return read_memory(sources)


def show_untrusted_memory(place: Path, found: EffectiveSettings) -> Iterator[str]:
    known = _untrusted_memory(place, found)
    commands = read_user_commands(None, place / PROJECT_FOLDER)
    yield f"Memory: files that a model is given as your words, in {one_line(str(place))} and below"
    for file in known.files:
        size = len(file.text.encode("utf-8", "replace"))
        yield f"  {one_line(_short(Path(file.path), place), _WHOLE)}  {size:,} bytes"
    yield from (f"  not read: {problem}" for problem in known.problems)
    for command in commands.commands:
        name = one_line(_short(Path(command.path), place), _WHOLE)
        yield f"  {name}  the command /{command.name}: its text is sent as your prompt"
    yield from (f"  not read: {problem}" for problem in commands.problems)
    yield (
        "  (later ones too)"
        if known.files or commands.commands
        else "  none yet; later ones are read"
    )


def show_untrusted_settings(found: EffectiveSettings) -> Iterator[str]:
    yield "Settings: a project's can only be stricter than yours"
    project = found.project
    keys = [key for key in project.lines if key != "hooks"] if project else []
    for key in keys:
        assert project is not None
        value, own = (_value(each, key) for each in (project.settings, found.user.settings))
        effect = f"yours: {own}" if key in found.project_keys else "no effect"
        yield f"  {one_line(key)} = {one_line(value, _WHOLE)}  ({effect})"
    yield from (f"  {one_line(warning, _WHOLE)}" for warning in found.warnings if _is_ours(warning))
    if not keys:
        yield "  none yet; later ones are used"


def _is_ours(warning: str) -> bool:
    return "`recollect trust" not in warning  # they ask for what is being done


def _value(settings: object, key: str) -> str:
    value = msgspec.to_builtins(attrgetter(key)(settings))
    return json.dumps(value, ensure_ascii=False)


def show_untrusted_hooks(hooks: tuple[HookCommand, ...], root: Path) -> Iterator[str]:
    yield "Hooks: commands that start by themselves, with your rights and outside the sandbox"
    for hook in hooks:
        yield f"  {hook.event}: {one_line(hook.command, _WHOLE)}"
        yield f"    ends after {hook.timeout:g} seconds"
        if hook.env:
            yield f"    gets these variables of yours: {one_line(', '.join(hook.env), _WHOLE)}"
        for file in find_hook_files(hook.words, root):
            yield f"    runs {one_line(file.path, _WHOLE)}  {file.size:,} bytes: read it first"


def _short(path: Path, place: Path) -> str:
    return str(path.relative_to(place)) if path.is_relative_to(place) else str(path)
