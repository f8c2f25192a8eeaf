"""What of a folder waits for the user's trust, shown whole: its memory files, settings and hooks.

Nothing is shortened and nothing masked: a command could hide in what is left out. Lines still have
to be sanitized by whoever prints them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import msgspec

from recollect.settings import HookCommand
from recollect.workspace.effective_settings import EffectiveSettings
from recollect.workspace.hook_approval import find_hook_files
from recollect.workspace.memory_files import MemorySources, read_memory
from recollect.workspace.untrusted_text import one_line

_WHOLE = 8_000  # characters: more than a command or a value can have


def show_untrusted_memory(place: Path, found: EffectiveSettings) -> Iterator[str]:
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
    known = read_memory(sources)
    yield f"Memory: files that a model is given as your words, in {one_line(str(place))} and below"
    for file in known.files:
        size = len(file.text.encode("utf-8", "replace"))
        yield f"  {one_line(_short(Path(file.path), place), _WHOLE)}  {size:,} bytes"
    yield from (f"  not read: {problem}" for problem in known.problems)
    yield "  (later ones too)" if known.files else "  none yet; later ones are read"


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
